"""Questions in SQL from people: read-only for real, over the tables of the warehouse and nothing else."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from tasks.errors import BadInput
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse

QUESTIONS = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.MULTI}  # MULTI: PIVOT
BATCH_ROWS = 10_000
EXPECTED = "one SELECT over the tables of the warehouse"
FIX = "'whorl warehouse dictionary' lists tables and columns"


@dataclass(frozen=True)
class Answer:
    """The rows of a query. is_cut: there are more than were asked for."""

    rows: pa.Table
    is_cut: bool


def ask(warehouse: Warehouse, sql: str, *, limit: int | None = None) -> Answer:
    """Run one query on a connection that can neither write nor reach files, extensions or other databases.

    limit: rows to return at most. Raises BadInput with one line for what is no query, or what DuckDB refuses."""
    with reading(warehouse) as connection:
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        try:
            question = _only_question(connection, sql)
            return _stoppable(connection, lambda: _answer(connection, question, limit))
        except duckdb.OutOfMemoryException as error:
            problem = f"more than the {warehouse.memory_mb:,} MB that DuckDB may use"
            raise BadInput("query", problem, "a query that fits", "raise whorl.memory_mb, or ask for less") from error
        except (duckdb.Error, OSError, pa.ArrowException) as error:  # rows are read late, and then pyarrow fails
            raise BadInput("query", _one_line(error), EXPECTED, FIX) from error


def _only_question(connection: Connection, sql: str) -> duckdb.Statement:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise BadInput("query", f"{len(statements)} statements", EXPECTED, "ask one after the other")
    if statements[0].type not in QUESTIONS:
        kind = statements[0].type.name
        raise BadInput("query", f"{kind} is no question", EXPECTED, "nothing is changed from here")
    return statements[0]


def _stoppable(connection: Connection, work: Callable[[], Answer]) -> Answer:
    """Run it in a thread, so that Ctrl-C reaches this one: DuckDB does not look for signals."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        answer = pool.submit(work)
        try:
            return answer.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def _answer(connection: Connection, question: duckdb.Statement, limit: int | None) -> Answer:
    reader = connection.sql(question).to_arrow_reader(BATCH_ROWS)
    batches: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in reader:
        batches.append(batch)
        n_rows += batch.num_rows
        if limit is not None and n_rows > limit:
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
