"""What may go: files that nothing names, old runs and recordings of what ran, and models that are no champion."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePath
from typing import Any

from tasks.storage import remove_inside, storage_of
from tasks.warehouse import landing, registry
from tasks.warehouse.connection import Connection, count_of, require, transaction, writing
from tasks.warehouse.copies import old_copies
from tasks.warehouse.ingest import MAIN_TABLES
from tasks.warehouse.place import PruneParams, Warehouse

WORD = "workloads"
RECORDINGS, LIVE = "recordings", "workloads-live"  # <home>/recordings/workloads-live
LANDED = "SELECT batch_id, origin FROM ops.files WHERE word = $word AND landed_at < $oldest"
KEPT = """
    SELECT DISTINCT batch_id FROM workloads.runs AS runs
    WHERE workload IS NOT NULL OR EXISTS (
        SELECT 1 FROM ops.alarms AS alarms
        WHERE alarms.word = $word AND alarms.source = runs.source AND alarms.subject = runs.run_id)
"""
RUNS = "SELECT source, run_id FROM workloads.runs WHERE list_contains($ids, batch_id)"
TABLES = """
    SELECT table_name FROM duckdb_columns() JOIN duckdb_tables() USING (database_name, schema_name, table_name)
    WHERE database_name = current_database() AND schema_name = $word AND column_name IN ('source', 'run_id')
    GROUP BY table_name HAVING count(*) = 2 ORDER BY table_name = 'runs', table_name
"""


@dataclass(frozen=True)
class OldRecordings:
    """batches: ids of what was landed of them; n_runs: of these in the warehouse; files: in the home folder."""

    batches: frozenset[str]
    n_runs: int
    files: list[Path]


def live_folder(warehouse: Warehouse) -> Path:
    """Where watches put what they record."""
    return warehouse.home / RECORDINGS / LIVE


def old_recordings(connection: Connection, warehouse: Warehouse, kept_days: float, now: datetime) -> OldRecordings:
    """Recordings that were landed longer ago than that, and recorded files as old. now: UTC without a zone."""
    oldest = now - timedelta(days=kept_days)
    known = connection.execute(LANDED, {"word": WORD, "oldest": oldest}).fetchall()
    batch_ids = {batch_id for batch_id, origin in known if _is_recording(origin)}
    for batch in landing.batches(warehouse.landing_folder, WORD):
        if batch.landed_at < oldest and _is_recording(batch.origin.path):
            batch_ids.add(batch.batch_id)
    batch_ids -= {batch_id for (batch_id,) in connection.execute(KEPT, {"word": WORD}).fetchall()}
    n_runs = count_of(connection, f"SELECT count(*) FROM ({RUNS})", {"ids": list(batch_ids)})
    oldest_s = oldest.replace(tzinfo=UTC).timestamp()
    files = [path for path in live_folder(warehouse).glob("live-*.parquet") if path.stat().st_mtime < oldest_s]
    return OldRecordings(frozenset(batch_ids), n_runs, sorted(files))


def forget_recordings(connection: Connection, batches: Collection[str]) -> None:
    """Remove the runs of these batches with all that was made of them; the caller holds the transaction."""
    ids = {"ids": list(batches)}
    tables = [name for (name,) in connection.execute(TABLES, {"word": WORD}).fetchall()]  # runs, which say whose, last
    for name in tables:
        connection.execute(f"DELETE FROM {WORD}.{name} WHERE (source, run_id) IN ({RUNS})", ids).fetchall()
    for name in ("ops.quarantine", "ops.files"):
        connection.execute(f"DELETE FROM {name} WHERE list_contains($ids, batch_id)", ids).fetchall()


def _is_recording(path: str) -> bool:
    """Whether a file lies where watches record, in this home folder or in one that it was moved from."""
    return PurePath(path).parts[-3:-1] == (RECORDINGS, LIVE)


SECONDS_PER_HOUR = 3600
DRAFTS = (".new", ".rebuilding", ".restoring")  # files that a create, rebuild or restore had not yet put in place


@dataclass(frozen=True)
class Pruned:
    """What was removed, or would be. n_runs: of flows; n_recorded: of workloads, that a watch had recorded."""

    n_runs: int
    models: list[str]
    landing_files: list[str]
    leftovers: list[str]
    copies: list[str]
    n_recorded: int = 0
    recordings: list[str] = field(default_factory=list)

    @property
    def n_files(self) -> int:
        """Files and folders of all kinds."""
        return sum(map(len, (self.models, self.landing_files, self.leftovers, self.copies, self.recordings)))


def prune(
    warehouse: Warehouse, params: PruneParams, now: datetime, *, backups: Path | None = None, dry_run: bool = False
) -> Pruned:
    """Remove old runs and recordings, models that are not in use, landing files of no live batch, and old copies.

    now: UTC without a zone. backups: folder to look for unfinished backups in; by default backups/ of the home.
    Never removed are champions, present and past, a landing file that a rebuild or the warehouse needs, and what the
    last restore kept where there is no backup. Raises NoWarehouse, WarehouseBusy, WarehouseBroken."""
    require(warehouse)
    oldest = now - timedelta(days=params.runs_kept_days)
    with writing(warehouse) as connection:
        n_runs = count_of(connection, "SELECT count(*) FROM ops.runs WHERE started_at < ?", [oldest])
        live = old_recordings(connection, warehouse, params.live_kept_days, now)
        loaded = connection.execute("SELECT batch_id FROM ops.files").fetchall()
        known = {batch_id for (batch_id,) in loaded} - live.batches
        models = _superfluous_models(warehouse.models, params.models_kept)
        begun_s = now.replace(tzinfo=UTC).timestamp() - params.orphans_kept_hours * SECONDS_PER_HOUR
        folder, backups = warehouse.landing_folder, backups or warehouse.backups
        files = [name for word in MAIN_TABLES for name in _orphans(folder, word, known, live.batches, begun_s)]
        # what killed processes left; what they spilled `writing` has removed
        drafts = [path for ending in DRAFTS for path in warehouse.home.glob(f"{warehouse.file.name}{ending}*")]
        hidden = [path for path in warehouse.models.glob("*/.*") if path.stat().st_mtime < begun_s]
        leftovers = sorted([*drafts, *hidden])
        copies = old_copies(warehouse, backups, params.copies_kept_days, now)
        if not dry_run:
            for leftover in (*leftovers, *copies, *live.files):
                remove_inside(backups if leftover.parent == backups else warehouse.home, leftover)
            for card in models:
                registry.remove_model(warehouse.models, card.word, card.model_id)
            with transaction(connection):
                connection.execute("DELETE FROM ops.runs WHERE started_at < ?", [oldest])
                forget_recordings(connection, live.batches)
                registry.index_models(connection, warehouse.models)
            fs, root = storage_of(warehouse.landing_folder)
            for name in _named_first(files):
                if landing.is_local(fs):
                    remove_inside(Path(root), Path(name))
                else:
                    fs.rm(name, recursive=True)
    return Pruned(
        n_runs=n_runs,
        models=[card.model_id for card in models],
        landing_files=files,
        leftovers=_named(leftovers),
        copies=_named(copies),
        n_recorded=live.n_runs,
        recordings=_named(live.files),
    )


def _named(paths: Sequence[Path]) -> list[str]:
    return [str(path) for path in paths]


def _superfluous_models(models: Path, n_kept: int) -> list[registry.ModelCard]:
    registered = registry.cards(models)
    champions = {
        decision.model_id
        for word in {card.word for card in registered}
        for decision in registry.decisions(models, word)
    }
    kinds: dict[tuple[str, str, str], list[registry.ModelCard]] = {}
    for card in registered:
        kinds.setdefault((card.word, card.source, card.kind), []).append(card)
    old = [card for cards in kinds.values() for card in cards[: max(0, len(cards) - n_kept)]]
    return [card for card in old if card.model_id not in champions]


def _orphans(folder: str, word: str, known: set[str], going: frozenset[str], begun_s: float) -> list[str]:
    """Landing files that no live batch names, nor one that is known, and that no reader can still be about to name, as
    none begun before begun_s is; and the manifests of batches that go, whatever is landed."""
    fs, root = storage_of(f"{folder}/{word}")
    if not fs.exists(root):
        return []
    needed = [batch for batch in landing.batches(folder, word) if batch.batch_id in known]
    needed += [batch for batch in landing.live_batches(folder, word) if batch.batch_id not in going]
    named = {landed.name for batch in needed for landed in batch.tables.values()}
    named |= {f"{batch.batch_id}.json" for batch in needed}
    entries = [entry for entry in fs.ls(root, detail=True) if Path(entry["name"]).name not in named]
    gone = {f"{batch_id}.json" for batch_id in going}
    return sorted(
        str(entry["name"])
        for entry in entries
        if Path(entry["name"]).name in gone or _changed_s(fs, entry, begun_s) < begun_s
    )


def _changed_s(fs: Any, entry: dict[str, Any], unknown: float) -> float:
    """When a file, or the last file in a folder, changed; seconds since 1970."""
    inner = fs.ls(entry["name"], detail=True) if entry["type"] == "directory" else []
    changed = next((entry[key] for key in ("mtime", "created") if entry.get(key) is not None), unknown)
    seconds = changed.timestamp() if isinstance(changed, datetime) else float(changed)
    return max([seconds, *(_changed_s(fs, child, unknown) for child in inner)])


def _named_first(files: list[str]) -> list[str]:
    """Manifests before what they name, so that a kill leaves no manifest without its files."""
    return sorted(files, key=lambda name: (not name.endswith(".json"), name))
