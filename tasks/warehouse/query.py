"""Questions in SQL from people: read-only for real, over the tables of the warehouse and nothing else.

DuckDB looks for no limit inside a function call: a question is answered by a process of its own (`main`), which
takes the lock itself. Killing it ends the call, gives back the memory and lets go of the lock. It reads JSON from stdin
and answers with a line when the warehouse is open, a line when the rows are there and nothing of the warehouse is held
any more, and the rows as an Arrow stream. A line with an error may take the place of either."""

import io
import json
import math
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc

import tasks
from tasks import errors
from tasks.errors import BadInput, WhorlError
from tasks.machine import die_with_parent
from tasks.warehouse.place import Warehouse

if TYPE_CHECKING:
    import duckdb

    from tasks.warehouse.connection import Connection

CHILD = "tasks.warehouse.query"
MS = 1000
QUESTIONS = ("SELECT", "EXPLAIN", "MULTI")  # MULTI: PIVOT
EXPECTED = "one SELECT over the tables of the warehouse"
FIX = "'whorl warehouse dictionary' lists tables and columns"
SAYS_NO_MEMORY = "Out of Memory"
MB, GIB = 1_000_000, 1 << 30
LEAST_BYTES = 3 * GIB // 2
BESIDE_MB = 512  # rows that have left DuckDB, and what one call of a function takes beside memory_mb


@dataclass(frozen=True)
class QueryResult:
    """The rows of a query. is_cut: there are more than were asked for."""

    rows: pa.Table
    is_cut: bool


def ask(warehouse: Warehouse, sql: str, *, limit: int | None = None, limit_s: float = 0) -> QueryResult:
    """Run one query on a connection that can neither write nor reach files, extensions or other databases.

    limit: rows to return at most. limit_s: seconds that it may take once it has the warehouse; 0: any time. Raises
    BadInput with one line for what is no query, takes longer, needs too much memory, or what DuckDB refuses."""
    question = {"warehouse": warehouse.model_dump(mode="json"), "sql": sql, "limit": limit}
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
        stdin.write(json.dumps(question).encode())
        stdin.seek(0)
        with _process(stdin, stderr) as child:
            try:
                return _answer(child, stderr, limit_s)
            finally:
                child.kill()


def _process(stdin: IO[bytes], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    """The child, in this working folder, but with no import from there."""
    root = str(Path(tasks.__file__).parents[1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-P", "-m", CHILD, str(os.getpid())]
    return subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, env=os.environ | {"PYTHONPATH": path}, bufsize=0
    )  # no buffer: what it holds no poll sees


def _answer(child: subprocess.Popen[bytes], stderr: IO[bytes], limit_s: float) -> QueryResult:
    pipe = cast(io.RawIOBase, child.stdout)
    _next(child, pipe, stderr)  # it has the warehouse
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    if not poll.poll(limit_s * MS or None):
        problem = f"stopped after {limit_s:g} s, its time limit: whoever wants to write waits for it"
        fix = "ask for less, or allow more with --limit-s or whorl.query_limit_s (0: no limit)"
        raise BadInput("query", problem, "an answer within that time", fix)
    is_cut = _next(child, pipe, stderr)["is_cut"]
    try:
        return QueryResult(pa.ipc.open_stream(io.BufferedReader(pipe)).read_all(), is_cut)
    except (OSError, pa.ArrowException) as error:
        raise _ended(child, stderr) from error


def _next(child: subprocess.Popen[bytes], pipe: io.RawIOBase, stderr: IO[bytes]) -> dict[str, Any]:
    """What the child says next; an error that it met is raised here."""
    line = pipe.readline()
    if not line.endswith(b"\n"):
        raise _ended(child, stderr)
    message: dict[str, Any] = json.loads(line)
    if "error" in message:
        raise getattr(errors, message["error"])(*message["values"])
    return message


def _ended(child: subprocess.Popen[bytes], stderr: IO[bytes]) -> Exception:
    """Why the child ended before it had answered: a signal is the query's fault, a status one of ours."""
    status = child.wait()
    if status < 0:
        problem = f"its process was ended by {signal.Signals(-status).name}; often that means too little memory"
        return BadInput("query", problem, "a query that fits", "ask for less")
    stderr.seek(0)
    return RuntimeError(f"{CHILD} ended with status {status}\n{stderr.read().decode(errors='replace')}")


# Arrow has no such type or loses a part of it (the largest UHUGEINT would become -1, 24:00 o'clock midnight)
UNKNOWN_TO_ARROW = {"interval", "uhugeint", "bignum", "bit", "time", "time with time zone", "time_ns"}
NESTED = {"list", "array", "struct", "map", "union"}
BATCH_ROWS = 10_000


def known_to_arrow(relation: "duckdb.DuckDBPyRelation") -> "duckdb.DuckDBPyRelation":
    """The same rows, columns of types that Arrow does not know as texts."""
    types = relation.types
    if not any(_is_unknown(kind) for kind in types):
        return relation
    names = [name.replace('"', '""') for name in relation.columns]
    columns = [
        f'#{at}{"::VARCHAR" if _is_unknown(kind) else ""} AS "{name}"'
        for at, (kind, name) in enumerate(zip(types, names, strict=True), 1)
    ]
    return relation.project(", ".join(columns))


def _is_unknown(kind: Any) -> bool:
    """Whether a type, or one inside it, is unknown to Arrow."""
    if kind.id in NESTED:
        return any(_is_unknown(inner) for _, inner in kind.children if hasattr(inner, "id"))  # an array has its size
    return kind.id in UNKNOWN_TO_ARROW


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows one by one, as Python's own values; texts for infinite numbers and for times beyond Python's years.

    table: column names must differ."""
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        columns = [_values(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            yield dict(zip(batch.schema.names, row, strict=True))


def _values(column: pa.Array) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):  # a year before 1 or after 9999, or infinity
        values = [_value(scalar, text) for scalar, text in zip(column, _texts(column), strict=True)]
    is_flat = pa.types.is_floating(column.type)
    if pa.types.is_nested(column.type) or (is_flat and pc.any(pc.is_inf(column)).as_py()):
        return [_finite(value) for value in values]
    return values


def _finite(value: Any) -> Any:
    """The value with texts for infinite numbers, also for those inside it."""
    if isinstance(value, float):
        return str(value) if math.isinf(value) else value
    if isinstance(value, list | tuple):
        return type(value)(_finite(inner) for inner in value)
    return {_finite(key): _finite(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def _value(scalar: pa.Scalar, text: str | None) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return text


def _texts(column: pa.Array) -> list[str | None]:
    """The values as DuckDB writes them, in order."""
    import duckdb

    with duckdb.connect(":memory:", config={"threads": "1"}) as connection:
        table = pa.table({"a": column})
        return [text for (text,) in connection.from_arrow(table).project("a::VARCHAR").fetchall()]


def main() -> None:
    """Answer the question on stdin. The parent decides when it has waited enough, and kills."""
    from tasks.warehouse.connection import reading

    die_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C reaches the parent as well
    question = json.load(sys.stdin)
    warehouse = Warehouse.model_validate(question["warehouse"])
    answer = sys.stdout.buffer
    try:
        with reading(warehouse) as connection:
            _send(answer, {})
            table, is_cut = _rows(connection, warehouse, question["sql"], question["limit"])
    except WhorlError as error:
        _send(answer, {"error": type(error).__name__, "values": error.__reduce__()[1]})
        return
    _send(answer, {"is_cut": is_cut})
    with pa.ipc.new_stream(answer, table.schema) as stream:
        stream.write_table(table)


def _send(answer: BinaryIO, message: dict[str, Any]) -> None:
    answer.write(json.dumps(message).encode() + b"\n")
    answer.flush()


def _rows(connection: "Connection", warehouse: Warehouse, sql: str, limit: int | None) -> tuple[pa.Table, bool]:
    """The rows, at most `limit`, and whether there are more. Raises BadInput."""
    import duckdb

    from tasks.warehouse.faults import is_damage

    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    _limit_memory(warehouse.memory_mb + BESIDE_MB)
    try:
        return _cut(connection, _only_question(connection, sql), limit)
    except (duckdb.Error, OSError, MemoryError, pa.ArrowException) as error:  # rows come late, and then pyarrow fails
        if isinstance(error, duckdb.OutOfMemoryException | MemoryError) or SAYS_NO_MEMORY in str(error):
            raise _too_large(warehouse, error) from error
        if is_damage(error):
            raise  # `reading` says what to do
        raise BadInput("query", _one_line(error), EXPECTED, FIX) from error


def _limit_memory(more_mb: int) -> None:
    """Let this process take so much more address space than it has now; no function call gets around that."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    allowed = max(LEAST_BYTES, used + more_mb * MB)
    if most == resource.RLIM_INFINITY or allowed < most:
        resource.setrlimit(resource.RLIMIT_AS, (allowed, most))


def _only_question(connection: "Connection", sql: str) -> "duckdb.Statement":
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise BadInput("query", f"{len(statements)} statements", EXPECTED, "ask one after the other")
    if statements[0].type.name not in QUESTIONS:
        kind = statements[0].type.name
        raise BadInput("query", f"{kind} is no question", EXPECTED, "nothing is changed from here")
    return statements[0]


def _too_large(warehouse: Warehouse, error: Exception) -> BadInput:
    from tasks.warehouse.faults import SAYS_NO_SPILL

    if SAYS_NO_SPILL in str(error):
        problem = f"more than the {warehouse.spill_mb:,} MB of disk that DuckDB may use for what memory does not hold"
        return BadInput("query", problem, "a query that fits", "raise whorl.spill_mb, or ask for less")
    problem = f"more than the {warehouse.memory_mb:,} MB that DuckDB may use"
    return BadInput("query", problem, "a query that fits", "raise whorl.memory_mb, or ask for less")


def _cut(connection: "Connection", question: "duckdb.Statement", limit: int | None) -> tuple[pa.Table, bool]:
    reader = known_to_arrow(connection.sql(question)).to_arrow_reader(BATCH_ROWS)
    batches: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in reader:
        batches.append(batch)
        n_rows += batch.num_rows
        if limit is not None and n_rows > limit:
            break
    table = pa.Table.from_batches(batches, schema=reader.schema)
    table = table.rename_columns(_distinct(table.column_names))
    return table if limit is None else table.slice(0, limit), limit is not None and n_rows > limit


def _distinct(names: list[str]) -> list[str]:
    """The names, a repeated one with a number: two columns of one name would be one key in JSON."""
    distinct: list[str] = []
    for name in names:
        number, new = 1, name
        while new in distinct:
            number, new = number + 1, f"{name}_{number + 1}"
        distinct.append(new)
    return distinct


def _one_line(error: Exception) -> str:
    """DuckDB's message without the copy of the query below it, but with its hints."""
    lines = [line.strip() for line in str(error).splitlines()]
    kept = lines[: next((at for at, line in enumerate(lines) if line.startswith("LINE ")), len(lines))]
    return " ".join(line for line in kept if line).rstrip(".!")


if __name__ == "__main__":
    main()
