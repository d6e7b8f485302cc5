"""Copies that a restore, a rebuild or an unfinished backup left aside, and which of them are old enough to go."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from tasks.errors import WhorlError
from tasks.warehouse import copies
from tasks.warehouse.connection import opened
from tasks.warehouse.hashes import hashes_of
from tasks.warehouse.logs import ENDINGS
from tasks.warehouse.migrations import applied
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import CHAMPIONS_FILE

KEPT = re.compile(r"\.(before-restore|broken|lost)-(\d{8}T\d{12})(" + "|".join(map(re.escape, ENDINGS)) + r")?$")
BACKUP = re.compile(r"^whorl-\d{8}T\d{6,12}Z$")
SECONDS_ONLY = len("20260101T120000")
MOST_KEPT = 3  # copies of a file kept aside for one reason, however young: each swap that is killed leaves one


def old_copies(warehouse: Warehouse, backups: Path, kept_days: float, now: datetime) -> list[Path]:
    """What was kept aside and unfinished backups that are older than that, or too many; now: UTC without a zone.

    The caller holds the lock and has opened the present warehouse. A copy whose name tells no time stays, and so do the
    newest copy of the warehouse that can be read where no backup was verified, and the only list of champions."""
    oldest = now - timedelta(days=kept_days)
    names = [*warehouse.home.glob(f"{warehouse.file.name}.*"), *warehouse.models.glob(f"*/{CHAMPIONS_FILE}.*")]
    kept = {path: made_at for path in names if (made_at := _kept_at(path)) and path.is_file()}
    needed = _needed(warehouse, backups, kept)
    too_many = _too_many(kept)
    old = [path for path, made_at in kept.items() if (made_at < oldest or path in too_many) and path not in needed]
    return sorted([*old, *_unfinished(backups, oldest)])


def _too_many(kept: dict[Path, datetime]) -> set[Path]:
    """All but the newest few of each file and reason."""
    times: dict[tuple[str, str], set[datetime]] = {}
    for path, made_at in kept.items():
        times.setdefault(_reason(path), set()).add(made_at)
    return {path for path, made_at in kept.items() if made_at not in sorted(times[_reason(path)])[-MOST_KEPT:]}


def _reason(path: Path) -> tuple[str, str]:
    """The file that was kept aside, and why: a copy and its logs have the same."""
    found = KEPT.search(path.name)
    return (str(path)[: -len(found[0])], found[1]) if found else (str(path), "")


def _kept_at(path: Path) -> datetime | None:
    """When it was kept, from its name: a copy has the time of change of what it is a copy of."""
    found = KEPT.search(path.name)
    return _time(found.group(2)) if found else None


def _time(stamp: str) -> datetime | None:
    form = "%Y%m%dT%H%M%S" + ("" if len(stamp) == SECONDS_ONLY else "%f")
    try:
        return datetime.strptime(stamp, form)
    except ValueError:
        return None


def _needed(warehouse: Warehouse, backups: Path, kept: dict[Path, datetime]) -> set[Path]:
    lists = [path for path in kept if path.name.startswith(CHAMPIONS_FILE)]
    needed = {path for path in lists if not path.with_name(CHAMPIONS_FILE).exists()}
    if any(copies.is_verified(folder) for folder in backup_folders(backups)):
        return needed
    files = [path for path in kept if path.parent == warehouse.home and not path.name.endswith(ENDINGS)]
    newest_first = sorted(files, key=lambda path: kept[path], reverse=True)
    usable = next((path for path in newest_first if _is_usable_copy(warehouse, path)), None)
    if usable is None:
        return needed
    return needed | {path for path in kept if path.name.startswith(usable.name)}  # with its logs


def _is_usable_copy(warehouse: Warehouse, file: Path) -> bool:
    if file.samefile(warehouse.file):  # a restore was killed between naming the old file and putting the new one there
        return False
    try:
        with opened(warehouse, file, read_only=True) as connection:
            return bool(applied(connection)) and bool(hashes_of(connection))
    except (WhorlError, duckdb.Error):
        return False


def backup_folders(backups: Path) -> list[Path]:
    """The folders that backups were made in, also unfinished ones; no links, and nothing of another name."""
    found = [path for path in backups.glob("whorl-*") if BACKUP.match(path.name)]
    return [path for path in found if path.is_dir() and not path.is_symlink()]


def _unfinished(backups: Path, oldest: datetime) -> list[Path]:
    """Backups without a list that were begun, and last written to, so long ago."""
    begun = [path for path in backup_folders(backups) if not (path / copies.MANIFEST).exists()]
    times = {path: _time(path.name.removeprefix("whorl-").removesuffix("Z")) for path in begun}
    old = [path for path, began_at in times.items() if began_at and began_at < oldest]
    return [path for path in old if _last_change(path) < oldest]


def _last_change(folder: Path) -> datetime:
    """When something in a backup was last written; the end of time if a file goes while we look: it is being made."""
    try:
        seconds = max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))
    except FileNotFoundError:
        return datetime.max
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
