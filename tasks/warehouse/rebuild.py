"""The warehouse again from the landing folder: the same rows, whatever happened to the file."""

from pathlib import Path

from tasks.warehouse import landing, lock
from tasks.warehouse.connection import Connection, create, finish, opened, transaction
from tasks.warehouse.faults import told_clearly
from tasks.warehouse.ingest import load
from tasks.warehouse.logs import remove_with_logs
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import index_models
from tasks.warehouse.swap import put_in_place, settle
from tasks.warehouse.tables import MAIN_TABLES

MADE_AGAIN = {"ops.migrations", "ops.files", "ops.quarantine", "ops.models", "ops.champions"}  # and the landed tables


def rebuild(warehouse: Warehouse) -> dict[str, int]:
    """Build a new warehouse from the landing folder and put it in the place of the present one.

    What no landing file holds (runs, alarms, summaries) is taken over from the present file if it opens; a file that
    does not open is kept beside it. Returns the number of batches by word, and whether the old file was usable
    (`kept_history`). Killed at any moment, the old warehouse stands or the new one does."""
    draft = warehouse.file.with_name(f"{warehouse.file.name}.rebuilding")
    with lock.hold(warehouse.home, "exclusive", warehouse.lock_wait_s), told_clearly(warehouse.home):
        remove_with_logs(draft)
        is_usable = settle(warehouse)
        create(warehouse, draft)
        with opened(warehouse, draft, read_only=False) as connection:
            if is_usable:
                _take_over(connection, warehouse.file)
            counts = {word: _load_word(connection, warehouse.landing_folder, word) for word in MAIN_TABLES}
            with transaction(connection):
                index_models(connection, warehouse.models)
            finish(connection, draft)
        put_in_place(warehouse, draft, keep_old_as=None if is_usable else "broken")
    return {**counts, "kept_history": int(is_usable)}


def _load_word(connection: Connection, folder: str, word: str) -> int:
    batches = landing.live_batches(folder, word)
    for batch in batches:
        with transaction(connection):
            load(connection, folder, batch)
    return len(batches)


def _take_over(connection: Connection, old: Path) -> None:
    path = str(old).replace("'", "''")
    connection.execute(f"ATTACH '{path}' AS old (READ_ONLY)")
    names = connection.execute(
        "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE database_name = 'old' ORDER BY ALL"
    ).fetchall()
    landed = {name for table in MAIN_TABLES.values() for name in (table.qualified, *table.qualified_parts)}
    made_again = MADE_AGAIN | landed
    for name in [name for (name,) in names if name not in made_again]:
        connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM old.{name}")
    connection.execute("DETACH old")
