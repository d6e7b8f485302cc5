"""The flows of the word `workloads` about telemetry itself: recording, files in."""

from prefect.runtime import flow_run

from flows.file_intake import files_or_inbox, load_each, not_all_read
from flows.forms import call, flow
from flows.policies import step
from flows.publish import artifact_key, publish
from flows.run_names import of_ingest
from flows.workload_pages import telemetry_page
from flows.workload_params import INBOX, WorkloadIngestParams, WorkloadRecordParams
from flows.workload_results import TelemetryIngested
from tasks.warehouse.landing import find_batch
from tasks.workloads import steps
from tasks.workloads.reader_names import reader_asked_for
from tasks.workloads.steps import Recording

WORD = "workloads"
TAGS = [WORD]

record = step(steps.record)
find_files = step(steps.find_files)
land_telemetry = step(steps.land_telemetry)
ingest_batch = step(steps.ingest_batch)
source_version = step(steps.source_version)


@flow(
    name="workloads-record",
    run_name=lambda: f"record workloads for {flow_run.parameters['record'].minutes:g} minutes",
    tags=TAGS,
)
def workloads_record(params: WorkloadRecordParams) -> Recording:
    """Run real workloads on the worker's machine and record its telemetry; a run that is continued goes on."""
    return Recording(**record(params.record, params.folder.replace("{run}", str(flow_run.id)[:8])))


@flow(name="workloads-ingest", run_name=lambda: of_ingest("telemetry", "the inbox"), tags=TAGS)
def workloads_ingest(params: WorkloadIngestParams) -> TelemetryIngested:
    """Read telemetry into the warehouse.

    Files that were read before add nothing. A file that cannot be read does not hold up the others: they are loaded,
    and the run fails at its end with a line that says which file and why. Single bad rows go to the quarantine."""
    warehouse, source = params.warehouse, params.source
    reader = reader_asked_for(params.reader)
    files = files_or_inbox(
        warehouse,
        INBOX,
        params.telemetry,
        is_named=bool(params.telemetry or params.read.manifest),
        find=lambda paths: find_files(paths, params.read),
    )
    ids, refused = load_each(
        files, lambda path: ingest_batch(warehouse, land_telemetry(warehouse, path, source, reader, params.read))
    )
    batches = [find_batch(warehouse.landing_folder, WORD, batch_id) for batch_id in ids]
    page = telemetry_page(source, batches, [str(error) for error in refused])
    publish(artifact_key(WORD, source, "ingest"), page, f"Telemetry read into source {source}")
    result = TelemetryIngested(
        batches=ids,
        n_runs=sum(batch.tables["runs"].n_rows for batch in batches),
        n_quarantined=sum(batch.n_quarantined for batch in batches),
        data_version=source_version(warehouse, source, ids) if ids else "",
    )
    if refused:
        raise not_all_read(refused, len(files), "telemetry", result)
    return result


def record_workloads(params: WorkloadRecordParams) -> Recording:
    """Run workloads-record here and now. Raises WhorlError."""
    return call(workloads_record, params)


def ingest_workloads(params: WorkloadIngestParams) -> TelemetryIngested:
    """Run workloads-ingest here and now. Raises WhorlError."""
    return call(workloads_ingest, params)
