"""The engine under test: DuckDB builds the data sets and runs vertices, on files that are never the warehouse's."""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import duckdb

from tasks.jobs.record.templates import (
    DATA_SETS,
    DATABASES,
    MACROS,
    PARTS,
    WEBLOG_COLUMNS,
    InputTable,
    MeasuredVertex,
    Order,
    PlannerEstimate,
)
from tasks.machine import die_with_parent

ERROR_CHARACTERS = 200
BLOCK_BYTES = 512  # ru_inblock counts these
BYTES_PER_KIB = 1024
REPLICAS = "replicas"  # of the databases, for planning: nobody locks them
Node = Mapping[str, Any]
FUNCTION = re.compile(r"\b([a-z_]+)\(")
STRUCTURAL = ("Join Type", "Aggregates", "Expressions")  # what an operator does, not what it is given
DIGITS = 16
PROFILED = {  # where the engine's own profile of a query says it
    "temp_bytes": ("system", "peak_temp_dir_size"),
    "buffer_bytes": ("system", "peak_buffer_memory"),
    "input_rows": ("query", "total_rows_scanned"),
    "read_bytes": ("io", "total_bytes_read"),
    "written_bytes": ("io", "total_bytes_written"),
}


def write_part(connection: duckdb.DuckDBPyConnection, data_set: InputTable, folder: Path, part: int, rows: int) -> None:
    """Write one part of a data set, of so many rows; the connection has MACROS."""
    select = data_set.select.format(part=part, lo=part * rows, hi=(part + 1) * rows)
    kind = "csv, HEADER" if data_set.suffix == "csv" else "parquet"
    connection.execute(f"COPY ({select}) TO '{folder / data_set.path(part)}' (FORMAT {kind})")


def build_data(folder: Path, scale: float, seed: int) -> None:
    """Write every data set and database into `folder`; nothing happens where these are complete already."""
    decides = repr((scale, seed, MACROS, DATA_SETS, DATABASES))
    finished, made = folder / "complete", hashlib.sha256(decides.encode()).hexdigest()
    if finished.exists() and finished.read_text() == made:
        return
    finished.unlink(missing_ok=True)
    for old in folder.glob("*.duckdb*"):
        old.unlink()
    connection = duckdb.connect()
    connection.execute(MACROS.format(seed=seed))
    for data_set in DATA_SETS.values():
        (folder / data_set.name).mkdir(parents=True, exist_ok=True)
        for part in range(PARTS):
            write_part(connection, data_set, folder, part, max(1, round(data_set.rows_per_part * scale)))
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
    off = ("preserve_insertion_order", "autoinstall_known_extensions", "enable_external_file_cache")
    settings: dict[str, Any] = {"threads": 1, "temp_directory": str(temp), **dict.fromkeys(off, False)}
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


def _used() -> tuple[float, int]:
    """CPU seconds of this process, and bytes that it made the disk deliver."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_inblock * BLOCK_BYTES


def _peak_memory_bytes() -> int:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * BYTES_PER_KIB
    return 0


def run_vertex(connection: duckdb.DuckDBPyConnection, order: Order, folder: Path) -> MeasuredVertex:
    """Run the order's SQL in this process and say what it took; an error of the engine is a result, not raised."""
    facts: dict[str, Any] = {}
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # forgets the largest memory so far
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
                profile = json.loads(connection.get_profiling_information())
                facts |= {ours: int(profile.get(part, {}).get(name, 0)) for ours, (part, name) in PROFILED.items()}
            facts["query_s"] = time.monotonic() - locked
    except (duckdb.FatalException, duckdb.InternalException):
        raise  # this engine refuses all that follows: a new worker has to take its place
    except duckdb.Error as error:
        facts["error"] = str(error).splitlines()[0][:ERROR_CHARACTERS]
    ended, (cpu_after_s, disk_after) = time.monotonic(), _used()
    return MeasuredVertex(
        runtime_s=ended - started,
        cpu_s=cpu_after_s - cpu_before_s,
        disk_read_bytes=disk_after - disk_before,
        peak_memory_bytes=_peak_memory_bytes(),
        **facts,
    )


def explain(connection: duckdb.DuckDBPyConnection, order: Order, folder: Path) -> PlannerEstimate:
    """Plan a whole job over copies of the databases, so that planning waits for no writer."""
    replicas = folder / REPLICAS
    try:
        connection.execute("SET parquet_metadata_cache = true")
        for name in DATABASES:
            connection.execute(f"ATTACH IF NOT EXISTS '{replicas / name}.duckdb' AS {name}")
        explained = connection.execute(f"EXPLAIN (FORMAT JSON) {statement(order, folder)}").fetchall()[0][1]
    except duckdb.Error as error:
        return PlannerEstimate(error=str(error).splitlines()[0][:ERROR_CHARACTERS])
    return read_plan(explained)


def drop_from_cache(paths: list[Path]) -> None:
    """Ask the kernel to forget the pages of these files, so that the next reader reads the disk."""
    for path in paths:
        with contextlib.suppress(OSError), path.open("rb") as handle:
            os.fsync(handle.fileno())
            os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_order(line: bytes) -> Order:
    """The order that a line of JSON holds; lists become tuples again."""
    fields: dict[str, Any] = json.loads(line)
    fields = {key: tuple(item) if isinstance(item, list) else item for key, item in fields.items()}
    return Order(**fields)


def serve(orders: BinaryIO, answers: BinaryIO, folder: Path, temp: Path) -> None:
    """Answer every order until stdin ends. The first answer says that the worker is ready."""
    connection = connect(temp)

    def send(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()

    send({"ready": True})
    for line in iter(orders.readline, b""):
        order, started_at = read_order(line), time.time()
        run = explain if order.is_explain else run_vertex
        outcome = asdict(run(connection, order, folder))
        send({"vertex_id": order.vertex_id, "started_at": started_at, "ended_at": time.time(), "measured": outcome})


def main(arguments: list[str]) -> None:
    """Entry point; see the module's text."""
    parent_pid, folder, what = int(arguments[0]), Path(arguments[1]), arguments[2]
    die_with_parent(parent_pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C goes to everyone: the recorder decides
    if what == "--build":
        build_data(folder, float(arguments[3]), int(arguments[4]))
        return
    temp = Path(what)
    shutil.rmtree(temp, ignore_errors=True)
    serve(sys.stdin.buffer, sys.stdout.buffer, folder, temp)


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.get("children", ()):
        yield from _walk(child)


def _shape(node: Node) -> list[Any]:
    children = [_shape(child) for child in node.get("children", ())]
    # projections are free, and the optimiser adds or drops them (narrower types) as statistics change
    if node["name"] == "PROJECTION" and len(children) == 1:
        return children[0]
    info = node.get("extra_info") or {}
    values = [str(info[key]) for key in STRUCTURAL if key in info]
    joins = [value for value in values if value.isupper()]
    functions = sorted(name for value in values for name in FUNCTION.findall(value))
    return [node["name"].strip(), joins + functions, children]


def read_plan(explained: str) -> PlannerEstimate:
    """Signature, operator counts, estimated cardinality and estimated cost of EXPLAIN (FORMAT JSON).

    The signature is a SHA-256 over the tree of operators with join types and the names of aggregate functions,
    cut to 16 hex digits; projections are left out. Raises ValueError where the text is no such plan.
    Source: Zhu et al. 2023, 3.1.
    """
    roots = json.loads(explained)
    if not isinstance(roots, list) or not roots or "name" not in roots[0]:
        raise ValueError("not a plan: expected the JSON list that EXPLAIN (FORMAT JSON) prints")
    nodes = [node for root in roots for node in _walk(root)]
    shape = json.dumps([_shape(root) for root in roots], separators=(",", ":"))
    texts = [str((node.get("extra_info") or {}).get("Estimated Cardinality", "")) for node in nodes]
    estimates = [float(text) for text in texts if text.isdigit()]  # from the root down: the first is the result's
    return PlannerEstimate(
        signature=hashlib.sha256(shape.encode()).hexdigest()[:DIGITS],
        operators=dict(sorted(Counter(node["name"].strip() for node in nodes).items())),
        estimated_rows=estimates[0] if estimates else 0.0,
        estimated_cost=sum(estimates),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
