"""The flows of the word `advice`: where to run next, how well that is found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from prefect import Task
from prefect.runtime import flow_run

from flows.engine.artifacts import artifact_key, joined, page_line, publish
from flows.engine.forms import flow
from flows.engine.steps import step
from flows.parameters import (
    HISTORY,
    AdviceEvaluateParams,
    AdviceRecordParams,
    EstimateFlowParams,
    GroupsFlowParams,
    SearchFlowParams,
)
from tasks.advice import steps
from tasks.errors import BadSetting
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import source_of

WORD = "advice"
TAGS = [WORD]


def answered(question: Callable[..., steps.Answered]) -> Task[[Warehouse | Path, dict[str, Any]], dict[str, Any]]:
    """The step that asks a question of advice and writes the page of its answer, into a home's site or a folder."""

    def asked(place: Warehouse | Path, arguments: dict[str, Any]) -> dict[str, Any]:
        return question(**arguments).page(place)

    asked.__module__, asked.__name__, asked.__qualname__ = question.__module__, question.__name__, question.__qualname__
    return step(asked)


search, groups, evaluate = answered(steps.search), answered(steps.groups), answered(steps.evaluate)
estimate_traces, estimate_job = answered(steps.estimate_traces), answered(steps.estimate_job)
record = step(steps.record)
SEARCHED = ("job", "answer", "certainty", "is_finished", "machine_type", "nodes", "n_candidates", "n_promising")


@flow(name="advice-search", run_name=lambda: f"search for {flow_run.parameters['job'] or 'the only job'}", tags=TAGS)
def advice_search(params: SearchFlowParams) -> dict[str, Any]:
    """Say on which configuration a job should run next, what that is expected to cost, and when to stop."""
    need = {"memory_gb": params.memory_gb, "recorded": params.peaks_of or None, "warehouse": params.warehouse}
    asked = {
        "history": params.history or str(params.warehouse.home / HISTORY),
        "job": params.job or None,
        "machines": params.machines or None,
        "params": params.search,
        "need": need,
        "max_runtime_s": params.max_runtime_s,
        "renamed": params.columns,
    }
    found = search(params.warehouse, asked)
    _publish(params.warehouse, (found["job"], "search"), found, f"Where to run {found['job']} next")
    return {key: found[key] for key in (*SEARCHED, "report")}


@flow(
    name="advice-groups",
    run_name=lambda: f"group machines of {flow_run.parameters['scores'] or flow_run.parameters['nodes_of'] or 'nodes'}",
    tags=TAGS,
)
def advice_groups(params: GroupsFlowParams) -> dict[str, Any]:
    """Say which machines are alike as far as their scores tell them apart, and which tasks belong on which."""
    source = None if params.scores else source_of(params.warehouse, "nodes", params.nodes_of or None)
    asked = {
        "scores": params.scores or None,
        "source": source,
        "warehouse": params.warehouse,
        "aspects": params.aspects,
        "traces": params.traces or None,
        "params": params.groups,
        "renamed": params.columns,
    }
    found = groups(params.warehouse, asked)
    name = source or Path(params.scores).name
    _publish(params.warehouse, (name, "groups"), found, f"Which machines of {name} are alike")
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
    asked = {
        "runs": runs,
        "machines": params.machines or None,
        "needs": params.needs or None,
        "scores": params.scores or None,
        "search": params.search,
        "params": params.evaluate,
        "renamed": params.columns,
        "out": str(folder),
    }
    found = evaluate(folder, asked)
    _publish(params.warehouse, (Path(runs).name, "evaluation"), found, f"Searches on {runs}")
    return found


@flow(name="advice-record", run_name=lambda: "record jobs on emulated machine types", tags=TAGS)
def advice_record(params: AdviceRecordParams) -> dict[str, Any]:
    """Run recurring jobs and benchmarks on emulated machine types and record them; a continued run goes on."""
    return record(params.record, params.folder)


@flow(name="advice-estimate", run_name=lambda: f"estimate for {flow_run.parameters['onto']}", tags=TAGS)
def advice_estimate(params: EstimateFlowParams) -> dict[str, Any]:
    """Say how long tasks or a recurring job take on a machine that was not tried, and how sure that is."""
    if not params.onto:
        raise BadSetting("onto: no machine named; expected the one to estimate for")
    if bool(params.traces) == bool(params.job):
        raise BadSetting("traces and job: expected one of them")
    onto, start = params.onto, params.start
    if params.job:
        source = params.jobs_source or source_of(params.warehouse, "jobs", None)
        asked = {"warehouse": params.warehouse, "source": source, "job": params.job, "params": params.estimate}
        found = estimate_job(params.warehouse, asked | {"onto": onto, "start": start, "deadline_s": params.deadline_s})
    else:
        told = steps.scores_for(params.scores or None, params.warehouse, params.scores_of or None, params.columns)
        asked = {"paths": params.traces, "scores": told, "params": params.estimate, "machine": params.machine}
        asked |= {"size_ratio": params.size_ratio, "renamed": params.columns}
        found = estimate_traces(params.warehouse, asked | {"onto": onto, "start": start})
    title = f"Runtimes on {params.onto}"
    _publish(params.warehouse, (params.job or "traces", params.onto, "estimate"), found, title)
    return found


def _publish(warehouse: Warehouse, about: tuple[str, ...], found: dict[str, Any], title: str) -> None:
    """Show an answer as an artifact that leads to its page; its markdown leaves what the flow returns."""
    publish(artifact_key(WORD, *about), joined([found.pop("markdown"), page_line(warehouse, found["report"])]), title)
