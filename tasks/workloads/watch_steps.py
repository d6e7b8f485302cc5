"""The steps of watching: record what runs now, and raise alarms; the steps between are those of an ingest."""

import logging

from tasks.warehouse.alarms import unannounced
from tasks.warehouse.connection import fetch
from tasks.warehouse.live_recordings import live_folder
from tasks.warehouse.place import Warehouse
from tasks.workloads.record.params import RecordParams
from tasks.workloads.watch_params import WatchParams

logger = logging.getLogger(__name__)


def record_live(warehouse: Warehouse, subject: str, seconds: float, record: RecordParams, name: str) -> str:
    """Record what runs now into a file of the home folder; returns its path. name: tells it from other recordings.

    A file that is there already is not recorded again. Raises NotFound for a subject that is not there."""
    from tasks.workloads.record.live import record_live as sampled
    from tasks.workloads.record.parts import (
        table_of,
        write_table,
    )

    path = live_folder(warehouse) / f"live-{name}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        run = sampled(subject, seconds, record)
        facts = {"subject": subject, "seconds": seconds, "params": record.model_dump(mode="json")}
        write_table(path, table_of(run), facts)
        logger.info("recorded %d counters of %s for %g s", len(run.counters), subject, seconds)
    return str(path)


def runs_of_batch(warehouse: Warehouse, source: str, batch_id: str) -> list[str]:
    """The runs that a file gave."""
    found = fetch(
        warehouse,
        "SELECT run_id FROM workloads.runs WHERE source = $source AND batch_id = $batch_id ORDER BY run_id",
        {"source": source, "batch_id": batch_id},
    )
    return [str(run_id) for run_id in found["run_id"]]


def watch(warehouse: Warehouse, source: str, run_ids: list[str], watch: WatchParams) -> list[str]:
    """Raise an alarm for those of these runs that are not what should run; returns the ids of those nobody was told of.

    These are the new ones, and the ones of an earlier run that was killed before it could announce them."""
    from tasks.workloads.watch import WORD, watch_runs

    watch_runs(warehouse, source, run_ids, watch)
    return unannounced(warehouse, WORD, source)
