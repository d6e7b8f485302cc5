"""Connections: opened late, closed early, always under the lock."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from tasks.errors import BadSetting, NoWarehouse, WarehouseBroken, WarehouseBusy
from tasks.storage import narrow, private
from tasks.warehouse import lock, migrations
from tasks.warehouse.faults import broken, first_line, of_duckdb, storage_faults
from tasks.warehouse.migrations import transaction as transaction  # for who writes
from tasks.warehouse.place import Warehouse

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Connection = duckdb.DuckDBPyConnection
RELEASE_S = 1.0  # a killed process lets go of our lock a little before it lets go of DuckDB's
POLL_S = 0.02


@contextmanager
def reading(warehouse: Warehouse) -> Iterator[Connection]:
    """A read-only connection under the shared lock; a warehouse of an older version is migrated first.

    Raises NoWarehouse if there is none yet, WarehouseBusy, WarehouseBroken."""
    require(warehouse)
    with lock.hold(warehouse.home, "shared", warehouse.lock_wait_s):
        with opened(warehouse, warehouse.file, read_only=True) as connection:
            if not migrations.pending(connection):
                yield connection
                return
    with writing(warehouse):
        pass
    with (
        lock.hold(warehouse.home, "shared", warehouse.lock_wait_s),
        opened(warehouse, warehouse.file, read_only=True) as connection,
    ):
        yield connection


@contextmanager
def writing(warehouse: Warehouse) -> Iterator[Connection]:
    """A read-write connection under the exclusive lock, migrated to this version.

    What killed processes spilled goes first. The caller opens its own transaction.
    Raises WarehouseBusy, WarehouseBroken."""
    with lock.hold(warehouse.home, "exclusive", warehouse.lock_wait_s):
        clear_spill(warehouse.spill)
        narrow(warehouse.file)
        if not warehouse.file.exists():
            create(warehouse, warehouse.file)
        with opened(warehouse, warehouse.file, read_only=False) as connection:
            migrations.migrate(connection)
            yield connection


def require(warehouse: Warehouse, word: str = "jobs") -> None:
    """Raise NoWarehouse if nobody has filled it yet. word: of the rows that are missed, for the advice."""
    with storage_faults(warehouse.file):
        is_there = warehouse.file.exists()
    if not is_there:
        raise NoWarehouse(
            f"{warehouse.file}: there is no warehouse yet; fill one, for instance with "
            f"'whorl {word} ingest FILE', or name another home with WHORL_HOME"
        )


def create(warehouse: Warehouse, file: Path) -> None:
    """A new, migrated warehouse at `file`, built beside it and renamed: it exists in whole or not at all.

    A log that an earlier file of that name left behind is moved aside: it would keep the new file from opening."""
    draft = file.with_name(f"{file.name}.new")
    with storage_faults(file):
        remove_with_logs(draft)
        build(warehouse, draft)
        move_logs(file, set_aside(file, "lost"))
        draft.replace(file)


def build(warehouse: Warehouse, file: Path) -> None:
    """A new file with all tables of this version and no row."""
    with opened(warehouse, file, read_only=False) as connection:
        migrations.migrate(connection)
        finish(connection, file)


def finish(connection: Connection, file: Path) -> None:
    """Write the log of an open file into it, so that the file alone is whole.

    Raises WarehouseBroken if DuckDB leaves a log all the same."""
    connection.execute("CHECKPOINT")
    connection.close()
    if logs_of(file):
        raise WarehouseBroken(f"{file}: DuckDB did not finish it (its log is still there); run the same again")


def fetch(warehouse: Warehouse, sql: str, values: Mapping[str, Any] | None = None) -> "pd.DataFrame":
    """The rows of one query ($name parameters) as a pandas frame; the connection is closed again."""
    with reading(warehouse) as connection:
        import pandas  # noqa: F401 - DuckDB would import it, and take an interrupt of that for a lack of it

        return connection.execute(sql, dict(values or {})).df()


def count_of(connection: Connection, sql: str, values: Any = None) -> int:
    """The only number that a query gives."""
    row = connection.execute(sql, values).fetchone()
    return int(row[0]) if row else 0


def fetch_arrow(
    warehouse: Warehouse, queries: Sequence[str], values: Mapping[str, Any] | None = None
) -> "list[pa.Table]":
    """The rows of several queries ($name parameters) as Arrow tables of one moment; the connection is closed again."""
    with reading(warehouse) as connection:
        return [connection.sql(sql, params=dict(values or {})).to_arrow_table() for sql in queries]


@contextmanager
def opened(warehouse: Warehouse, file: Path, *, read_only: bool) -> Iterator[Connection]:
    """A DuckDB connection with the warehouse's limits; the caller holds the lock.

    Raises WarehouseBroken, WarehouseBusy if another program has the file open, and what storage_faults tells."""
    rights = nullcontext() if read_only else private()  # DuckDB makes logs as it goes
    with storage_faults(file), rights, closing(_connect(warehouse, file, read_only=read_only)) as connection:
        with suppress(duckdb.InvalidInputException):  # `ask` in another thread has locked the settings
            connection.execute("SET enable_progress_bar = false")  # it would be drawn among our own lines
            connection.execute(f"SET max_temp_directory_size = '{warehouse.spill_mb}MB'")  # ignored in `config`
        yield connection


def _connect(warehouse: Warehouse, file: Path, *, read_only: bool) -> Connection:
    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{warehouse.memory_mb}MB",
        "threads": str(warehouse.threads),
        "temp_directory": str(warehouse.spill),
        "preserve_insertion_order": "false",
        "autoinstall_known_extensions": "false",
    }
    if "?" in str(file):
        raise BadSetting(f"{file}: DuckDB takes what follows a '?' for options; expected a path without one; move it")
    deadline = time.monotonic() + RELEASE_S
    while True:
        try:
            return duckdb.connect(str(file), read_only=read_only, config=limits)
        except duckdb.Error as error:
            fault = of_duckdb(file, error)
            if isinstance(fault, WarehouseBusy) and time.monotonic() < deadline:
                time.sleep(POLL_S)
                continue
            if fault is None or isinstance(fault, WarehouseBroken):
                fault = broken(file, f"DuckDB cannot open it ({first_line(error)})")
            raise fault from error


SPILLED = "duckdb_temp_"  # DuckDB's prefix, before the process id; it removes these files itself unless it is killed
MB = 1_000_000

logger = logging.getLogger(__name__)


def clear_spill(folder: Path) -> list[Path]:
    """Remove what was spilled by processes that are gone; returns the files. Other files in the folder stay.

    The caller holds the exclusive lock and has no connection yet, so nobody alive needs any of them, whatever process
    id stands in their names: in a container the next process often gets the same one."""
    removed, n_bytes = [], 0
    for file in sorted(folder.glob(f"{SPILLED}*")):
        try:
            size = file.stat().st_size
            file.unlink()
        except OSError as error:  # another user's: no reason to keep a writer from its work
            logger.warning("%s: cannot be removed (%s); a killed process left it", file, error.strerror)
            continue
        removed.append(file)
        n_bytes += size
    if removed:
        logger.info("removed %d files that killed processes spilled, %d MB", len(removed), n_bytes // MB)
    return removed


ENDINGS = (".wal", ".wal.checkpoint", ".wal.recovery")  # what DuckDB 2.0 writes


def logs_of(file: Path) -> list[Path]:
    """The logs that stand beside a file now; none if all that was committed is in the file itself."""
    return [log for ending in ENDINGS if (log := file.with_name(f"{file.name}{ending}")).exists()]


def move_logs(file: Path, target: Path) -> None:
    """Rename the logs of one file to be those of another."""
    for log in logs_of(file):
        log.rename(target.with_name(f"{target.name}{log.name.removeprefix(file.name)}"))


def set_aside(file: Path, reason: str) -> Path:
    """A name beside `file` that is free: file name, reason and time."""
    return file.with_name(f"{file.name}.{reason}-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S%f')}")


def remove_with_logs(file: Path) -> None:
    """Remove a draft and its logs, if they are there."""
    for leftover in (file, *logs_of(file)):
        leftover.unlink(missing_ok=True)
