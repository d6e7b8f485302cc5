"""The flow that watches what runs: recorded now or read before, identified, and told of where it should not be."""

from prefect.runtime import flow_run

from flows.alarms import announce
from flows.forms import call, flow
from flows.policies import step
from flows.publish import artifact_key, joined, publish
from flows.run_names import of_source
from flows.site_pages import report_part, watched_part, write_report
from flows.workload_model_pages import watch_page
from flows.workload_model_params import WorkloadWatchParams
from flows.workload_results import WorkloadsWatched
from tasks.errors import BadInput
from tasks.warehouse.alarms import read_alarms
from tasks.workloads import model_steps, steps, watch_steps
from tasks.workloads.identification_rows import read_identifications
from tasks.workloads.model_steps import IdentifiedRuns
from tasks.workloads.reading_params import ReadParams

WORD = "workloads"
TAGS = [WORD]
RECORDED_AS = "wide"

record_live = step(watch_steps.record_live)
land_telemetry = step(steps.land_telemetry)
ingest_batch = step(steps.ingest_batch)
runs_of_batch = step(watch_steps.runs_of_batch)
newest = step(model_steps.newest)
require_model = step(model_steps.require_model)
identify = step(model_steps.identify)
watch = step(watch_steps.watch)
announce_alarms = step(announce)


@flow(
    name="workloads-watch",
    run_name=lambda: of_source("watch the workloads of"),
    tags=TAGS,
)
def workloads_watch(params: WorkloadWatchParams) -> WorkloadsWatched:
    """Look at what runs, and raise an alarm where it is not what should run, or is unknown; the same going on is told
    once.

    What runs now is recorded for a while and kept in the source without a label; or the latest runs of the source are
    looked at. Alarms stand in ops.alarms, and each is an event whorl.workloads.alarm that an automation can send on."""
    warehouse, source = params.warehouse, params.source
    require_model(warehouse, source)
    found = identify(warehouse, source, _looked_at(params), "all")
    _require_sight(source, found)
    ids = watch(warehouse, source, found["run_ids"], params.watch)
    announce_alarms(warehouse, ids)
    alarms = read_alarms(warehouse, ids=ids, limit=max(1, len(ids)))
    rows = read_identifications(warehouse, source, found["run_ids"])
    path = write_report(warehouse, WORD, source, ", ".join(ids)) if ids else ""
    picture = watched_part(warehouse, source, rows, params.watch.expected)
    parts = [watch_page(source, found, rows, alarms), picture, report_part(path)]
    publish(artifact_key(WORD, source, "alarms"), joined(parts), f"What runs in source {source}, and what should not")
    return WorkloadsWatched(
        run_ids=found["run_ids"], model_id=found["model_id"], alarms=ids, n_alarms=len(ids), report=path
    )


def watch_workloads(params: WorkloadWatchParams) -> WorkloadsWatched:
    """Run workloads-watch here and now. Raises WhorlError."""
    return call(workloads_watch, params)


def _looked_at(params: WorkloadWatchParams) -> list[str]:
    """The runs to look at: one that is recorded now, or the latest of the source."""
    warehouse, source, asked = params.warehouse, params.source, params.watch
    if asked.look_at == "newest":
        return newest(warehouse, source, asked.newest)
    path = record_live(warehouse, asked.subject, asked.seconds, params.record, str(flow_run.id))
    batch_id = ingest_batch(warehouse, land_telemetry(warehouse, path, source, RECORDED_AS, ReadParams()))
    found = runs_of_batch(warehouse, source, batch_id)
    if not found:
        raise BadInput(path, "no run in it that can be used", "what was just recorded", "ops.quarantine says why")
    return found


def _require_sight(source: str, found: IdentifiedRuns) -> None:
    """Raise BadInput if nothing that was looked at could be identified: silence would pass for all being well."""
    if found["refused"] and not found["run_ids"]:
        raise BadInput(
            f"source {source!r}",
            f"the model in use cannot see what runs: {found['refused'][0]}",
            "the counters that it was trained on",
            "train on what is recorded here",
        )
