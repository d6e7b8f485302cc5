"""The whole story on the recordings that whorl ships: what jobs did and will do, what ran, how good nodes are."""

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
from tasks import datasets
from tasks.advice.params import AdviceParams
from tasks.advice.steps import recorded_story
from tasks.errors import BadInput
from tasks.jobs.control.answering import ask_source
from tasks.jobs.control.scenarios import named_scenario
from tasks.jobs.explain.explaining import explain_next_of
from tasks.jobs.outlook import next_run
from tasks.jobs.params import JobsParams
from tasks.jobs.predict.params import quick
from tasks.jobs.predict.predicting import read_predictions
from tasks.jobs.summary import read_summary
from tasks.nodes.params import NodesParams
from tasks.params import Params
from tasks.quantities import duration
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import champion
from tasks.workloads.params import WorkloadsParams

SOURCE = "recorded"
KIND = "runtime"
CHANGES = {
    "newest_sku": "running it on the newest machines",
    "no_spare": "giving it no spare tokens",
    "steady_load": "steadier load",
}
ALARMS_PER_DAY = 100.0  # the recording lasts some hours: at one a day there would be none to show
MEASURE = "p95_s"
FILES = "SELECT word, count(*) AS n_files FROM ops.files WHERE source = $source GROUP BY word ORDER BY word"


class DemoParams(Params):
    """Where the demo works, and with which settings."""

    warehouse: Warehouse = Field(description=WAREHOUSE)
    jobs: JobsParams = Field(JobsParams(), description="Settings of the word jobs")
    workloads: WorkloadsParams = Field(WorkloadsParams(), description="Settings of the word workloads")
    nodes: NodesParams = Field(NodesParams(), description="Settings of the word nodes")
    advice: AdviceParams = Field(AdviceParams(), description="Settings of the word advice")


class Riskiest(TypedDict):
    """The job whose next run is most likely to take more than twice its usual time, with that probability.

    p95_s: what the run stays under with 95 %; because, would_help: in words, the second by a what-if of the model."""

    group_key: str
    usual_s: float
    exceeds_2x_share: float
    p95_s: float
    because: str
    would_help: str


class AdviceTold(TypedDict):
    """A machine type for the first job that should leave its own, and what became of the answers for all jobs."""

    answer: str
    sureness: str
    reason: str
    next_run: str
    checks: list[str]


class Told(TypedDict):
    """What the demo found. n_files: that were read, by word; alarms: ids of the alarms of jobs that are new.

    riskiest: None where no job has enough runs; workload: what was made of the recording that no model has seen;
    nodes: which is best, and what a model of them flags; model_id: of jobs; report: path of the page."""

    source: str
    n_files: dict[str, int]
    n_rows: int
    n_quarantined: int
    n_runs: int
    n_jobs: int
    data_version: str
    alarms: list[str]
    riskiest: Riskiest | None
    report: str
    model_id: str
    workload: WorkloadTold
    nodes: NodesTold
    advice: AdviceTold


@flow(name="whorl-demo", run_name=lambda: "tell the story of the recordings", tags=["demo"])
def whorl_demo(params: DemoParams) -> Told:
    """Read the recorded jobs that whorl ships, summarise them, raise an alarm for each slow run, and predict the next
    run of each job; then name a recorded run of a workload that was held out; and rank recorded nodes, learn what is
    normal for them, and say which look degraded; and choose a machine type for a job that has run on one alone."""
    jobs = params.jobs
    asked = IngestParams(
        paths=[str(datasets.RECORDED / "jobs")],
        source=SOURCE,
        read=jobs.read,
        group=jobs.group,
        summary=jobs.summary,
        warehouse=params.warehouse,
    )
    found = call(jobs_ingest, asked)
    watching = WatchFlowParams(
        source=SOURCE,
        watch=jobs.watch.model_copy(update={"alarms_per_day": ALARMS_PER_DAY}),
        drift=jobs.drift,
        warehouse=params.warehouse,
    )
    watched = call(jobs_watch, watching)
    predicted = _predicted(params.warehouse, found["data_version"], jobs)
    riskiest = tell_riskiest(params.warehouse, jobs)
    workload = tell_workload(params.warehouse, params.workloads, SOURCE)
    nodes = tell_nodes(params.warehouse, params.nodes, SOURCE)
    files, totals = fetch(params.warehouse, FILES, {"source": SOURCE}), read_summary(params.warehouse, SOURCE)
    return Told(
        source=SOURCE,
        n_files={str(word): int(n) for word, n in zip(files["word"], files["n_files"], strict=True)},
        n_rows=found["n_rows"],
        n_quarantined=found["n_quarantined"],
        n_runs=totals["n_runs"],
        n_jobs=totals["n_groups"],
        data_version=found["data_version"],
        alarms=watched["alarms"],
        riskiest=riskiest,
        report=predicted["report"],
        model_id=predicted["model_id"],
        workload=workload,
        nodes=nodes,
        advice=tell_advice(params.warehouse, params.advice),
    )


def tell_advice(warehouse: Warehouse, params: AdviceParams) -> AdviceTold:
    """The cheapest machine type for a recorded job that is rarely late, checked with runs that were held back."""
    from tasks.report.advice import story_checks, story_result
    from tasks.report.site import write_advice

    told = recorded_story(str(datasets.RECORDED / "advice"), params.choose)
    again = "whorl advice choose --recording data/recorded/advice"
    write_advice(warehouse, "advice-story", story_result(told, "recorded", again))
    return AdviceTold(
        answer=told.answer,
        sureness=told.sureness,
        reason=told.reason,
        next_run=told.next_run,
        checks=list(story_checks(told)),
    )


def _predicted(warehouse: Warehouse, data_version: str, jobs: JobsParams) -> PredictedAndShown:
    """The next run of each job by a model of these very data: the one in use, or one trained quickly."""
    in_use = champion(warehouse.models, "jobs", SOURCE, KIND)
    if in_use is None or in_use.data_version != data_version:
        call(jobs_train, TrainFlowParams(source=SOURCE, evaluate=quick(jobs.evaluate), warehouse=warehouse))
    asked = PredictFlowParams(source=SOURCE, summary=jobs.summary, warehouse=warehouse)
    return call(jobs_predict, asked)


def tell_riskiest(warehouse: Warehouse, jobs: JobsParams) -> Riskiest | None:
    """The job that is most likely to take twice its usual time, why, and which of three changes would help most."""
    rows = read_predictions(warehouse, SOURCE, min_before=jobs.summary.min_support, limit=1)
    for row in rows.to_dict("records"):
        key = str(row["group_key"])
        return Riskiest(
            group_key=key,
            usual_s=float(row["usual_s"]),
            exceeds_2x_share=float(row["exceeds_2x_share"]),
            p95_s=float(row["p95_s"]),
            because=_because(warehouse, key, jobs),
            would_help=_help(warehouse, key, jobs),
        )
    return None


def _because(warehouse: Warehouse, key: str, jobs: JobsParams) -> str:
    """How far apart the runs of a job lie, and what, known before a run, makes the next one long: often nothing."""
    own = next_run(warehouse, SOURCE, key, jobs.summary)
    low, high, longest = (duration(own.quantiles_s[level]) for level in (0.25, 0.75, 0.95))
    spread = f"half of its {own.n:,} runs took {low} to {high}, one in twenty over {longest}"
    found = explain_next_of(warehouse, SOURCE, key, jobs.explain)
    reasons = [one for side in (found.runtime, found.variation) if side for one in side.reasons if one.contribution > 0]
    others = [one.text for one in reasons if one.family != "history"]
    return f"{spread}; {others[0] if others else 'no single cause that is known before it starts makes it 5 % longer'}"


def _help(warehouse: Warehouse, key: str, jobs: JobsParams) -> str:
    params = jobs.whatif
    asked = ask_source(warehouse, SOURCE, job=key)
    found: dict[str, tuple[float, float]] = {}
    for name in CHANGES:
        try:
            changes = asked.answer(named_scenario(name), params).outcome.changes
        except BadInput:  # the log does not have what is changed
            continue
        before, after = changes.loc[[MEASURE], ["before", "after"]].to_numpy(dtype=float)[0].tolist()
        found[name] = (before, after)
    if not found:
        return "not known: the log tells nothing of machines, spare tokens or load"
    best = min(found, key=lambda name: found[name][1] - found[name][0])
    before, after = found[best]
    if after >= before:
        return "none of the changes that were tried, by the model"
    return f"{CHANGES[best]}: 95 % under {duration(after)} in place of {duration(before)}, by the model"


def tell_demo(params: DemoParams) -> Told:
    """Run whorl-demo here and now. Raises WhorlError."""
    return call(whorl_demo, params)
