"""The engine under test: DuckDB builds the data sets and runs vertices, on files that are never the warehouse's."""

import contextlib
import fcntl
import hashlib
import json
import os
import resource
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb

from tasks.jobs.record.datasets import DATA_SETS, DATABASES, MACROS, PARTS, WEBLOG_COLUMNS, DataSet
from tasks.jobs.record.orders import Measured, Order, Planned
from tasks.jobs.record.signature import read_plan

ERROR_CHARACTERS = 200
BLOCK_BYTES = 512  # ru_inblock counts these
BYTES_PER_KIB = 1024
REPLICAS = "replicas"  # of the databases, for planning: nobody locks them


def _macros(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    connection.execute(MACROS.format(seed=seed))


def _write_part(connection: duckdb.DuckDBPyConnection, data_set: DataSet, folder: Path, part: int, rows: int) -> None:
    select = data_set.select.format(part=part, lo=part * rows, hi=(part + 1) * rows)
    kind = "(FORMAT csv, HEADER)" if data_set.suffix == "csv" else "(FORMAT parquet)"
    connection.execute(f"COPY ({select}) TO '{folder / data_set.path(part)}' {kind}")


def _made(scale: float, seed: int) -> str:
    """What decides the data sets."""
    told = repr((scale, seed, MACROS, DATA_SETS, DATABASES))
    return hashlib.sha256(told.encode()).hexdigest()


def build_data(folder: Path, scale: float, seed: int) -> None:
    """Write every data set and database into `folder`; nothing happens where these are complete already."""
    finished, made = folder / "complete", _made(scale, seed)
    if finished.exists() and finished.read_text() == made:
        return
    finished.unlink(missing_ok=True)
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
    (folder / REPLICAS).mkdir(exist_ok=True)
    for name in DATABASES:
        shutil.copyfile(folder / f"{name}.duckdb", folder / REPLICAS / f"{name}.duckdb")
    finished.write_text(made)


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


def statement(order: Order, folder: Path) -> str:
    """The order's SQL with its input, partial results and output put in."""
    sql = order.sql
    if order.parts is not None:
        sql = sql.replace("{input}", input_relation(order, folder))
    if order.partials:
        files = ", ".join(f"'{path}'" for path in order.partials)
        sql = sql.replace("{partials}", f"read_parquet([{files}])")
    if order.result is None:
        return sql.replace("{out}", os.devnull)
    if "{out}" in sql:
        return sql.replace("{out}", order.result)
    return f"COPY ({sql}) TO '{order.result}' (FORMAT parquet)"


@contextlib.contextmanager
def _locked(order: Order, folder: Path) -> Iterator[int]:
    """Hold the lock files of the order's databases, shared to read and alone to write, in one fixed order; how many."""
    names = sorted({*order.databases, *([order.writes] if order.writes else [])})
    with contextlib.ExitStack() as stack:
        for name in names:
            handle = stack.enter_context((folder / f"{name}.lock").open("rb"))
            fcntl.flock(handle, fcntl.LOCK_EX if name == order.writes else fcntl.LOCK_SH)
        yield len(names)


def connect(temp: Path) -> duckdb.DuckDBPyConnection:
    """An engine of a worker's own, that may spill into `temp` and keeps no copy of what it read."""
    temp.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {
        "threads": 1,
        "temp_directory": str(temp),
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "enable_external_file_cache": False,
    }
    connection = duckdb.connect(config=settings)
    connection.execute("SET enable_profiling = 'no_output'")
    return connection


@contextlib.contextmanager
def _attached(connection: duckdb.DuckDBPyConnection, order: Order, folder: Path) -> Iterator[None]:
    names = [*order.databases, *([order.writes] if order.writes else [])]
    try:
        for name in names:
            how = "" if name == order.writes else " (READ_ONLY)"
            connection.execute(f"ATTACH IF NOT EXISTS '{folder / name}.duckdb' AS {name}{how}")
        yield
    finally:  # detached before the lock goes: a written database is whole
        for name in names:
            connection.execute(f"DETACH DATABASE IF EXISTS {name}")


def _profiled(text: str) -> dict[str, int]:
    """Spilled and buffered bytes, rows scanned, bytes read and written, from the engine's own profile of the query."""
    profile = json.loads(text)
    return {
        "temp_bytes": int(profile.get("system", {}).get("peak_temp_dir_size", 0)),
        "buffer_bytes": int(profile.get("system", {}).get("peak_buffer_memory", 0)),
        "input_rows": int(profile.get("query", {}).get("total_rows_scanned", 0)),
        "read_bytes": int(profile.get("io", {}).get("total_bytes_read", 0)),
        "written_bytes": int(profile.get("io", {}).get("total_bytes_written", 0)),
    }


def _used() -> tuple[float, int]:
    """CPU seconds of this process, and bytes that it made the disk deliver."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_inblock * BLOCK_BYTES


def _forget_peak_memory() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_memory_bytes() -> int:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * BYTES_PER_KIB
    return 0


def run_vertex(connection: duckdb.DuckDBPyConnection, order: Order, folder: Path) -> Measured:
    """Run the order's SQL in this process and say what it took; an error of the engine is a result, not raised."""
    facts: dict[str, Any] = {}
    _forget_peak_memory()
    if order.is_cold:
        drop_from_cache(input_files(order, folder))
    started, (cpu_before_s, disk_before) = time.monotonic(), _used()
    try:
        connection.execute(f"SET memory_limit = '{order.memory_mb}MB'; SET threads = {order.threads}")
        waiting = time.monotonic()
        with _locked(order, folder) as n_locks:
            locked = time.monotonic()
            facts["lock_wait_s"] = locked - waiting if n_locks else 0.0
            with _attached(connection, order, folder):
                connection.execute(statement(order, folder)).fetchall()
                facts |= _profiled(connection.get_profiling_information())
            facts["query_s"] = time.monotonic() - locked
    except (duckdb.FatalException, duckdb.InternalException):
        raise  # this engine refuses all that follows: a new worker has to take its place
    except duckdb.Error as error:
        facts["error"] = str(error).splitlines()[0][:ERROR_CHARACTERS]
    ended, (cpu_after_s, disk_after) = time.monotonic(), _used()
    return Measured(
        runtime_s=ended - started,
        cpu_s=cpu_after_s - cpu_before_s,
        disk_read_bytes=disk_after - disk_before,
        peak_memory_bytes=_peak_memory_bytes(),
        **facts,
    )


def explain(connection: duckdb.DuckDBPyConnection, order: Order, folder: Path) -> Planned:
    """Plan a whole job over copies of the databases, so that planning waits for no writer."""
    replicas = folder / REPLICAS
    try:
        connection.execute("SET parquet_metadata_cache = true")
        for name in DATABASES:
            connection.execute(f"ATTACH IF NOT EXISTS '{replicas / name}.duckdb' AS {name}")
        told = connection.execute(f"EXPLAIN (FORMAT JSON) {statement(order, folder)}").fetchall()[0][1]
    except duckdb.Error as error:
        return Planned(error=str(error).splitlines()[0][:ERROR_CHARACTERS])
    return Planned(**asdict(read_plan(told)))


def drop_from_cache(paths: list[Path]) -> None:
    """Ask the kernel to forget the pages of these files, so that the next reader reads the disk."""
    for path in paths:
        with contextlib.suppress(OSError), path.open("rb") as handle:
            os.fsync(handle.fileno())
            os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
