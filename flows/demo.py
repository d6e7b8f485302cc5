"""The whole story on the recordings that whorl ships: what jobs did and will do, what ran, how good nodes are."""

from pathlib import Path
from typing import TypedDict

from pydantic import Field

from flows.forms import call, flow
from flows.job_model_params import PredictFlowParams, TrainFlowParams
from flows.job_models import jobs_predict, jobs_train
from flows.job_params import WAREHOUSE, IngestParams, WatchFlowParams
from flows.job_results import PredictedAndShown
from flows.jobs import jobs_ingest, jobs_watch
from flows.node_demo import NodesTold, tell_nodes
from flows.workload_demo import WorkloadTold, tell_workload
from tasks.jobs.params import JobsParams
from tasks.jobs.predict.quick_params import quick
from tasks.nodes.params import NodesParams
from tasks.params import Params
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import champion
from tasks.workloads.params import WorkloadsParams

RECORDED = Path(__file__).parents[1] / "data" / "recorded" / "jobs"
SOURCE = "recorded"
KIND = "runtime"


class DemoParams(Params):
    """Where the demo works, and with which settings."""

    warehouse: Warehouse = Field(description=WAREHOUSE)
    jobs: JobsParams = Field(JobsParams(), description="Settings of the word jobs")
    workloads: WorkloadsParams = Field(WorkloadsParams(), description="Settings of the word workloads")
    nodes: NodesParams = Field(NodesParams(), description="Settings of the word nodes")


class Told(TypedDict):
    """What the demo found. report, predictions_report: paths of the pages; alarms: ids of the alarms that are new;
    model_id: of the model in use; workload: what was made of the recording that no model has seen; nodes: which is
    best, which looks worse than it used to, and what a model of them flags."""

    source: str
    n_rows: int
    n_quarantined: int
    data_version: str
    alarms: list[str]
    report: str
    predictions_report: str
    model_id: str
    workload: WorkloadTold
    nodes: NodesTold


@flow(name="whorl-demo", run_name=lambda: "tell the story of the recordings", tags=["demo"])
def whorl_demo(params: DemoParams) -> Told:
    """Read the recorded jobs that whorl ships, summarise them, raise an alarm for each slow run, and predict the next
    run of each job; then name a recorded run of a workload that was held out; and rank recorded nodes, learn what is
    normal for them, and say which look degraded."""
    jobs = params.jobs
    asked = IngestParams(
        paths=[str(RECORDED)],
        source=SOURCE,
        read=jobs.read,
        group=jobs.group,
        summary=jobs.summary,
        report=jobs.report,
        warehouse=params.warehouse,
    )
    found = call(jobs_ingest, asked)
    watching = WatchFlowParams(
        source=SOURCE,
        watch=jobs.watch,
        late=jobs.late,
        drift=jobs.drift,
        outlook=jobs.outlook,
        warehouse=params.warehouse,
    )
    watched = call(jobs_watch, watching)
    predicted = _predicted(params.warehouse, found["data_version"], jobs)
    return Told(
        source=SOURCE,
        n_rows=found["n_rows"],
        n_quarantined=found["n_quarantined"],
        data_version=found["data_version"],
        alarms=watched["alarms"],
        report=found["report"],
        predictions_report=predicted["predictions_report"],
        model_id=predicted["model_id"],
        workload=tell_workload(params.warehouse, params.workloads, SOURCE),
        nodes=tell_nodes(params.warehouse, params.nodes, SOURCE),
    )


def _predicted(warehouse: Warehouse, data_version: str, jobs: JobsParams) -> PredictedAndShown:
    """The next run of each job by a model of these very data: the one in use, or one trained quickly."""
    in_use = champion(warehouse.models, "jobs", SOURCE, KIND)
    if in_use is None or in_use.data_version != data_version:
        call(jobs_train, TrainFlowParams(source=SOURCE, evaluate=quick(jobs.evaluate), warehouse=warehouse))
    asked = PredictFlowParams(source=SOURCE, summary=jobs.summary, warehouse=warehouse)
    return call(jobs_predict, asked)


def tell_demo(params: DemoParams) -> Told:
    """Run whorl-demo here and now. Raises WhorlError."""
    return call(whorl_demo, params)
