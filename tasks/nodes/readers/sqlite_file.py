"""An SQLite database, opened so that nothing of it changes: its tables, their columns, their rows."""

import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from tasks.errors import BadInput, quoted
from tasks.read_limits import ReadLimits
from tasks.reading import open_plain
from tasks.storage import ADDRESS

MAGIC = b"SQLite format 3\x00"
BLOCK_BYTES = 4 * 2**20


@contextmanager
def opened(path: str, limits: ReadLimits) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write. Raises BadInput for what is no database, is damaged, or has unsaved changes."""
    with _local(path, limits) as local:
        if local.with_name(f"{local.name}-wal").exists() and local.with_name(f"{local.name}-wal").stat().st_size:
            fix = "run: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'"
            raise BadInput(
                path, "changes stand beside it in its -wal file", "a database that is complete in itself", fix
            )
        try:
            uri = f"file:{quote(str(local))}?mode=ro&immutable=1"
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                connection.text_factory = lambda text: text.decode("utf-8", "replace")
                yield connection
        except sqlite3.DatabaseError as error:
            raise BadInput(
                path,
                f"the database is damaged ({quoted(str(error))})",
                "a whole SQLite file",
                "copy it again",
            ) from error


def check_tables(connection: sqlite3.Connection, path: str, needed: Mapping[str, Sequence[str]], what: str) -> None:
    """Raises BadInput if a table or a column that is needed is missing. what: whose tables they are."""
    names = sorted(name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
    for table, columns in needed.items():
        if table not in names:
            raise BadInput(
                path, f"no table '{table}' among {quoted(names)}", what, "check that it is the right database"
            )
        there = columns_of(connection, table)
        if missing := [column for column in columns if column not in there]:
            problem = f"table '{table}' has no column '{missing[0]}' among {quoted(there)}"
            raise BadInput(path, problem, what, "check that it is the right database")


def columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    """The columns of a table; none if there is no such table."""
    return [str(row[1]) for row in connection.execute(f'PRAGMA table_info("{table}")')]


def rows_of(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> pd.DataFrame:
    """Some columns of a table, as SQLite holds them (objects), in its order; None for those it lacks."""
    there = set(columns_of(connection, table))
    told = ", ".join(f'"{name}"' if name in there else f'NULL AS "{name}"' for name in columns)
    rows = connection.execute(f'SELECT {told} FROM "{table}"').fetchall()
    return pd.DataFrame(rows, columns=list(columns), dtype=object)


@contextmanager
def _local(path: str, limits: ReadLimits) -> Iterator[Path]:
    """The file on this machine, fetched if it lies elsewhere."""
    with open_plain(path) as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise BadInput(
                path, "not an SQLite database", "a file that begins with 'SQLite format 3'", "check the path"
            )
        if ADDRESS not in path:
            yield Path(path).expanduser().resolve()
            return
        stream.seek(0)
        with tempfile.TemporaryDirectory(prefix="whorl-sqlite-") as folder:
            local, n_bytes = Path(folder) / "copy.sqlite", 0
            with local.open("wb") as copy:
                while block := stream.read(BLOCK_BYTES):
                    n_bytes += len(block)
                    if n_bytes > limits.max_bytes:
                        problem = f"more than {limits.max_bytes:,} bytes"
                        raise BadInput(path, problem, "a smaller file", "raise read.limits.max_bytes")
                    copy.write(block)
            yield local
