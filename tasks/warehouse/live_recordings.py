"""Recordings of what ran, as watches make them day and night: which of them are old enough to go, and what of them.

A run that somebody has given a label stays, and so does one that an alarm names: an alarm tells since when."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePath

from tasks.warehouse import landing
from tasks.warehouse.connection import Connection
from tasks.warehouse.place import Warehouse

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
    found = {batch_id for batch_id, origin in known if _is_recording(origin)}
    for batch in landing.batches(warehouse.landing_folder, WORD):
        if batch.landed_at < oldest and _is_recording(batch.origin.path):
            found.add(batch.batch_id)
    found -= {batch_id for (batch_id,) in connection.execute(KEPT, {"word": WORD}).fetchall()}
    count = connection.execute(f"SELECT count(*) FROM ({RUNS})", {"ids": list(found)}).fetchone()
    oldest_s = oldest.replace(tzinfo=UTC).timestamp()
    files = [path for path in live_folder(warehouse).glob("live-*.parquet") if path.stat().st_mtime < oldest_s]
    return OldRecordings(frozenset(found), int(count[0]) if count else 0, sorted(files))


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
