"""The engine under test: DuckDB builds the data sets and runs one job, on files that are never the warehouse's."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb

from tasks.jobs.record.datasets import DATA_SETS, DATABASES, MACROS, PARTS, WEBLOG_COLUMNS, DataSet
from tasks.jobs.record.orders import Measured, Order
from tasks.jobs.record.signature import Plan, read_plan

NS = 1e-9
ERROR_CHARACTERS = 200


def _macros(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    connection.execute(MACROS.format(seed=seed))


def _write_part(connection: duckdb.DuckDBPyConnection, data_set: DataSet, folder: Path, part: int, rows: int) -> None:
    select = data_set.select.format(part=part, lo=part * rows, hi=(part + 1) * rows)
    kind = "(FORMAT csv, HEADER)" if data_set.suffix == "csv" else "(FORMAT parquet)"
    connection.execute(f"COPY ({select}) TO '{folder / data_set.path(part)}' {kind}")


def build_data(folder: Path, scale: float, seed: int) -> None:
    """Write every data set and database into `folder`; nothing happens where they are complete already."""
    finished = folder / "complete"
    if finished.exists():
        return
    for old in folder.glob("*.duckdb*"):
        old.unlink()
    connection = duckdb.connect()
    _macros(connection, seed)
    for data_set in DATA_SETS.values():
        (folder / data_set.name).mkdir(parents=True, exist_ok=True)
        for part in range(PARTS):
            _write_part(connection, data_set, folder, part, max(1, round(data_set.rows_per_part * scale)))
    for name, script in DATABASES.items():
        connection.execute(f"ATTACH '{folder / name}.duckdb' AS {name}")
        connection.execute(script.format(root=folder))
        connection.execute(f"CHECKPOINT {name}; DETACH {name}")
        (folder / f"{name}.lock").touch()
    connection.close()
    finished.touch()


def input_relation(order: Order, folder: Path) -> str:
    """SQL for the rows of the order's parts: Parquet files, CSV files, or a range of a database's table."""
    data_set = DATA_SETS[order.data_set]
    numbers = order.part_numbers()
    if order.source == "table":
        table = {"orders": "sales.orders", "events": "web.views", "readings": "plant.readings"}[order.data_set]
        return f"(FROM {table} WHERE part BETWEEN {min(numbers)} AND {max(numbers)})"
    files = ", ".join(f"'{folder / data_set.path(number)}'" for number in numbers)
    if order.source == "csv":
        return f"read_csv([{files}], {WEBLOG_COLUMNS})"
    return f"read_parquet([{files}])"


def input_files(order: Order, folder: Path) -> list[Path]:
    """The files that the order reads: its parts, or its database's file."""
    if order.source == "table":
        return [folder / f"{order.databases[0]}.duckdb"]
    return [folder / DATA_SETS[order.data_set].path(number) for number in order.part_numbers()]


@contextlib.contextmanager
def _locked(order: Order, folder: Path) -> Iterator[None]:
    """Hold the lock files of the order's databases, shared to read and alone to write, in one fixed order."""
    names = sorted({*order.databases, *([order.writes] if order.writes else [])})
    with contextlib.ExitStack() as stack:
        for name in names:
            handle = stack.enter_context((folder / f"{name}.lock").open("rb"))
            fcntl.flock(handle, fcntl.LOCK_EX if name == order.writes else fcntl.LOCK_SH)
        yield


def connect(order: Order, temp: Path) -> duckdb.DuckDBPyConnection:
    """An engine of the job's own, with its threads and memory, that may spill into `temp`."""
    settings: dict[str, Any] = {
        "threads": order.threads,
        "memory_limit": f"{order.memory_mb}MB",
        "temp_directory": str(temp),
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
    }
    return duckdb.connect(config=settings)


def _attach(connection: duckdb.DuckDBPyConnection, order: Order, folder: Path) -> None:
    for name in order.databases:
        connection.execute(f"ATTACH '{folder / name}.duckdb' AS {name} (READ_ONLY)")
    if order.writes:
        connection.execute(f"ATTACH '{folder / order.writes}.duckdb' AS {order.writes}")


def _cpu_wait_s() -> float:
    """Seconds that this process's threads stood in the run queue; 0 where the kernel does not say."""
    waited = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            waited += int(path.read_text().split()[1])
    return waited * NS


def _profiled(text: str) -> dict[str, int]:
    """Spilled bytes, rows scanned and bytes read and written, from the engine's own profile of the query."""
    profile = json.loads(text)
    return {
        "temp_bytes": int(profile.get("system", {}).get("peak_temp_dir_size", 0)),
        "input_rows": int(profile.get("query", {}).get("total_rows_scanned", 0)),
        "read_bytes": int(profile.get("io", {}).get("total_bytes_read", 0)),
        "written_bytes": int(profile.get("io", {}).get("total_bytes_written", 0)),
    }


def _explain(connection: duckdb.DuckDBPyConnection, sql: str) -> Plan:
    return read_plan(connection.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchall()[0][1])


def run_query(connection: duckdb.DuckDBPyConnection, order: Order, folder: Path, temp: Path) -> Measured:
    """Run the order's SQL in this process and say what it took; an error of the engine is a result, not raised."""
    out = temp / "out.data"
    sql = order.sql.replace("{input}", input_relation(order, folder)).replace("{out}", str(out))
    facts: dict[str, Any] = {}
    started = time.monotonic()
    try:
        with _locked(order, folder), contextlib.closing(connection):  # closed first: a written database is whole
            locked = time.monotonic()
            facts["lock_wait_s"] = locked - started
            _attach(connection, order, folder)
            plan = _explain(connection, sql)
            planned = time.monotonic()
            facts |= {"plan_s": planned - locked, **asdict(plan)}
            connection.execute("SET enable_profiling = 'no_output'")
            connection.execute(sql).fetchall()
            facts["query_s"] = time.monotonic() - planned
            facts |= _profiled(connection.get_profiling_information())
            facts["cpu_wait_s"] = _cpu_wait_s()  # while the engine's threads still live
    except duckdb.Error as error:
        facts["error"] = str(error).splitlines()[0][:ERROR_CHARACTERS]
    finally:
        out.unlink(missing_ok=True)
    return Measured(runtime_s=time.monotonic() - started, **facts)


def drop_from_cache(paths: list[Path]) -> None:
    """Ask the kernel to forget the pages of these files, so that the next reader reads the disk."""
    for path in paths:
        with contextlib.suppress(OSError), path.open("rb") as handle:
            os.fsync(handle.fileno())
            os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
