"""The flows of the word `advice`: where to run next, how well that is found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from prefect import Task
from prefect.runtime import flow_run
from pydantic import Field

from flows.engine import artifacts, forms
from flows.engine.forms import flow
from flows.engine.steps import step
from tasks.advice import params as of_advice
from tasks.advice import steps
from tasks.advice.record.plan import RecordParams
from tasks.errors import BadSetting
from tasks.params import Params
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import source_of

WORD = "advice"
HISTORY = "advice-runs.csv"  # in the home folder
MACHINES = "Table of machine types with vCPU, memory and price; empty: that of the settings"
COLUMNS = "Columns of the table that have other names (ours: theirs)"


def answered(question: Callable[..., steps.Answered]) -> Task[[Warehouse | Path, dict[str, Any]], dict[str, Any]]:
    """The step that asks a question of advice and writes the page of its answer, into a home's site or a folder."""

    def ask(place: Warehouse | Path, arguments: dict[str, Any]) -> dict[str, Any]:
        return question(**arguments).page(place)

    ask.__module__, ask.__name__, ask.__qualname__ = question.__module__, question.__name__, question.__qualname__
    return step(ask)


search, groups, evaluate = answered(steps.search), answered(steps.groups), answered(steps.evaluate)
estimate_traces, estimate_job = answered(steps.estimate_traces), answered(steps.estimate_job)
record = step(steps.record)
SEARCHED = ("job", "answer", "certainty", "is_finished", "machine_type", "nodes", "n_candidates", "n_promising")


class SearchFlowParams(forms.InHomeParams):
    """A search for the cheapest configuration of one job."""

    FIRST: ClassVar = "search.max_vcpu"
    LATER: ClassVar = ("peaks_of", "columns")
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
    search: of_advice.SearchParams = of_advice.SearchParams()


@flow(lambda: f"search for {flow_run.parameters['job'] or 'the only job'}")
def advice_search(params: SearchFlowParams) -> dict[str, Any]:
    """Say on which configuration a job should run next, what that is expected to cost, and when to stop."""
    need = {"memory_gb": params.memory_gb, "recorded": params.peaks_of or None, "warehouse": params.warehouse}
    inputs = {
        "history": params.history or str(params.warehouse.home / HISTORY),
        "job": params.job or None,
        "machines": params.machines or None,
        "params": params.search,
        "need": need,
        "max_runtime_s": params.max_runtime_s,
        "renamed": params.columns,
    }
    answer = search(params.warehouse, inputs)
    _publish(params.warehouse, (answer["job"], "search"), answer, f"Where to run {answer['job']} next")
    return {key: answer[key] for key in (*SEARCHED, "report")}


class GroupsFlowParams(forms.InHomeParams):
    """Groups of alike machines."""

    FIRST: ClassVar = "groups.confidence groups.seed"
    LATER: ClassVar = ("columns",)
    scores: str = Field("", description="Table of scores (machine, aspect, score, low, high); empty: those of nodes")
    nodes_of: str = Field("", description="Source of nodes whose ranking says the scores; empty: the only one")
    aspects: list[str] = Field([], description="Aspects that count; empty: all")
    traces: str = Field("", description="Resource trace of a workflow, whose tasks are assigned; empty: none")
    columns: dict[str, str] = Field({}, description=COLUMNS)
    groups: of_advice.MachineGroupParams = of_advice.MachineGroupParams()


@flow(lambda: f"group machines of {flow_run.parameters['scores'] or flow_run.parameters['nodes_of'] or 'nodes'}")
def advice_groups(params: GroupsFlowParams) -> dict[str, Any]:
    """Say which machines are alike as far as their scores tell them apart, and which tasks belong on which."""
    source = None if params.scores else source_of(params.warehouse, "nodes", params.nodes_of or None)
    inputs = {
        "scores": params.scores or None,
        "source": source,
        "warehouse": params.warehouse,
        "aspects": params.aspects,
        "traces": params.traces or None,
        "params": params.groups,
        "renamed": params.columns,
    }
    answer = groups(params.warehouse, inputs)
    name = source or Path(params.scores).name
    _publish(params.warehouse, (name, "groups"), answer, f"Which machines of {name} are alike")
    return answer


class AdviceEvaluateParams(forms.InHomeParams):
    """A replay of all search methods on a table of runs."""

    FIRST: ClassVar = "evaluate.searches evaluate.seed"
    LATER: ClassVar = ("columns",)
    runs: str = Field(
        "",
        description="Table of runs: jobs with a run on each of many configurations; "
        f"empty: {HISTORY} in the home folder",
    )
    machines: str = Field("", description=MACHINES)
    needs: str = Field("", description="Table of memory needs by job (job, need_gb); empty: not known")
    scores: str = Field("", description="Table of scores (machine_type, aspect, score); empty: methods without scores")
    columns: dict[str, str] = Field({}, description=COLUMNS)
    search: of_advice.SearchParams = of_advice.SearchParams()
    evaluate: of_advice.ReplayParams = of_advice.ReplayParams()


@flow(lambda: f"replay searches on {Path(flow_run.parameters['runs'] or HISTORY).name}")
def advice_evaluate(params: AdviceEvaluateParams) -> dict[str, Any]:
    """Replay every search method on a table of runs; a run that is continued does not search again what it has."""
    folder = Path(forms.evaluation_folder(params.warehouse, WORD))
    runs = params.runs or str(params.warehouse.home / HISTORY)
    inputs = {
        "runs": runs,
        "machines": params.machines or None,
        "needs": params.needs or None,
        "scores": params.scores or None,
        "search": params.search,
        "params": params.evaluate,
        "renamed": params.columns,
        "out": str(folder),
    }
    answer = evaluate(folder, inputs)
    _publish(params.warehouse, (Path(runs).name, "evaluation"), answer, f"Searches on {runs}")
    return answer


class AdviceRecordParams(Params):
    """A recording of recurring jobs on machine types that the worker's machine emulates."""

    FIRST: ClassVar = "record.minutes record.blocks record.repeats record.seed"
    folder: str = Field(min_length=1, description="Folder for the recording; the next run with the same folder goes on")
    record: RecordParams = RecordParams()


@flow(lambda: "record jobs on emulated machine types")
def advice_record(params: AdviceRecordParams) -> dict[str, Any]:
    """Run recurring jobs and benchmarks on emulated machine types and record them; a continued run goes on."""
    return record(params.record, params.folder)


class EstimateFlowParams(forms.InHomeParams):
    """Runtimes on a machine that was not tried: of the tasks of traces, or of a recurring job."""

    LATER: ClassVar = ("machine", "jobs_source", "scores_of", "size_ratio", "columns")
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
    estimate: of_advice.EstimateParams = of_advice.EstimateParams()


@flow(lambda: f"estimate for {flow_run.parameters['onto']}")
def advice_estimate(params: EstimateFlowParams) -> dict[str, Any]:
    """Say how long tasks or a recurring job take on a machine that was not tried, and how sure that is."""
    if not params.onto:
        raise BadSetting("onto: no machine named; expected the one to estimate for")
    if bool(params.traces) == bool(params.job):
        raise BadSetting("traces and job: expected one of them")
    onto, start = params.onto, params.start
    if params.job:
        source = params.jobs_source or source_of(params.warehouse, "jobs", None)
        inputs = {"warehouse": params.warehouse, "source": source, "job": params.job, "params": params.estimate}
        answer = estimate_job(
            params.warehouse, inputs | {"onto": onto, "start": start, "deadline_s": params.deadline_s}
        )
    else:
        inputs = {"paths": params.traces, "scores": params.scores or None, "scores_of": params.scores_of or None}
        inputs |= {"warehouse": params.warehouse, "params": params.estimate, "machine": params.machine}
        inputs |= {"size_ratio": params.size_ratio, "renamed": params.columns}
        answer = estimate_traces(params.warehouse, inputs | {"onto": onto, "start": start})
    title = f"Runtimes on {params.onto}"
    _publish(params.warehouse, (params.job or "traces", params.onto, "estimate"), answer, title)
    return answer


def _publish(warehouse: Warehouse, about: tuple[str, ...], answer: dict[str, Any], title: str) -> None:
    """Show an answer as an artifact that leads to its page; its markdown leaves what the flow returns."""
    artifacts.publish(
        artifacts.artifact_key(WORD, *about),
        artifacts.joined([answer.pop("markdown"), artifacts.page_line(warehouse, answer["report"])]),
        title,
    )
