"""The flows of the word `advice`: where to run next, how well that is found."""

from pathlib import Path
from typing import Any

from prefect.runtime import flow_run
from pydantic import Field

from flows.forms import call, flow
from flows.job_params import WAREHOUSE
from flows.policies import step
from flows.publish import artifact_key, publish
from tasks.advice import steps
from tasks.advice.params import EstimateParams, GroupParams, ReplayParams, SearchParams, TransferParams
from tasks.advice.record.plan import RecordParams
from tasks.errors import BadSetting
from tasks.params import Params
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import source_of

WORD = "advice"
TAGS = [WORD]
HISTORY = "advice-runs.csv"  # in the home folder
MACHINES = "Table of machine types with vCPU, memory and price; empty: that of the settings"
COLUMNS = "Columns of the table that have other names (ours: theirs)"


class SearchFlowParams(Params):
    """A search for the cheapest configuration of one job."""

    history: str = Field(
        "",
        description="Table of runs so far: job, machine_type, nodes, runtime_s, status; "
        f"empty: {HISTORY} in the home folder",
    )
    job: str = Field("", description="The job; empty: the only one of the table")
    machines: str = Field("", description=MACHINES)
    memory_gb: float | None = Field(
        None, gt=0, le=1e9, description="Memory that the job needs over all nodes, in GB; empty: not known"
    )
    peaks_of: str = Field(
        "", description="Source of job runs in the warehouse whose peaks say how much memory it needs"
    )
    max_runtime_s: float | None = Field(
        None, gt=0, le=1e9, description="Longest runtime that will do, in seconds; empty: any"
    )
    columns: dict[str, str] = Field({}, description=COLUMNS)
    search: SearchParams = Field(SearchParams(), description="Which configurations are considered")
    warehouse: Warehouse = Field(description=WAREHOUSE)


class AdviceEvaluateParams(Params):
    """A replay of all search methods on a table of runs."""

    runs: str = Field(
        "",
        description="Table of runs: jobs with a run on each of many configurations; "
        f"empty: {HISTORY} in the home folder",
    )
    machines: str = Field("", description=MACHINES)
    needs: str = Field("", description="Table of memory needs by job (job, need_gb); empty: not known")
    scores: str = Field("", description="Table of scores (machine_type, aspect, score); empty: methods without scores")
    columns: dict[str, str] = Field({}, description=COLUMNS)
    search: SearchParams = Field(SearchParams(), description="Where machine types stand")
    evaluate: ReplayParams = Field(ReplayParams(), description="How searches are replayed")
    warehouse: Warehouse = Field(description=WAREHOUSE)


class AdviceRecordParams(Params):
    """A recording of recurring jobs on machine types that the worker's machine emulates."""

    folder: str = Field(min_length=1, description="Folder for the recording; the next run with the same folder goes on")
    record: RecordParams = Field(RecordParams(), description="Which jobs run how often on which machine types")


class GroupsFlowParams(Params):
    """Groups of alike machines."""

    scores: str = Field("", description="Table of scores (machine, aspect, score, low, high); empty: those of nodes")
    nodes_of: str = Field("", description="Source of nodes whose ranking says the scores; empty: the only one")
    aspects: list[str] = Field([], description="Aspects that count; empty: all")
    traces: str = Field("", description="Resource trace of a workflow, whose tasks are assigned; empty: none")
    columns: dict[str, str] = Field({}, description=COLUMNS)
    groups: GroupParams = Field(GroupParams(), description="When machines count as different")
    warehouse: Warehouse = Field(description=WAREHOUSE)


class EstimateFlowParams(Params):
    """Runtimes on a machine that was not tried: of the tasks of traces, or of a recurring job."""

    onto: str = Field("", description="The machine, or machine type, to estimate for; it has to be named")
    traces: list[str] = Field([], description="Traces of a workflow (Nextflow's trace.txt, or tables); empty: a job")
    job: str = Field("", description="A recurring job in the warehouse, by its key or a unique part of it")
    jobs_source: str = Field("", description="Source of the job's runs; empty: the only one")
    start: str = Field("", description="The machine that runs are taken from; empty: the only one, or the most used")
    scores: str = Field("", description="With traces: table of scores: machine_type, aspect, score")
    scores_of: str = Field("", description="With traces: source of node benchmarks that say the scores instead")
    machine: str = Field("", description="Where traces ran that do not say it; empty: the name of their folder")
    size_ratio: float = Field(1.0, gt=0, le=1_000_000, description="Size of the input, over the largest that has run")
    deadline_s: float | None = Field(
        None, gt=0, le=1e9, description="With a job: how often it would be late; empty: not asked"
    )
    columns: dict[str, str] = Field({}, description=COLUMNS)
    estimate: EstimateParams = Field(EstimateParams(), description="How tasks are estimated")
    transfer: TransferParams = Field(TransferParams(), description="How jobs are estimated")
    warehouse: Warehouse = Field(description=WAREHOUSE)


search = step(steps.search_page)
groups = step(steps.groups_page)
record = step(steps.record)
estimate_traces = step(steps.traces_page)
estimate_job = step(steps.job_page)
evaluate = step(steps.evaluate_page)


@flow(name="advice-search", run_name=lambda: f"search for {flow_run.parameters['job'] or 'the only job'}", tags=TAGS)
def advice_search(params: SearchFlowParams) -> dict[str, Any]:
    """Say on which configuration a job should run next, what that is expected to cost, and when to stop."""
    need = {"memory_gb": params.memory_gb, "recorded": params.peaks_of or None, "warehouse": params.warehouse}
    found = search(
        params.warehouse,
        params.history or str(params.warehouse.home / HISTORY),
        params.job or None,
        params.machines or None,
        params.search,
        need,
        params.max_runtime_s,
        params.columns,
    )
    publish(artifact_key(WORD, found["job"], "search"), found.pop("markdown"), f"Where to run {found['job']} next")
    return found


@flow(
    name="advice-groups",
    run_name=lambda: f"group machines of {flow_run.parameters['scores'] or flow_run.parameters['nodes_of'] or 'nodes'}",
    tags=TAGS,
)
def advice_groups(params: GroupsFlowParams) -> dict[str, Any]:
    """Say which machines are alike as far as their scores tell them apart, and which tasks belong on which."""
    source = None if params.scores else source_of(params.warehouse, "nodes", params.nodes_of or None)
    found = groups(
        params.warehouse,
        params.scores or None,
        source,
        params.aspects,
        params.traces or None,
        params.groups,
        params.columns,
    )
    name = source or Path(params.scores).name
    publish(artifact_key(WORD, name, "groups"), found.pop("markdown"), f"Which machines of {name} are alike")
    return found


@flow(
    name="advice-evaluate",
    run_name=lambda: f"replay searches on {Path(flow_run.parameters['runs'] or HISTORY).name}",
    tags=TAGS,
)
def advice_evaluate(params: AdviceEvaluateParams) -> dict[str, Any]:
    """Replay every search method on a table of runs; a run that is continued does not search again what it has."""
    folder = params.warehouse.home / "reports" / f"advice-evaluation-{str(flow_run.id)[:8]}"
    runs = params.runs or str(params.warehouse.home / HISTORY)
    found = evaluate(
        runs,
        params.machines or None,
        params.needs or None,
        params.scores or None,
        params.search,
        params.evaluate,
        params.columns,
        str(folder),
    )
    publish(artifact_key(WORD, Path(runs).name, "evaluation"), found.pop("markdown"), f"Searches on {runs}")
    return found


@flow(name="advice-record", run_name=lambda: "record jobs on emulated machine types", tags=TAGS)
def advice_record(params: AdviceRecordParams) -> dict[str, Any]:
    """Run recurring jobs and benchmarks on emulated machine types and record them; a continued run goes on."""
    return record(params.record, params.folder)


def record_advice(params: AdviceRecordParams) -> dict[str, Any]:
    """Run advice-record here and now. Raises WhorlError."""
    return call(advice_record, params)


def group_machines(params: GroupsFlowParams) -> dict[str, Any]:
    """Run advice-groups here and now. Raises WhorlError."""
    return call(advice_groups, params)


@flow(name="advice-estimate", run_name=lambda: f"estimate for {flow_run.parameters['onto']}", tags=TAGS)
def advice_estimate(params: EstimateFlowParams) -> dict[str, Any]:
    """Say how long tasks or a recurring job take on a machine that was not tried, and how sure that is."""
    if not params.onto:
        raise BadSetting("onto: no machine named; expected the one to estimate for")
    if bool(params.traces) == bool(params.job):
        raise BadSetting("traces and job: expected one of them")
    if params.job:
        source = params.jobs_source or source_of(params.warehouse, "jobs", None)
        found = estimate_job(
            params.warehouse,
            source,
            params.job,
            params.onto,
            params.transfer,
            start=params.start,
            deadline_s=params.deadline_s,
        )
    else:
        found = estimate_traces(
            params.warehouse,
            params.traces,
            params.onto,
            params.scores or None,
            params.scores_of or None,
            params.estimate,
            start=params.start,
            machine=params.machine,
            size_ratio=params.size_ratio,
            renamed=params.columns,
        )
    title = f"Runtimes on {params.onto}"
    publish(artifact_key(WORD, params.job or "traces", params.onto, "estimate"), found.pop("markdown"), title)
    return found


def estimate_runtimes(params: EstimateFlowParams) -> dict[str, Any]:
    """Run advice-estimate here and now. Raises WhorlError."""
    return call(advice_estimate, params)


def search_configuration(params: SearchFlowParams) -> dict[str, Any]:
    """Run advice-search here and now. Raises WhorlError."""
    return call(advice_search, params)


def evaluate_advice(params: AdviceEvaluateParams) -> dict[str, Any]:
    """Run advice-evaluate here and now. Raises WhorlError."""
    return call(advice_evaluate, params)
