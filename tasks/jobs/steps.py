"""The steps of `jobs`: keys in, keys out. Flows wrap them; the command line may call those that only ask."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from tasks.jobs import intake
from tasks.jobs.outlook.params import DriftParams
from tasks.jobs.params import (
    GroupParams,
    ReadParams,
    ReportParams,
    SummaryParams,
    WatchParams,
)
from tasks.jobs.record.params import RecordParams
from tasks.jobs.summary import kind_of_runs
from tasks.jobs.summary import summarise as summarise_source
from tasks.jobs.watch import watch_source
from tasks.progress import report_progress
from tasks.warehouse import ingest
from tasks.warehouse.alarms import unannounced
from tasks.warehouse.place import Warehouse

logger = logging.getLogger(__name__)


class Recording(TypedDict):
    """Where a recording is, and what the call added. isolation: what held vertices to their tokens, or `none`.

    own_cores_ratio: CPU time of the recorder itself over the time that it took, in cores."""

    folder: str
    isolation: str
    n_runs: int
    own_cores_ratio: float


def find_logs(paths: list[str]) -> list[str]:
    """The log files behind files, folders and addresses."""
    return intake.find_logs(paths)


def land_log(warehouse: Warehouse, path: str, source: str, reader: str, read: ReadParams, group: GroupParams) -> str:
    """Read one log into the landing folder; returns the batch id."""
    batch = intake.land_log(warehouse, path, intake.Intake(source, reader, read, group))
    n_rows, n_refused = batch.tables["runs"].n_rows, batch.n_quarantined
    logger.info("read %s with %s: %d rows, %d refused", path, batch.origin.reader, n_rows, n_refused)
    return batch.batch_id


def ingest_batch(warehouse: Warehouse, batch_id: str) -> str:
    """Load a landed batch into the warehouse; returns its id."""
    is_new = ingest.ingest(warehouse, intake.WORD, batch_id)
    logger.info("batch %s %s", batch_id, "loaded" if is_new else "was in the warehouse already")
    return batch_id


def summarise(warehouse: Warehouse, source: str, summary: SummaryParams, after: Sequence[str] = ()) -> str:
    """Write jobs.groups anew; returns the data version that it saw.

    after: keys of what this rests on (batch ids): a continued run with other keys does the step again."""
    logger.debug("summarising %s after %s", source, after)
    data_version = summarise_source(warehouse, source, summary).data_version
    kind_of_runs(warehouse, source)  # a line in the log where all are simulated
    return data_version


def watch(warehouse: Warehouse, source: str, watch: WatchParams, drift: DriftParams) -> list[str]:
    """Raise an alarm for every slow run, stopped and drifted job; returns the ids of those nobody was told of yet.

    These are the new ones, and the ones of an earlier run that was killed before it could announce them."""
    watch_source(warehouse, source, watch, drift)
    return unannounced(warehouse, intake.WORD, source) if warehouse.file.exists() else []


def report(warehouse: Warehouse, source: str, report: ReportParams, after: str = "") -> str:
    """Write the page of a source; returns its path. after: key of what this rests on (data version)."""
    logger.debug("drawing %s after %s", source, after)
    kind_of_runs(warehouse, source)
    from tasks.report.jobs_page import render_report  # matplotlib: a second of import that other steps need not pay

    return str(render_report(warehouse, source, report))


def record(params: RecordParams, out_dir: str) -> Recording:
    """Run and record recurring jobs on this machine; returns the folder of the recording, and figures."""
    from tasks.jobs.record.campaign import record_jobs

    summary = record_jobs(params, Path(out_dir), lambda done, total: report_progress("recording jobs", done, total))
    logger.info("recorded %s", summary)
    return Recording(
        folder=out_dir,
        isolation=summary.isolation,
        n_runs=sum(summary.statuses.values()),
        own_cores_ratio=summary.own_cpu_s / summary.recorded_s if summary.recorded_s else 0.0,
    )
