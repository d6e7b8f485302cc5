"""Copies of the warehouse: a snapshot of the file alone, and backups with landing files and models."""

import glob
import json
import re
import shutil
import time
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasks.errors import BadInput
from tasks.storage import private, remove_inside, storage_of
from tasks.warehouse import lock
from tasks.warehouse.connection import finish, opened, require, transaction
from tasks.warehouse.faults import broken, told_clearly
from tasks.warehouse.hashes import TableHash, hashes_of
from tasks.warehouse.landing import is_local, sha256_of
from tasks.warehouse.logs import logs_of, move_logs, remove_with_logs, set_aside
from tasks.warehouse.migrations import migrate, pending
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import CHAMPIONS_FILE, index_models
from tasks.warehouse.swap import put_in_place, second_name, settle

MANIFEST = "backup.json"
FILE = "warehouse.duckdb"
HEX = re.compile("^[0-9a-f]{32}$")
DRAFT_KEPT_S = 86_400
UNFINISHED = (".*", "*.part")  # what a reader or a training is about to write


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
    with told_clearly(target.parent), private():
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
    with told_clearly(folder), private():
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
        _fetch(fs, f"{root}/{name}", target / "landing" / name)
    if warehouse.models.exists():
        shutil.copytree(warehouse.models, target / "models", ignore=shutil.ignore_patterns(*UNFINISHED))
    files = sorted(path for path in target.rglob("*") if path.is_file())
    listing = {
        "made_at": stamp,
        "tables": {one.table: one.hash for one in tables},
        "files": {str(path.relative_to(target)): sha256_of(str(path)) for path in files},
    }
    draft = target / f"{MANIFEST}.part"
    draft.write_text(json.dumps(listing, indent=1), encoding="utf-8")
    draft.replace(target / MANIFEST)


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
    with lock.hold(warehouse.home, "exclusive", warehouse.lock_wait_s), told_clearly(warehouse.home), private():
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


def _fetch(fs: Any, name: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    fs.get_file(name, str(target))


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
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.part")
    shutil.copyfile(source, draft)
    if target.exists() and target.name == CHAMPIONS_FILE:
        second_name(target, set_aside(target, "before-restore"))
    draft.replace(target)


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
