"""The warehouse again from the landing folder: the same rows, whatever happened to the file."""

import logging
from collections.abc import Collection
from pathlib import Path

from tasks.errors import WarehouseBroken
from tasks.warehouse import landing, lock
from tasks.warehouse.connection import Connection, create, finish, opened, remove_with_logs, transaction
from tasks.warehouse.copies import damaged_tables, put_in_place, settle
from tasks.warehouse.faults import told_clearly
from tasks.warehouse.ingest import load
from tasks.warehouse.landed_tables import MAIN_TABLES
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import index_models

MADE_AGAIN = {"ops.migrations", "ops.files", "ops.quarantine", "ops.models", "ops.champions"}  # and the landed tables
logger = logging.getLogger(__name__)


def rebuild(warehouse: Warehouse) -> dict[str, int]:
    """Build a new warehouse from the landing folder and put it in the place of the present one.

    What no landing file holds (runs, alarms, summaries) is taken over from the present file, as far as it can be read;
    a damaged file is kept beside it. Returns the number of batches by word, and whether all of that was taken over
    (`kept_history`). Killed at any moment, the old warehouse stands or the new one does."""
    draft = warehouse.file.with_name(f"{warehouse.file.name}.rebuilding")
    with lock.hold(warehouse.home, "exclusive", warehouse.lock_wait_s), told_clearly(warehouse.home):
        remove_with_logs(draft)
        damaged = _damaged(warehouse)
        has_history = damaged is not None
        create(warehouse, draft)
        with opened(warehouse, draft, read_only=False) as connection:
            if damaged is not None:
                has_history = _take_over(connection, warehouse.file, damaged)
            counts = {word: _load_word(connection, warehouse.landing_folder, word) for word in MAIN_TABLES}
            with transaction(connection):
                index_models(connection, warehouse.models)
            finish(connection, draft)
        put_in_place(warehouse, draft, keep_old_as=None if damaged == [] else "broken")
    return {**counts, "kept_history": int(has_history)}


def _damaged(warehouse: Warehouse) -> list[str] | None:
    """The tables of the present file that cannot be read; None if there is no file, or nothing of it can."""
    try:
        return damaged_tables(warehouse, warehouse.file) if settle(warehouse) else None
    except WarehouseBroken:
        return None


def _load_word(connection: Connection, folder: str, word: str) -> int:
    batches = landing.live_batches(folder, word)
    for batch in batches:
        with transaction(connection):
            load(connection, folder, batch)
    return len(batches)


def _take_over(connection: Connection, old: Path, damaged: Collection[str]) -> bool:
    """Copy what is not made again from the old file; false, with a warning, if damaged tables are among it."""
    path = str(old).replace("'", "''")
    connection.execute(f"ATTACH '{path}' AS old (READ_ONLY)")
    names = connection.execute(
        "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE database_name = 'old' ORDER BY ALL"
    ).fetchall()
    landed = {name for table in MAIN_TABLES.values() for name in (table.qualified, *table.qualified_parts)}
    made_again = MADE_AGAIN | landed
    history = [name for (name,) in names if name not in made_again]
    for name in [name for name in history if name not in damaged]:
        connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM old.{name}")
    connection.execute("DETACH old")
    lost = [name for name in history if name in damaged]
    if lost:
        logger.warning("%s: damaged, so what stood in %s is lost", old, ", ".join(lost))
    return not lost
