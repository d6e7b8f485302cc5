"""The flows of the word `jobs`: logs in, summary, watch, recording."""

import logging

from prefect.runtime import flow_run

from flows.alarms import announce
from flows.file_intake import files_or_inbox, load_each, not_all_read
from flows.forms import call, flow
from flows.job_pages import alarms_page, ingest_page
from flows.job_params import IngestParams, RecordFlowParams, SummaryFlowParams, WatchFlowParams
from flows.job_results import Ingested, Recorded, Summarised, Watched
from flows.policies import step
from flows.publish import artifact_key, joined, publish
from flows.run_names import of_ingest, of_source
from flows.site_pages import publish_summary, report_part, write_report
from tasks.jobs import intake, steps
from tasks.jobs.offered_names import reader_asked_for
from tasks.jobs.params import SummaryParams
from tasks.jobs.summary import read_summary
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.landing import find_batch
from tasks.warehouse.place import Warehouse

logger = logging.getLogger(__name__)
WORD = "jobs"
TAGS = [WORD]
INBOX = "inbox"  # in the home folder

find_logs = step(intake.find_logs)
land_log = step(steps.land_log)
ingest_batch = step(steps.ingest_batch)
watch = step(steps.watch)
announce_alarms = step(announce)
record = step(steps.record)


@step
def summarise(warehouse: Warehouse, source: str, summary: SummaryParams, batches: list[str]) -> str:
    """Summarise a source. batches: what the run has loaded; a continued run that loaded more does it again."""
    logger.info("summarising %s after %d batches", source, len(batches))
    return steps.summarise(warehouse, source, summary)


@flow(name="jobs-ingest", run_name=lambda: of_ingest("paths", "the inbox"), tags=TAGS)
def jobs_ingest(params: IngestParams) -> Ingested:
    """Read job logs into the warehouse, and summarise their recurring jobs.

    Files that were read before add nothing. A file that cannot be read does not hold up the others: they are loaded,
    and the run fails at its end with a line that says which file and why. Single bad rows go to the quarantine."""
    warehouse, source = params.warehouse, params.source
    reader = reader_asked_for(params.reader)
    is_named = bool(params.paths) and params.paths != [str(warehouse.home / INBOX)]
    logs = files_or_inbox(warehouse, INBOX, params.paths, is_named=is_named, find=find_logs)
    ids, refused = load_each(
        logs,
        lambda path: ingest_batch(warehouse, land_log(warehouse, path, source, reader, params.read, params.group)),
    )
    batches = [find_batch(warehouse.landing_folder, WORD, batch_id) for batch_id in ids]
    page = ingest_page(source, batches, [str(error) for error in refused])
    publish(artifact_key(WORD, source, "ingest"), page, f"Job logs read into source {source}")
    has_rows = any(batch.tables["runs"].n_rows for batch in batches)
    is_wanted = params.with_summary and has_rows
    found = _summary(warehouse, source, params.summary, ids) if is_wanted else None
    result = Ingested(
        batches=ids,
        n_rows=sum(batch.tables["runs"].n_rows for batch in batches),
        n_quarantined=sum(batch.n_quarantined for batch in batches),
        data_version=found["data_version"] if found else "",
        report=found["report"] if found else "",
    )
    if refused:
        raise not_all_read(refused, len(logs), "job logs", result)
    return result


@flow(name="jobs-summary", run_name=lambda: of_source("summarise"), tags=TAGS)
def jobs_summary(params: SummaryFlowParams) -> Summarised:
    """Summarise the recurring jobs of a source: how often each runs and how much its runtime varies."""
    return _summary(params.warehouse, params.source, params.summary, [])


@flow(name="jobs-watch", run_name=lambda: of_source("watch"), tags=TAGS)
def jobs_watch(params: WatchFlowParams) -> Watched:
    """Look for runs longer than predicted, also while they go on, and jobs that stopped or drift; alarm of each, once.

    Alarms stand in ops.alarms, and each is an event whorl.jobs.alarm that an automation can mail or send on."""
    ids = watch(params.warehouse, params.source, params.watch, params.drift)
    announce_alarms(params.warehouse, ids)
    alarms = read_alarms(params.warehouse, ids=ids, limit=max(1, len(ids)))
    path = _page_with_alarms(params.warehouse, params.source, ids)
    publish(
        artifact_key(WORD, params.source, "alarms"),
        joined([alarms_page(params.source, alarms), report_part(path) if path else ""]),
        f"Slow runs, stopped and drifting jobs of source {params.source}",
    )
    return Watched(alarms=ids, n_alarms=len(ids), report=path)


@flow(
    name="jobs-record",
    run_name=lambda: f"record {flow_run.parameters['record'].minutes:g} minutes",
    tags=TAGS,
)
def jobs_record(params: RecordFlowParams) -> Recorded:
    """Run real recurring jobs on the worker's machine and record them; a run that is continued goes on where it was."""
    return Recorded(**record(params.record, params.folder.replace("{run}", str(flow_run.id)[:8])))


def ingest_jobs(params: IngestParams) -> Ingested:
    """Run jobs-ingest here and now. Raises WhorlError."""
    return call(jobs_ingest, params)


def summarise_jobs(params: SummaryFlowParams) -> Summarised:
    """Run jobs-summary here and now. Raises WhorlError."""
    return call(jobs_summary, params)


def watch_jobs(params: WatchFlowParams) -> Watched:
    """Run jobs-watch here and now. Raises WhorlError."""
    return call(jobs_watch, params)


def record_jobs(params: RecordFlowParams) -> Recorded:
    """Run jobs-record here and now. Raises WhorlError."""
    return call(jobs_record, params)


def _summary(warehouse: Warehouse, source: str, summary: SummaryParams, batches: list[str]) -> Summarised:
    version = summarise(warehouse, source, summary, batches)
    path = write_report(warehouse, WORD, source, version)
    publish_summary(warehouse, WORD, source, path)
    totals = read_summary(warehouse, source)
    return Summarised(data_version=version, n_runs=totals["n_runs"], n_groups=totals["n_groups"], report=path)


def _page_with_alarms(warehouse: Warehouse, source: str, ids: list[str]) -> str:
    """The page of a source, written anew if there are new alarms to stand on it; "" without any, or a summary."""
    return write_report(warehouse, WORD, source, ", ".join(ids)) if ids else ""
