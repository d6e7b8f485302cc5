"""The steps of `workloads`: keys in, keys out. Flows wrap them; the command line may call those that only ask."""

import logging
from pathlib import Path
from typing import TypedDict

from tasks.progress import report_progress
from tasks.warehouse import ingest
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import data_version
from tasks.workloads import intake
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.record.params import RecordParams

logger = logging.getLogger(__name__)


class Recording(TypedDict):
    """Where a recording is, and what the call added. isolation: cgroups, or none.

    n_clean: runs of the whole campaign that were recorded undisturbed so far; n_new: runs that this call recorded,
    n_failed: that failed in it; sampler_cores: CPU time of the sampler over the time of the runs, mean."""

    folder: str
    isolation: str
    n_planned: int
    n_clean: int
    n_new: int
    n_failed: int
    sampler_cores: float


def record(params: RecordParams, out_dir: str) -> Recording:
    """Run and record workloads on this machine; returns the folder of the recording, and figures."""
    from tasks.workloads.record.campaign import record_workloads

    folder = Path(out_dir)
    found = record_workloads(params, folder, lambda done, total: report_progress("recording workloads", done, total))
    logger.info("recorded %s", found)
    return Recording(
        folder=out_dir,
        isolation=found.isolation,
        n_planned=found.planned,
        n_clean=found.clean,
        n_new=sum(found.recorded.values()),
        n_failed=len(found.errors),
        sampler_cores=found.sampler_cores[0],
    )


def find_files(paths: list[str], read: ReadParams) -> list[str]:
    """The files and addresses of telemetry behind files, folders, addresses and the manifest."""
    return intake.find_files(paths, read.manifest)


def land_telemetry(warehouse: Warehouse, path: str, source: str, reader: str, read: ReadParams) -> str:
    """Read one file or address into the landing folder; returns the batch id."""
    batch = intake.land_telemetry(warehouse, path, intake.Intake(source, reader, read))
    n_runs, n_refused = batch.tables["runs"].n_rows, batch.n_quarantined
    logger.info("read %s with %s: %d runs, %d rows refused", path, batch.origin.reader, n_runs, n_refused)
    return batch.batch_id


def ingest_batch(warehouse: Warehouse, batch_id: str) -> str:
    """Load a landed batch into the warehouse; returns its id."""
    is_new = ingest.ingest(warehouse, intake.WORD, batch_id)
    logger.info("batch %s %s", batch_id, "loaded" if is_new else "was in the warehouse already")
    return batch_id


def source_version(warehouse: Warehouse, source: str, after: list[str]) -> str:
    """The version of the files of a source. after: batches that it rests on; a continued run with others asks again."""
    with reading(warehouse) as connection:
        version = data_version(connection, intake.WORD, source)
    logger.info("source %s has data version %s after %d batches", source, version, len(after))
    return version
