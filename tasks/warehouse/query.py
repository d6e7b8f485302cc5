"""Questions in SQL from people: read-only for real, over the tables of the warehouse and nothing else.

DuckDB looks for no limit inside a function call: a question is answered by a process of its own (query_child.py), which
takes the lock itself. Killing it ends the call, gives back the memory and lets go of the lock."""

import io
import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc

import tasks
from tasks import errors
from tasks.errors import BadInput
from tasks.warehouse.place import Warehouse

if TYPE_CHECKING:
    import duckdb

CHILD = "tasks.warehouse.query_child"
MS = 1000


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
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as said:
        asked.write(json.dumps(question).encode())
        asked.seek(0)
        with _process(asked, said) as child:
            try:
                return _answer(child, said, limit_s)
            finally:
                child.kill()


def _process(asked: IO[bytes], said: IO[bytes]) -> "subprocess.Popen[bytes]":
    """The child, in this working folder, but with no import from there."""
    root = str(Path(tasks.__file__).parents[1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-P", "-m", CHILD, str(os.getpid())]
    return subprocess.Popen(
        command, stdin=asked, stdout=subprocess.PIPE, stderr=said, env=os.environ | {"PYTHONPATH": path}, bufsize=0
    )  # no buffer: what it holds no poll sees


def _answer(child: "subprocess.Popen[bytes]", said: IO[bytes], limit_s: float) -> QueryResult:
    pipe = cast(io.RawIOBase, child.stdout)
    _next(child, pipe, said)  # it has the warehouse
    if not _is_readable(pipe, limit_s):
        raise _too_slow(limit_s)
    is_cut = _next(child, pipe, said)["is_cut"]
    try:
        return QueryResult(pa.ipc.open_stream(io.BufferedReader(pipe)).read_all(), is_cut)
    except (OSError, pa.ArrowException) as error:
        raise _ended(child, said) from error


def _next(child: "subprocess.Popen[bytes]", pipe: io.RawIOBase, said: IO[bytes]) -> dict[str, Any]:
    """What the child says next; an error that it met is raised here."""
    line = pipe.readline()
    if not line.endswith(b"\n"):
        raise _ended(child, said)
    told: dict[str, Any] = json.loads(line)
    if "error" in told:
        raise getattr(errors, told["error"])(*told["values"])
    return told


def _is_readable(pipe: io.RawIOBase, limit_s: float) -> bool:
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return bool(poll.poll(limit_s * MS or None))


def _too_slow(limit_s: float) -> BadInput:
    problem = f"stopped after {limit_s:g} s, its time limit: whoever wants to write waits for it"
    fix = "ask for less, or allow more with --limit-s or whorl.query_limit_s (0: no limit)"
    return BadInput("query", problem, "an answer within that time", fix)


def _ended(child: "subprocess.Popen[bytes]", said: IO[bytes]) -> Exception:
    """Why the child ended before it had answered: a signal is the query's fault, a status one of ours."""
    status = child.wait()
    if status < 0:
        problem = f"its process was ended by {signal.Signals(-status).name}; often that means too little memory"
        return BadInput("query", problem, "a query that fits", "ask for less")
    said.seek(0)
    return RuntimeError(f"{CHILD} ended with status {status}\n{said.read().decode(errors='replace')}")


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
        values = [_value(one, text) for one, text in zip(column, _texts(column), strict=True)]
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


def _value(one: pa.Scalar, text: str | None) -> Any:
    try:
        return one.as_py()
    except (OverflowError, ValueError):
        return text


def _texts(column: pa.Array) -> list[str | None]:
    """The values as DuckDB writes them, in order."""
    import duckdb

    with duckdb.connect(":memory:", config={"threads": "1"}) as connection:
        table = pa.table({"a": column})
        return [text for (text,) in connection.from_arrow(table).project("a::VARCHAR").fetchall()]
