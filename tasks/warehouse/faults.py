"""What the disk and DuckDB complain about, as one line that says what to do."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from tasks.errors import BadSetting, WarehouseBroken, WarehouseBusy, WhorlError
from tasks.machine import free_bytes
from tasks.storage import narrow

NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS)
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SAYS_NO_RIGHT = ("Permission denied", "Read-only file system", "Operation not permitted")
SAYS_NO_SPACE = ("No space left", "quota exceeded", "File too large")
SAYS_NO_SPILL = "max_temp_directory_size"
MB = 2**20
LEAST_FREE_BYTES = 64 * MB  # a home without a row takes 10 MB: Prefect's database, the warehouse, their logs
SAYS_IN_USE = ("Could not set lock", "different configuration")
SAYS_DAMAGED = "Corrupt database file"  # of a block whose checksum does not fit; the type is then plain duckdb.Error
INTERRUPTED = "Query interrupted"  # what DuckDB makes of Ctrl-C while it executes
GAVE_UP = (duckdb.FatalException, duckdb.InternalException, duckdb.SerializationException)


@contextmanager
def storage_faults(where: Path | str) -> Iterator[None]:
    """Faults of the disk below `where`, and those of DuckDB that more memory, space or rights would mend, as one line.

    Raises BadSetting (no right, too little memory), WhorlError (disk full) and WarehouseBroken (a damaged file), and
    KeyboardInterrupt for DuckDB's own word for it; all else passes as it is."""
    try:
        yield
    except OSError as error:
        if (fault := _of_disk(where, error)) is None:
            raise
        raise fault from error
    except duckdb.Error as error:
        if (fault := of_duckdb(where, error)) is None:
            raise
        raise fault from error
    except RuntimeError as error:
        if str(error) == INTERRUPTED:
            raise KeyboardInterrupt from error
        raise


def make_folder(folder: Path) -> None:
    """Make the folder, if need be. Raises BadSetting where there can be none, or none for this user."""
    with storage_faults(folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            problem = "is no folder; expected one for the warehouse; name another with WHORL_HOME"
            raise BadSetting(f"{folder}: {problem}") from error


def check_home(home: Path) -> None:
    """Make the home folder, if need be, and see that work can be written there: at once, not in the middle of it.

    Raises BadSetting if this user may not write to it, WhorlError if its disk has no room."""
    folders = [home, home / "prefect"]
    files = [home / "warehouse.duckdb", home / "prefect" / "prefect.db"]
    for folder in folders:
        make_folder(folder)
        with storage_faults(folder), tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(MB))
    narrow(home / "prefect")  # prefect.db holds what runs were asked and logged
    for file in files:
        if file.exists() and not os.access(file, os.W_OK):
            raise _no_right(file, "not writable")
    if (free := free_bytes(home)) < LEAST_FREE_BYTES:
        raise _no_space(home, f"{free / MB:.0f} MB free, {LEAST_FREE_BYTES / MB:.0f} MB are needed")


def of_duckdb(where: Path | str, error: duckdb.Error) -> WhorlError | None:
    """DuckDB's error as one of ours; None if it is about the query itself."""
    text = str(error)
    if is_damage(error):
        return broken(where, f"is damaged: DuckDB cannot read all of it ({first_line(error)})")
    if isinstance(error, GAVE_UP):
        return broken(where, f"DuckDB gave up on it ({first_line(error)})")
    if SAYS_NO_SPILL in text:
        return BadSetting(
            f"{where}: DuckDB needs more disk space for what memory does not hold than it may use "
            f"({first_line(error).rstrip('.')}); expected a larger whorl.spill_mb or whorl.memory_mb; raise one in "
            "conf/local/whorl.yaml or with WHORL_WHORL__SPILL_MB"
        )
    if isinstance(error, duckdb.OutOfMemoryException):
        return BadSetting(
            f"{where}: DuckDB needs more memory than it may use ({first_line(error)}); "
            "expected a larger whorl.memory_mb; raise it in conf/local/whorl.yaml or with WHORL_WHORL__MEMORY_MB"
        )
    if any(mark in text for mark in SAYS_IN_USE):
        return WarehouseBusy(
            f"{where}: another program, or another part of this one, has the file open ({first_line(error)}); "
            "close it there, or work on a copy made with 'whorl warehouse snapshot'"
        )
    if any(mark in text for mark in SAYS_NO_RIGHT):
        return _no_right(where, first_line(error))
    if any(mark in text for mark in SAYS_NO_SPACE):
        return _no_space(where, first_line(error))
    return None


def is_damage(error: Exception) -> bool:
    """Whether an error says that the file is damaged, whatever was asked of it."""
    return type(error) is duckdb.Error and SAYS_DAMAGED in str(error)


def broken(where: Path | str, problem: str) -> WarehouseBroken:
    """The one line about a warehouse file that cannot be used."""
    return WarehouseBroken(
        f"{where}: {problem}; bring back a copy with 'whorl warehouse restore', or make it again from the landing "
        "folder with 'whorl warehouse rebuild'"
    )


def first_line(error: Exception) -> str:
    """The first line of a message; DuckDB adds advice below it."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _of_disk(where: Path | str, error: OSError) -> WhorlError | None:
    named = error.filename or where
    if error.errno in NO_RIGHT:
        return _no_right(named, error.strerror or "no right")
    if error.errno in NO_SPACE:
        return _no_space(named, error.strerror or "no space")
    return None


def _no_right(where: object, what: str) -> BadSetting:
    return BadSetting(
        f"{where}: no right to use it ({what}); expected a place that this user may read and write; "
        "change its rights, or name another home with WHORL_HOME"
    )


def _no_space(where: object, what: str) -> WhorlError:
    return WhorlError(
        f"{where}: the disk is full ({what}); expected room for a copy of what is written; "
        "free some and run the same again: nothing is half done"
    )
