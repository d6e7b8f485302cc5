"""Questions in SQL from people: read-only for real, over the tables of the warehouse and nothing else."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from tasks.errors import BadInput
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.faults import SAYS_NO_SPILL, is_damage
from tasks.warehouse.place import Warehouse
from tasks.warehouse.values import known_to_arrow

QUESTIONS = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.MULTI}  # MULTI: PIVOT
BATCH_ROWS = 10_000
STOP_AGAIN_S = 0.1  # an interruption that comes between two batches is lost
EXPECTED = "one SELECT over the tables of the warehouse"
FIX = "'whorl warehouse dictionary' lists tables and columns"


@dataclass(frozen=True)
class Answer:
    """The rows of a query. is_cut: there are more than were asked for."""

    rows: pa.Table
    is_cut: bool


def ask(warehouse: Warehouse, sql: str, *, limit: int | None = None, limit_s: float = 0) -> Answer:
    """Run one query on a connection that can neither write nor reach files, extensions or other databases.

    limit: rows to return at most. limit_s: seconds that it may take once it has the warehouse; 0: any time. Raises
    BadInput with one line for what is no query, takes longer, or what DuckDB refuses."""
    with reading(warehouse) as connection:
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        try:
            question = _only_question(connection, sql)
            return _stoppable(connection, lambda stop: _answer(connection, question, limit, stop), limit_s)
        except duckdb.OutOfMemoryException as error:
            raise _too_large(warehouse, error) from error
        except (duckdb.Error, OSError, pa.ArrowException) as error:  # rows are read late, and then pyarrow fails
            if is_damage(error):
                raise  # `reading` says what to do
            raise BadInput("query", _one_line(error), EXPECTED, FIX) from error


def _only_question(connection: Connection, sql: str) -> duckdb.Statement:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise BadInput("query", f"{len(statements)} statements", EXPECTED, "ask one after the other")
    if statements[0].type not in QUESTIONS:
        kind = statements[0].type.name
        raise BadInput("query", f"{kind} is no question", EXPECTED, "nothing is changed from here")
    return statements[0]


def _too_large(warehouse: Warehouse, error: duckdb.Error) -> BadInput:
    if SAYS_NO_SPILL in str(error):
        problem = f"more than the {warehouse.spill_mb:,} MB of disk that DuckDB may use for what memory does not hold"
        return BadInput("query", problem, "a query that fits", "raise whorl.spill_mb, or ask for less")
    problem = f"more than the {warehouse.memory_mb:,} MB that DuckDB may use"
    return BadInput("query", problem, "a query that fits", "raise whorl.memory_mb, or ask for less")


def _stoppable(connection: Connection, work: Callable[[threading.Event], Answer], limit_s: float) -> Answer:
    """Run it in a thread, so that Ctrl-C and the time limit reach this one: DuckDB looks for neither."""
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=1) as pool:
        answer = pool.submit(work, stop)
        try:
            if wait([answer], limit_s or None).done:
                return answer.result()
        except KeyboardInterrupt:
            _end(connection, answer, stop)
            raise
        _end(connection, answer, stop)
    problem = f"stopped after {limit_s:g} s, its time limit: whoever wants to write waits for it"
    fix = "ask for less, or allow more with --limit-s or whorl.query_limit_s (0: no limit)"
    raise BadInput("query", problem, "an answer within that time", fix)


def _end(connection: Connection, answer: Future[Answer], stop: threading.Event) -> None:
    stop.set()
    while not answer.done():
        connection.interrupt()
        wait([answer], STOP_AGAIN_S)


def _answer(connection: Connection, question: duckdb.Statement, limit: int | None, stop: threading.Event) -> Answer:
    reader = known_to_arrow(connection.sql(question)).to_arrow_reader(BATCH_ROWS)
    batches: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in reader:
        batches.append(batch)
        n_rows += batch.num_rows
        if stop.is_set() or (limit is not None and n_rows > limit):
            break
    table = pa.Table.from_batches(batches, schema=reader.schema)
    table = table.rename_columns(_distinct(table.column_names))
    return Answer(table if limit is None else table.slice(0, limit), limit is not None and n_rows > limit)


def _distinct(names: list[str]) -> list[str]:
    """The names, a repeated one with a number: two columns of one name would be one key in JSON."""
    found: list[str] = []
    for name in names:
        number, new = 1, name
        while new in found:
            number, new = number + 1, f"{name}_{number + 1}"
        found.append(new)
    return found


def _one_line(error: Exception) -> str:
    """DuckDB's message without the copy of the query below it, but with its hints."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = lines[: next((at for at, line in enumerate(lines) if line.startswith("LINE ")), len(lines))]
    return " ".join(line for line in told if line).rstrip(".!")
