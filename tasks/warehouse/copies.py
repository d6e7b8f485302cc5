"""Copies of the warehouse: snapshots, backups, what was kept aside and for how long, a hash of each table, and the
warehouse made again from the landing folder.

Hashing reads every row, so it is also how a damaged file shows: DuckDB checks each block that it reads."""

import glob
import json
import logging
import os
import re
import shutil
import time
import uuid
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tasks.errors import BadInput, WarehouseBroken
from tasks.storage import private, remove_inside, storage_of, whole
from tasks.warehouse import landing, lock
from tasks.warehouse.connection import (
    ENDINGS,
    Connection,
    create,
    finish,
    logs_of,
    move_logs,
    opened,
    reading,
    remove_with_logs,
    require,
    set_aside,
    transaction,
)
from tasks.warehouse.faults import broken, storage_faults
from tasks.warehouse.ingest import MAIN_TABLES, as_text, load
from tasks.warehouse.landing import is_local, sha256_of
from tasks.warehouse.migrations import migrate, pending
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import CHAMPIONS_FILE, index_models

MANIFEST = "backup.json"
FILE = "warehouse.duckdb"
HEX = re.compile("^[0-9a-f]{32}$")
DRAFT_KEPT_S = 86_400
UNFINISHED = (".*", "*.part")  # what a reader or a training is about to write


@dataclass(frozen=True)
class TableHash:
    """One table: its rows and a hash over them that does not depend on their order."""

    table: str
    n_rows: int
    hash: str


def snapshot(warehouse: Warehouse, target: Path) -> Path:
    """Copy the warehouse to one file that others may open; an earlier snapshot is replaced in one step.

    Readers go on while it is copied. Every row of both is read and compared. Raises NoWarehouse, WarehouseBusy,
    WarehouseBroken if one of them is damaged, and BadInput if the target is the warehouse itself or a file that is no
    DuckDB file."""
    _snapshot(warehouse, target)
    return target


def _snapshot(warehouse: Warehouse, target: Path) -> list[TableHash]:
    """The tables of the copy."""
    require(warehouse)
    if target.resolve() == warehouse.file.resolve():
        raise BadInput(target, "is the warehouse itself", "another file", "name a new file")
    if target.is_dir():
        raise BadInput(target, "is a folder", "a file", f"name a file in it, such as {target / 'whorl.duckdb'}")
    if target.exists() and not _is_duckdb(target):
        raise BadInput(target, "is a file of another kind", "a new name or an earlier snapshot", "name another file")
    draft = target.with_name(f"{target.name}.{uuid.uuid4().hex}.part")
    with storage_faults(target.parent), private():
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_drafts(target)
        try:
            while (tables := _copied(warehouse, draft)) is None:
                _settled(warehouse)
            with opened(warehouse, draft, read_only=True) as connection:
                if hashes_of(connection) != tables:
                    raise broken(draft, f"is another than {warehouse.file}, of which it is a copy")
            move_logs(target, set_aside(target, "lost"))
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    return tables


def _remove_drafts(target: Path) -> None:
    """Remove the drafts of this snapshot that killed processes left a day ago or earlier."""
    for draft in target.parent.glob(f"{glob.escape(target.name)}.*.part"):
        is_ours = HEX.match(draft.name.removeprefix(f"{target.name}.").removesuffix(".part"))
        if is_ours and draft.stat().st_mtime < time.time() - DRAFT_KEPT_S:
            remove_inside(target.parent, draft)


def _settled(warehouse: Warehouse) -> None:
    """Migrate the warehouse, and write the log that a killed writer left into it."""
    with (
        lock.hold(warehouse.home, "exclusive", warehouse.lock_wait_s),
        opened(warehouse, warehouse.file, read_only=False) as connection,
    ):
        migrate(connection)
        finish(connection, warehouse.file)


def _copied(warehouse: Warehouse, draft: Path) -> list[TableHash] | None:
    """Copy the file while nobody writes; returns its tables, None if the file alone would not be all of it."""
    with lock.hold(warehouse.home, "shared", warehouse.lock_wait_s):
        if logs_of(warehouse.file):
            return None
        with opened(warehouse, warehouse.file, read_only=True) as connection:
            if pending(connection):
                return None
            tables = hashes_of(connection)
        shutil.copyfile(warehouse.file, draft)
    return tables


def _is_duckdb(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(12)[8:] == b"DUCK"


def backup(warehouse: Warehouse, folder: Path) -> Path:
    """Copy warehouse, landing files and models to a new folder below `folder`; returns it.

    The list with all hashes is written last: a folder without it is no backup. A remote landing folder is fetched.
    Raises WarehouseBroken for a damaged warehouse; what was begun goes then, and after any other error."""
    require(warehouse)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    target = folder / f"whorl-{stamp}"
    with storage_faults(folder), private():
        target.mkdir(parents=True, exist_ok=False)
        try:
            _fill(warehouse, target, stamp)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
    return target


def _fill(warehouse: Warehouse, target: Path, stamp: str) -> None:
    tables = _snapshot(warehouse, target / FILE)
    fs, root = storage_of(warehouse.landing_folder)
    for name in _finished(fs.find(root), root):
        local = target / "landing" / name
        local.parent.mkdir(parents=True, exist_ok=True)
        fs.get_file(f"{root}/{name}", str(local))
    if warehouse.models.exists():
        shutil.copytree(warehouse.models, target / "models", ignore=shutil.ignore_patterns(*UNFINISHED))
    files = sorted(path for path in target.rglob("*") if path.is_file())
    listing = {
        "made_at": stamp,
        "tables": {table_hash.table: table_hash.hash for table_hash in tables},
        "files": {str(path.relative_to(target)): sha256_of(str(path)) for path in files},
    }
    with whole(target / MANIFEST) as draft:
        draft.write_text(json.dumps(listing, indent=1), encoding="utf-8")


def is_verified(folder: Path) -> bool:
    """Whether a folder is a backup whose tables were all read and compared when it was made.

    Those of earlier versions of whorl, which did not do that, are not; `restore` reads each in whole."""
    try:
        return bool(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["tables"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def restore(warehouse: Warehouse, folder: Path) -> int:
    """Bring back a backup; the warehouse file and the lists of champions in its place are kept beside it.

    Every file is checked before anything is touched. Landing files and models that came after the backup stay, so that
    `rebuild` finds them. Returns the file count. Raises BadInput for a folder that is no whole backup, WarehouseBroken
    for one of a damaged warehouse."""
    listing = _checked(folder)
    draft = warehouse.file.with_name(f"{FILE}.restoring")
    with lock.hold(warehouse.home, "exclusive", warehouse.lock_wait_s), storage_faults(warehouse.home), private():
        remove_with_logs(draft)
        shutil.copyfile(folder / FILE, draft)
        with opened(warehouse, draft, read_only=False) as connection:
            hashes_of(connection)  # what is damaged, or of a newer or changed schema, is refused before anything goes
            migrate(connection)
            finish(connection, draft)
        fs, root = storage_of(warehouse.landing_folder)
        for name in _named_last(name for name in listing if name.startswith("landing/")):
            _put(fs, folder / name, f"{root}/{name.removeprefix('landing/')}")
        for name in _named_last(name for name in listing if name.startswith("models/")):
            _replace(folder / name, warehouse.models / name.removeprefix("models/"))
        with opened(warehouse, draft, read_only=False) as connection:
            with transaction(connection):
                index_models(connection, warehouse.models)
            finish(connection, draft)
        settle(warehouse)
        put_in_place(warehouse, draft, keep_old_as="before-restore")
    return len(listing)


def _finished(paths: Iterable[str], root: str) -> list[str]:
    """Names below the root without what a reader is about to write; manifests first, so that none lacks its files."""
    names = [str(path).removeprefix(root).lstrip("/") for path in paths]
    whole = [name for name in names if not any(part.startswith(".") for part in name.split("/"))]
    return sorted((name for name in whole if not name.endswith(".part")), key=lambda name: not name.endswith(".json"))


def _named_last(names: Iterable[str]) -> list[str]:
    """Files before those that name them: manifests, model cards, lists of champions."""
    return sorted(names, key=lambda name: (name.endswith((".json", ".jsonl")), name.endswith(".jsonl"), name))


def _put(fs: Any, source: Path, target: str) -> None:
    if is_local(fs):
        _replace(source, Path(target))
        return
    fs.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
    fs.put_file(str(source), target)


def _replace(source: Path, target: Path) -> None:
    """Put a copy in place in one step; another list of champions there is kept beside it."""
    if target.exists() and sha256_of(str(target)) == sha256_of(str(source)):
        return
    with whole(target) as draft:
        shutil.copyfile(source, draft)
        if target.exists() and target.name == CHAMPIONS_FILE:
            second_name(target, set_aside(target, "before-restore"))


def _checked(folder: Path) -> dict[str, str]:
    """File to hash of a whole backup. Raises BadInput."""
    manifest, expected = folder / MANIFEST, "a folder made by 'whorl warehouse backup'"
    try:
        listing: dict[str, str] = dict(json.loads(manifest.read_text(encoding="utf-8"))["files"])
    except OSError as error:
        raise BadInput(folder, f"no {MANIFEST} in it", expected, "name another") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(manifest, "not the list of a backup", expected, "use another backup") from error
    if FILE not in listing or any(".." in Path(name).parts or Path(name).is_absolute() for name in listing):
        raise BadInput(manifest, f"lacks {FILE}, or names files outside of the backup", expected, "use another backup")
    for name, sha256 in listing.items():
        path = folder / name
        if not path.exists() or sha256_of(str(path)) != sha256:
            raise BadInput(path, "missing or changed since the backup", f"sha256 {sha256[:12]}", "use another backup")
    return listing


KEPT = re.compile(r"\.(before-restore|broken|lost)-(\d{8}T\d{12})(" + "|".join(map(re.escape, ENDINGS)) + r")?$")
BACKUP = re.compile(r"^whorl-\d{8}T\d{6,12}Z$")
SECONDS_ONLY = len("20260101T120000")


def old_copies(warehouse: Warehouse, backups: Path, kept_days: float, now: datetime) -> list[Path]:
    """What was kept aside and unfinished backups that are older than that; now: UTC without a zone.

    The caller holds the lock. A copy whose name tells no time stays; so do the newest one that a restore has kept,
    where no backup was verified, and the only list of champions."""
    oldest = now - timedelta(days=kept_days)
    names = [*warehouse.home.glob(f"{warehouse.file.name}.*"), *warehouse.models.glob(f"*/{CHAMPIONS_FILE}.*")]
    matches = {path: match for path in names if path.is_file() and (match := KEPT.search(path.name))}
    kept = {path: made_at for path, match in matches.items() if (made_at := _time(match[2]))}
    old = {path for path, made_at in kept.items() if made_at < oldest}
    return sorted([*(old - _needed(warehouse, backups, kept)), *_unfinished(backups, oldest)])


def _time(stamp: str) -> datetime | None:
    form = "%Y%m%dT%H%M%S" + ("" if len(stamp) == SECONDS_ONLY else "%f")
    try:
        return datetime.strptime(stamp, form)
    except ValueError:
        return None


def _needed(warehouse: Warehouse, backups: Path, kept: dict[Path, datetime]) -> set[Path]:
    lists = [path for path in kept if path.name.startswith(CHAMPIONS_FILE)]
    needed = {path for path in lists if not path.with_name(CHAMPIONS_FILE).exists()}
    begins = f"{warehouse.file.name}.before-restore-"
    copies = [path for path in kept if path.name.startswith(begins) and not path.name.endswith(ENDINGS)]
    if not copies or any(is_verified(folder) for folder in backup_folders(backups)):
        return needed
    newest = max(copies, key=lambda path: kept[path])
    return needed | {path for path in kept if path.name.startswith(newest.name)}  # with its logs


def backup_folders(backups: Path) -> list[Path]:
    """The folders that backups were made in, also unfinished ones; no links, and nothing of another name."""
    folders = [path for path in backups.glob("whorl-*") if BACKUP.match(path.name)]
    return [path for path in folders if path.is_dir() and not path.is_symlink()]


def _unfinished(backups: Path, oldest: datetime) -> list[Path]:
    """Backups without a list that were begun, and last written to, so long ago."""
    begun = [path for path in backup_folders(backups) if not (path / MANIFEST).exists()]
    times = {path: _time(path.name.removeprefix("whorl-").removesuffix("Z")) for path in begun}
    oldest_s, old = oldest.replace(tzinfo=UTC).timestamp(), []
    for path in (path for path, began_at in times.items() if began_at and began_at < oldest):
        with suppress(FileNotFoundError):  # a file goes while we look: it is being made
            if max(inner.lstat().st_mtime for inner in (path, *path.rglob("*"))) < oldest_s:
                old.append(path)
    return old


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


def hash_tables(warehouse: Warehouse) -> list[TableHash]:
    """The hash of every table, by name. It is the sum of 128-bit hashes of the rows, so a doubled row shows.

    Raises WarehouseBroken for a damaged file."""
    with reading(warehouse) as connection:
        return hashes_of(connection)


def hashes_of(connection: Connection) -> list[TableHash]:
    """The same of the file of an open connection."""
    return [_hash(connection, name) for name in _names(connection)]


def damaged_tables(warehouse: Warehouse, file: Path) -> list[str]:
    """The tables of a file that cannot be read in whole; the caller holds the lock.

    Raises WarehouseBroken if not even their names can be read."""
    with opened(warehouse, file, read_only=True) as connection:
        names = _names(connection)
    damaged: list[str] = []
    while names:
        try:
            with opened(warehouse, file, read_only=True) as connection:  # anew after each: DuckDB may have given up
                while names:
                    _hash(connection, names[0])
                    names.pop(0)
        except WarehouseBroken:
            damaged.append(names.pop(0))
    return damaged


def _names(connection: Connection) -> list[str]:
    rows = connection.execute(
        "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY ALL"
    ).fetchall()
    return [str(name) for (name,) in rows]


def _hash(connection: Connection, name: str) -> TableHash:
    row = connection.execute(
        f"""WITH texts AS (SELECT rows::VARCHAR AS line FROM {name} AS rows),
        final AS (
            SELECT count(*) AS n_rows,
                coalesce(sum(md5_number_upper(line)::HUGEINT), 0) AS upper,
                coalesce(sum(md5_number_lower(line)::HUGEINT), 0) AS lower
            FROM texts
        )
        SELECT n_rows, left(sha256(concat_ws(' ', n_rows, upper, lower)), 16) FROM final"""
    ).fetchone()
    n_rows, digest = row or (0, "")
    return TableHash(name, int(n_rows), str(digest))


MADE_AGAIN = {"ops.migrations", "ops.files", "ops.quarantine", "ops.models", "ops.champions"}  # and the landed tables
logger = logging.getLogger(__name__)


def rebuild(warehouse: Warehouse) -> dict[str, int]:
    """Build a new warehouse from the landing folder and put it in the place of the present one.

    What no landing file holds (runs, alarms, summaries) is taken over from the present file, as far as it can be read;
    a damaged file is kept beside it. Returns the number of batches by word, and whether all of that was taken over
    (`kept_history`). Killed at any moment, the old warehouse stands or the new one does."""
    draft = warehouse.file.with_name(f"{warehouse.file.name}.rebuilding")
    with lock.hold(warehouse.home, "exclusive", warehouse.lock_wait_s), storage_faults(warehouse.home):
        remove_with_logs(draft)
        damaged = _damaged(warehouse)
        has_history = damaged is not None
        create(warehouse, draft)
        with opened(warehouse, draft, read_only=False) as connection:
            if damaged is not None:
                has_history = _take_over(connection, warehouse.file, damaged)
            counts = dict.fromkeys(MAIN_TABLES, 0)
            for word in MAIN_TABLES:
                for batch in landing.live_batches(warehouse.landing_folder, word):
                    with transaction(connection):
                        load(connection, warehouse.landing_folder, batch)
                    counts[word] += 1
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


def _take_over(connection: Connection, old: Path, damaged: Collection[str]) -> bool:
    """Copy what is not made again from the old file; false, with a warning, if damaged tables are among it."""
    landed = {name for table in MAIN_TABLES.values() for name in (table.qualified, *table.qualified_parts)}
    history = [name for name in _names(connection) if name not in MADE_AGAIN | landed]  # the old file was migrated
    connection.execute(f"ATTACH {as_text(str(old))} AS old (READ_ONLY)")
    for name in [name for name in history if name not in damaged]:
        connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM old.{name}")
    connection.execute("DETACH old")
    if lost := [name for name in history if name in damaged]:
        logger.warning("%s: damaged, so what stood in %s is lost", old, ", ".join(lost))
    return not lost
