"""The flows of the word `advice`: where to run next, how well that is found."""

from pathlib import Path
from typing import Any

from prefect.runtime import flow_run

from flows.engine.artifacts import artifact_key, publish
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
from tasks.warehouse.sources import source_of

WORD = "advice"
TAGS = [WORD]


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
