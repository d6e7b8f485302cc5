"""One warehouse file in the place of another, so that a kill leaves the old one or the new one."""

import os
import shutil
from pathlib import Path

from tasks.errors import WarehouseBroken
from tasks.warehouse.connection import finish, opened
from tasks.warehouse.logs import logs_of, move_logs, set_aside
from tasks.warehouse.migrations import migrate
from tasks.warehouse.place import Warehouse


def settle(warehouse: Warehouse) -> bool:
    """Write the log of the present file into it, so that it may be replaced; false if it cannot be used.

    The caller holds the exclusive lock. Raises WarehouseBusy if another program has the file open."""
    if not warehouse.file.exists():
        return False
    try:
        with opened(warehouse, warehouse.file, read_only=False) as connection:
            migrate(connection)
            finish(connection, warehouse.file)
    except WarehouseBroken:
        return False
    return True


def put_in_place(warehouse: Warehouse, draft: Path, *, keep_old_as: str | None) -> Path | None:
    """Rename the draft to the warehouse's file; returns where the old file was kept, if it was.

    A settled file is replaced in one step. A file with a log of its own (it did not open) is kept with it: its log
    must never be read into the new file. Raises WarehouseBroken for a draft that still has a log."""
    if logs_of(draft):
        raise WarehouseBroken(f"{draft}: not whole without its log; run the same again")
    kept = None
    if warehouse.file.exists() and keep_old_as:
        kept = set_aside(warehouse.file, keep_old_as)
        second_name(warehouse.file, kept)
    move_logs(warehouse.file, kept or set_aside(warehouse.file, "lost"))
    draft.replace(warehouse.file)
    return kept


def second_name(file: Path, kept: Path) -> None:
    """The same file under two names, or a copy where the file system knows no links."""
    try:
        os.link(file, kept)
    except OSError:
        shutil.copy(file, kept)
