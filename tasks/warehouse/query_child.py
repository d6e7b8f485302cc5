"""The process that answers one question (query.py starts it): JSON comes in on stdin, and an answer goes out on stdout.

The answer is a line when the warehouse is open, a line when the rows are there and nothing of the warehouse is held any
more, and the rows as an Arrow stream. A line with an error may take the place of either."""

import json
import resource
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import pyarrow as pa

from tasks.errors import BadInput, WhorlError
from tasks.machine import die_with_parent
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.faults import SAYS_NO_SPILL, is_damage
from tasks.warehouse.place import Warehouse
from tasks.warehouse.query import known_to_arrow

QUESTIONS = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.MULTI}  # MULTI: PIVOT
BATCH_ROWS = 10_000
EXPECTED = "one SELECT over the tables of the warehouse"
FIX = "'whorl warehouse dictionary' lists tables and columns"
SAYS_NO_MEMORY = "Out of Memory"
MB, GIB = 1_000_000, 1 << 30
LEAST_BYTES = 3 * GIB // 2
BESIDE_MB = 512  # rows that have left DuckDB, and what one call of a function takes beside memory_mb


def main() -> None:
    """Answer the question on stdin. The parent decides when it has waited enough, and kills."""
    die_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C reaches the parent as well
    question = json.load(sys.stdin)
    warehouse = Warehouse.model_validate(question["warehouse"])
    answer = sys.stdout.buffer
    try:
        with reading(warehouse) as connection:
            _tell(answer, {})
            table, is_cut = _rows(connection, warehouse, question["sql"], question["limit"])
    except WhorlError as error:
        _tell(answer, {"error": type(error).__name__, "values": error.__reduce__()[1]})
        return
    _tell(answer, {"is_cut": is_cut})
    with pa.ipc.new_stream(answer, table.schema) as stream:
        stream.write_table(table)


def _tell(answer: BinaryIO, told: dict[str, Any]) -> None:
    answer.write(json.dumps(told).encode() + b"\n")
    answer.flush()


def _rows(connection: Connection, warehouse: Warehouse, sql: str, limit: int | None) -> tuple[pa.Table, bool]:
    """The rows, at most `limit`, and whether there are more. Raises BadInput."""
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


def _only_question(connection: Connection, sql: str) -> duckdb.Statement:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise BadInput("query", f"{len(statements)} statements", EXPECTED, "ask one after the other")
    if statements[0].type not in QUESTIONS:
        kind = statements[0].type.name
        raise BadInput("query", f"{kind} is no question", EXPECTED, "nothing is changed from here")
    return statements[0]


def _too_large(warehouse: Warehouse, error: Exception) -> BadInput:
    if SAYS_NO_SPILL in str(error):
        problem = f"more than the {warehouse.spill_mb:,} MB of disk that DuckDB may use for what memory does not hold"
        return BadInput("query", problem, "a query that fits", "raise whorl.spill_mb, or ask for less")
    problem = f"more than the {warehouse.memory_mb:,} MB that DuckDB may use"
    return BadInput("query", problem, "a query that fits", "raise whorl.memory_mb, or ask for less")


def _cut(connection: Connection, question: duckdb.Statement, limit: int | None) -> tuple[pa.Table, bool]:
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


if __name__ == "__main__":
    main()
