"""The flows of the word `nodes` about executions themselves: recording, files in."""

from prefect.runtime import flow_run

from flows.file_intake import files_or_inbox, load_each, not_all_read
from flows.forms import call, flow
from flows.network_turn import make_limit, network_turn, take_back_turns
from flows.node_pages import executions_page
from flows.node_params import INBOX, NodeIngestParams, NodeRecordParams
from flows.node_results import NodesRecorded, ResultsIngested
from flows.policies import step
from flows.publish import artifact_key, publish
from flows.run_names import of_ingest
from tasks.nodes import steps
from tasks.nodes.reader_names import reader_asked_for
from tasks.nodes.record.params import RecordParams
from tasks.nodes.steps import Recording
from tasks.warehouse.landing import find_batch

WORD = "nodes"
TAGS = [WORD]
RUN_DIGITS = 8

land_recording = step(steps.land_recording)
landed_batches = step(steps.landed_batches)
find_files = step(steps.find_files)
land_executions = step(steps.land_executions)
ingest_batch = step(steps.ingest_batch)
source_version = step(steps.source_version)
count_emulated = step(steps.count_emulated)


@step
def record(params: RecordParams, folder: str) -> Recording:
    """Record benchmarks; those that need the network wait until no other node uses it."""
    make_limit()
    take_back_turns()
    return steps.record(params, folder, turn=network_turn)


def _record_name() -> str:
    asked = flow_run.parameters["record"]
    return f"record benchmarks on {asked.node or 'this node'}" if asked.place == "local" else "record emulated nodes"


@flow(name="nodes-record", run_name=_record_name, tags=TAGS)
def nodes_record(params: NodeRecordParams) -> NodesRecorded:
    """Run benchmarks on the worker's machine and record them with the machine's own metrics.

    Without a campaign it completes what the node lacks, and then repeats what is doubtful or stalest, so it can be put
    on a schedule. Nodes that share a Prefect server use the network one after another. A continued run goes on."""
    found = record(params.record, _folder(params.folder))
    batches = (
        land_recording(found["folder"], params.landing, params.source, found["n_clean"] + found["n_new"])
        if params.landing
        else []
    )
    return NodesRecorded(**found, batches=batches)


@flow(name="nodes-ingest", run_name=lambda: of_ingest("results", "what was recorded"), tags=TAGS)
def nodes_ingest(params: NodeIngestParams) -> ResultsIngested:
    """Read results of benchmarks into the warehouse.

    Files that were read before add nothing. A file that cannot be read does not hold up the others: they are loaded,
    and the run fails at its end with a line that says which file and why. Single bad rows go to the quarantine."""
    warehouse, source = params.warehouse, params.source
    reader = reader_asked_for(params.reader)
    is_named = bool(params.results or params.read.manifest)
    landed = [] if is_named else landed_batches(warehouse, source)
    known = [ingest_batch(warehouse, batch_id) for batch_id in landed]
    files = files_or_inbox(
        warehouse, INBOX, params.results, is_named=is_named, find=lambda paths: find_files(paths, params.read)
    )
    loaded, refused = load_each(
        files, lambda path: ingest_batch(warehouse, land_executions(warehouse, path, source, reader, params.read))
    )
    ids = [*known, *loaded]
    batches = [find_batch(warehouse.landing_folder, WORD, batch_id) for batch_id in ids]
    n_emulated = count_emulated(warehouse, source, ids) if ids else 0
    page = executions_page(source, batches, [str(error) for error in refused], n_emulated)
    publish(artifact_key(WORD, source, "ingest"), page, f"Executions of benchmarks read into source {source}")
    result = ResultsIngested(
        batches=ids,
        n_landed=len(landed),
        n_executions=sum(batch.tables["executions"].n_rows for batch in batches),
        n_quarantined=sum(batch.n_quarantined for batch in batches),
        data_version=source_version(warehouse, source, ids) if ids else "",
    )
    if refused:
        raise not_all_read(refused, len(files), "results of benchmarks", result)
    return result


def record_nodes(params: NodeRecordParams) -> NodesRecorded:
    """Run nodes-record here and now. Raises WhorlError."""
    return call(nodes_record, params)


def ingest_nodes(params: NodeIngestParams) -> ResultsIngested:
    """Run nodes-ingest here and now. Raises WhorlError."""
    return call(nodes_ingest, params)


def _folder(asked: str) -> str:
    """The folder of a recording, with the places in braces filled in."""
    from tasks.settings import load_settings

    folder = asked.replace("{run}", str(flow_run.id)[:RUN_DIGITS])
    return folder.replace("{home}", str(load_settings().settings.warehouse.home)) if "{home}" in folder else folder
