"""The steps of `advice`: what is asked in, the answer out. They read tables, and the warehouse where peaks stand."""

import logging
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from tasks.advice.choice import choose_type
from tasks.advice.estimate import estimate
from tasks.advice.groups import ALL_ASPECTS, group_machines, kubectl_script
from tasks.advice.machines import MemoryNeed, memory_need, need_of_peaks, stated_need
from tasks.advice.params import ChoiceParams, EstimateParams, MachineGroupParams, ReplayParams, SearchParams
from tasks.advice.record.plan import RecordParams
from tasks.advice.replay import ReplayedJob, figures_of, jobs_of, replay_all
from tasks.advice.search import Status, add_run, job_of, next_run
from tasks.advice.story import LateCheck, Story, choose_all, scores_of, story
from tasks.advice.tables import (
    PROFILE,
    one_machine,
    read_columns,
    read_job_runs,
    read_machine_scores,
    read_machines,
    read_needs,
    read_resource_trace,
    read_runs,
    read_scores,
    read_traces,
)
from tasks.advice.tarema import assign_tasks, published_groups, task_demands
from tasks.advice.transfer import basis_of, transfer_job
from tasks.errors import BadInput, BadSetting, NotFound, quoted
from tasks.jobs.summary import find_group, refuse_mixture
from tasks.nodes.answers import read_scores as read_node_scores
from tasks.nodes.answers import thread_scores_of
from tasks.nodes.history import load_history
from tasks.params import Params
from tasks.settings import ROOT
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import code_version, contents_hash

if TYPE_CHECKING:
    from tasks.report.result import Result

logger = logging.getLogger(__name__)
BYTES_PER_GB = 1e9
VERTICES = """
WITH final AS (
    SELECT
        v.run_id, r.group_key AS job, v.stage, v.sku AS machine_type,
        coalesce(r.submitted_at, r.started_at) AS submitted_at,
        epoch(v.ended_at) - epoch(v.started_at) AS duration_s, v.cpu_s, v.mean_tokens AS tokens, r.runtime_s
    FROM jobs.vertices AS v
    JOIN jobs.runs AS r USING (source, run_id)
    WHERE source = $source AND r.status = 'completed' AND r.what_if IS NULL AND r.runtime_s > 0
        AND v.sku IS NOT NULL AND v.ended_at > v.started_at
)
SELECT * FROM final ORDER BY submitted_at, run_id, machine_type, stage, duration_s
"""
PEAKS = """
SELECT peak_memory_bytes FROM jobs.runs
WHERE source = ? AND (group_key = ? OR name = ?) AND status = 'completed' AND peak_memory_bytes > 0
ORDER BY run_id
"""
NO_RUNS = pd.DataFrame(
    {"job": "", "machine_type": "", "nodes": 0, "runtime_s": 0.0, "completed": True, "application": "", "family": ""},
    index=[0],
).head(0)


@dataclass(frozen=True)
class Answered:
    """An answer. name: of its page; figures: for JSON; result: for terminal, artifact and page."""

    name: str
    figures: dict[str, Any]
    result: "Result"

    def page(self, place: Warehouse | Path) -> dict[str, Any]:
        """The figures with the path of a page, in the site of a home or in a folder, the answer, and its artifact."""
        from tasks.report.page import write_result
        from tasks.report.result import as_markdown
        from tasks.report.site import write_advice

        name, result = self.name, self.result
        path = write_advice(place, name, result) if isinstance(place, Warehouse) else write_result(place, name, result)
        summary = {"report": str(path), "answer": result.answer}
        drawn = [figure.name for figure in self.result.figures]
        return self.figures | summary | {"markdown": as_markdown(self.result, pictures=drawn)}


def asking(*words: str, renamed: Mapping[str, str], **options: object) -> str:
    """The command that asks again. options: those that are None or empty are left out, lists are repeated."""
    command, columns = ["whorl", "advice", *words], [f"{ours}={theirs}" for ours, theirs in renamed.items()]
    for name, value in {**options, "map": columns}.items():
        for one in value if isinstance(value, list) else [] if value in (None, "") else [value]:
            command += [f"--{name.replace('_', '-')}", str(one)]
    return shlex.join(command)


def set_otherwise(params: Params, *names: str) -> dict[str, object]:
    """Those of some settings that differ from what they are if nobody sets them, as options have them."""
    usual = type(params)()
    values = {name: getattr(params, name) for name in names if getattr(params, name) != getattr(usual, name)}
    return {name: ",".join(map(str, of)) if isinstance(of, tuple) else of for name, of in values.items()}


def need_for(
    job: str,
    *,
    memory_gb: float | None = None,
    profile: str | None = None,
    input_gb: float | None = None,
    recorded: str | None = None,
    warehouse: Warehouse | None = None,
    renamed: dict[str, str] | None = None,
) -> MemoryNeed | None:
    """A job's need of memory from what a user knows, None if that is nothing.

    memory_gb: it is known; profile: a table of runs with smaller inputs, input_gb: that of the whole run; recorded: a
    source of job runs with peaks in the warehouse. Raises BadSetting for more than one, NotFound, NoWarehouse,
    BadInput."""
    given = [
        name for name, value in (("--memory-gb", memory_gb), ("--profile", profile), ("--peaks-of", recorded)) if value
    ]
    if len(given) > 1:
        raise BadSetting(f"{' and '.join(given)}: two memory needs; expected one of them")
    if memory_gb:
        return stated_need(memory_gb)
    if profile:
        if not input_gb:
            raise BadSetting("--profile needs --input-gb; expected the size of the whole input, in GB")
        rows = read_columns(profile, PROFILE, renamed or {})
        rows = rows[rows["job"] == job]
        sizes, peaks = rows["input_bytes"].to_numpy(float), rows["peak_bytes"].to_numpy(float)
        return memory_need(sizes, peaks, input_gb * BYTES_PER_GB)
    if recorded and warehouse is not None:
        with reading(warehouse) as connection:
            recorded_peaks = connection.execute(PEAKS, [recorded, job, job]).df()["peak_memory_bytes"]
        if recorded_peaks.empty:
            raise NotFound(f"no peak of memory of job {job!r} in source {recorded!r}; expected its name or group key")
        return need_of_peaks(recorded_peaks.to_numpy(float))
    return None


def add_to_history(
    history: str,
    job: str | None,
    machines: str | None,
    params: SearchParams,
    run: tuple[str, int, float | None, Status],
    renamed: dict[str, str],
) -> None:
    """Add a run to the history: machine type, nodes, runtime in seconds (None: not known), and how it ended.

    Raises BadSetting for a machine type that is not described, or a job that has to be named, and as add_run."""
    kinds = read_machines(machines or str(ROOT / params.machines), renamed).types
    if run[0] not in kinds:
        raise BadSetting(f"machine type {run[0]!r}: not described; expected one of {', '.join(kinds)}")
    runs = read_runs(history, renamed) if Path(history).exists() else NO_RUNS
    if job is None and runs.empty:
        raise BadSetting(f"{history}: the first run needs a job; expected --job")
    add_run(Path(history), job or job_of(runs, job), *run, renamed)


def search(
    history: str,
    job: str | None,
    machines: str | None,
    params: SearchParams,
    need: dict[str, Any],
    max_runtime_s: float | None,
    renamed: dict[str, str],
) -> Answered:
    """What to run next. history: a table of runs, which need not be there yet; need: arguments of need_for.

    Raises BadInput, BadSetting, NotFound."""
    from tasks.report.advice import next_run_result

    runs = read_runs(history, renamed) if Path(history).exists() or "://" in history else NO_RUNS
    named = job_of(runs, job)
    if len(runs) and (runs["nodes"] == 1).all() and params.nodes == SearchParams().nodes:
        params = params.model_copy(update={"nodes": (1,)})  # what has never run on a cluster
    kinds = read_machines(machines or str(ROOT / params.machines), renamed)
    memory, dated = need_for(named, **need, renamed=renamed), kinds.priced_on
    proposal = next_run(runs, named, kinds.types, params, need=memory, max_runtime_s=max_runtime_s, priced_on=dated)
    logger.info("%s after %d runs: %s", named, len(proposal.tried), proposal.answer)
    asked = {"peaks_of" if name == "recorded" else name: of for name, of in need.items() if name != "warehouse"}
    asked |= {"max_runtime": max_runtime_s and f"{max_runtime_s:g}s", **set_otherwise(params, "nodes", "max_vcpu")}
    again = asking("search", renamed=renamed, history=history, machines=machines, job=named, **asked)
    result = next_run_result(proposal, again)
    return Answered(f"advice-search-{named}", asdict(proposal), result)


def evaluate(
    runs: str,
    machines: str | None,
    needs: str | None,
    scores: str | None,
    search: SearchParams,
    params: ReplayParams,
    renamed: dict[str, str],
    out: str | None,
) -> Answered:
    """Every method replayed on a table of runs: the figures of figures_of, with n, jobs, seed and data_sha256.

    out: a folder for the searches, from which a call that was interrupted goes on. Raises BadInput."""
    from tasks.report.advice import evaluation_result

    described = machines or str(ROOT / search.machines)
    kinds = read_machines(described, renamed)
    jobs = jobs_of(read_runs(runs, renamed), kinds.types, read_needs(needs, renamed) if needs else {})
    settings = params.model_dump_json() + code_version()
    files = [Path(file) for file in (runs, described, needs, scores) if file]
    inputs = contents_hash(*files) + sha256(settings.encode()).hexdigest()
    parts = None if out is None else Path(out) / "searches" / sha256(inputs.encode()).hexdigest()[:12]
    table = replay_all(jobs, params, parts, scores=scores_by_aspect(scores, jobs, renamed) if scores else None)
    if out is not None:
        table.to_parquet(Path(out) / "searches.parquet")
    figures = {
        "n": sum(len(job.candidates) for job in jobs),
        "jobs": len(jobs),
        "seed": params.seed,
        "data_sha256": contents_hash(Path(runs)),
        "version": code_version(),
        "priced_on": kinds.priced_on,
        **figures_of(table, params),
    }
    tables, counts = {"machines": machines, "needs": needs, "scores": scores}, {"searches": params.searches}
    again = asking("evaluate", runs, renamed=renamed, **tables, **counts, seed=params.seed, out=out)
    return Answered("advice-evaluation", figures, evaluation_result(figures, Path(runs).name, again))


def scores_by_aspect(path: str, jobs: Sequence[ReplayedJob], renamed: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Scores of machine types by aspect. Raises BadInput for a machine type of the jobs that has none."""
    table = read_scores(path, renamed)
    types = sorted({name for job in jobs for name in job.candidates.machine_type})
    by_aspect = {
        str(aspect): dict(zip(rows["machine_type"], rows["score"], strict=True))
        for aspect, rows in table.groupby("aspect")
    }
    for aspect, by_type in by_aspect.items():
        if missing := [name for name in types if name not in by_type]:
            problem = f"no score of {', '.join(missing[:5])} in aspect {aspect}"
            raise BadInput(path, problem, "a score of each machine type that has run", "add a row for each")
    return by_aspect


def groups(
    scores: str | None,
    source: str | None,
    warehouse: Warehouse,
    aspects: list[str],
    traces: str | None,
    params: MachineGroupParams,
    renamed: dict[str, str],
    kubectl: Path | None = None,
) -> Answered:
    """Groups of alike machines, Tarema's original beside them, and the group for each task of the traces, if any.

    scores: a table; without it those of `nodes` for the source in the warehouse, with their intervals.
    kubectl: a file for the script that labels nodes. Raises BadInput, NotFound, NoWarehouse."""
    from tasks.report.advice import groups_result

    if scores is not None:
        rows = read_machine_scores(scores, aspects, renamed)
    else:
        rows = read_node_scores(warehouse, str(source))
        rows = rows[rows["aspect"] != ALL_ASPECTS]
        rows = rows[rows["aspect"].isin(aspects)] if aspects else rows
        if rows.empty:
            in_aspects = f" in {', '.join(aspects)}" if aspects else ""
            raise NotFound(f"source {source!r}: no node has scores{in_aspects}; run whorl nodes rank first")
    grouping = group_machines(rows, params)
    assigned = assign_tasks(task_demands(read_resource_trace(traces)), grouping) if traces else []
    logger.info("%d machines in %d groups, %d tasks", len(grouping.group_of), len(grouping.groups), len(assigned))
    published, name = published_groups(rows, params), Path(scores).stem if scores else str(source)
    given = {"scores": scores, "source": source, "aspects": ",".join(aspects), "traces": traces}
    again = asking("groups", renamed=renamed, **given, **set_otherwise(params, "seed"))
    if kubectl is not None:
        kubectl.write_text(kubectl_script(grouping))
    figures = grouping.as_json() | {"assigned": [vars(assignment) for assignment in assigned], "tarema": published}
    return Answered(f"advice-groups-{name}", figures, groups_result(grouping, assigned, published, name, again))


def choose(
    history: str,
    job: str | None,
    machines: str,
    scores: str | None,
    deadline_s: float,
    params: ChoiceParams,
    renamed: dict[str, str],
    source: str | None = None,
) -> Answered:
    """The machine type for a job that has run on one type only.

    history: a table as read_job_runs takes it; source: the type to go by where it has runs on several. Raises BadInput,
    BadSetting, NotFound."""
    from tasks.report.advice import choice_result

    runs = read_job_runs(history, renamed)
    named = job_of(runs, job)
    if source is not None:
        runs = runs[runs["machine_type"] == source]
        if not (runs["job"] == named).any():
            raise NotFound(f"{history}: job {named!r} has no runs on {source!r}; expected a type of the table")
    kinds = pd.DataFrame([vars(kind) for kind in read_machines(machines, renamed).types.values()])
    score_rows = None if scores is None else read_scores(scores, renamed)
    choice = choose_type(runs, kinds.rename(columns={"name": "machine_type"}), score_rows, named, deadline_s, params)
    logger.info("%s: %s from %d runs on %s", choice.job, choice.machine_type, choice.n_runs, choice.source)
    figures = {key: value for key, value in vars(choice).items() if key != "estimates"}
    figures["types"] = [
        {key: of for key, of in vars(type_estimate).items() if key != "late_draws"}
        for type_estimate in choice.estimates
    ]
    tables = {"history": history, "machines": machines, "scores": scores}
    asked = {"job": choice.job, "deadline": f"{deadline_s:g}s", "source": source}
    again = asking("choose", renamed=renamed, **tables, **asked, **set_otherwise(params, "late_share"))
    return Answered(f"advice-choose-{choice.job}", figures, choice_result(choice, again))


def recorded_story(recording: str, params: ChoiceParams, job: str | None = None) -> Story:
    """What a recording of `advice record` says: one job's answer from its runs on the first type, and the check of all
    jobs' answers with the runs that were held back. Raises BadInput, NotFound."""
    from tasks.advice.record.campaign import read_recording
    from tasks.advice.record.campaign import read_runs as read_recorded

    folder = Path(recording)
    recorded = read_recording(folder)
    history = recorded.history.rename(columns={"buffer_bytes": "memory_bytes"})  # what choose_type reads
    scores = scores_of(recorded.executions)
    if job is not None and job not in recorded.multiples:
        raise NotFound(f"{folder}: no job {job!r}; expected one of {', '.join(recorded.multiples)}")
    choices = choose_all(history, recorded.machines, scores, recorded.multiples, params)
    return story(choices, recorded.machines, scores, history, read_recorded(folder, "held_back"), job)


def story_figures(summary: Story) -> dict[str, Any]:
    """What a recording says, as plain JSON has it."""
    frames = {key: of.to_dict("records") for key, of in vars(summary).items() if isinstance(of, pd.DataFrame)}
    checks = {
        key: vars(of) | {"is_inside": of.is_inside} for key, of in vars(summary).items() if isinstance(of, LateCheck)
    }
    return {**vars(summary), **frames, **checks}


def record(params: RecordParams, folder: str) -> dict[str, Any]:
    """Record recurring jobs on emulated machine types into a folder; the next call with the same one goes on.

    Raises BadSetting (no control groups here, another campaign in the folder), MissingTool."""
    from tasks.advice.record.campaign import record_advice

    recorded = record_advice(params, Path(folder))
    logger.info("%(n_done)d of %(n_planned)d runs recorded, %(n_clean)d of them undisturbed", recorded)
    return {"folder": folder} | recorded


def read_vertices(warehouse: Warehouse, source: str) -> tuple[pd.DataFrame, pd.Series]:
    """The vertices of a source's completed runs (as basis_of takes them), and the runs' runtimes in s, by run_id.

    Replays with one thing changed are left out. Raises BadInput if simulated and measured runs are mixed, NotFound
    where no log says on which machine type vertices ran."""
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        rows = connection.execute(VERTICES, {"source": source}).df()
    if rows.empty:
        raise NotFound(f"no run of source {source!r} says on which machine types its vertices ran")
    runtimes_s = rows.drop_duplicates("run_id").set_index("run_id")["runtime_s"]
    return rows.drop(columns="runtime_s"), runtimes_s


def estimate_job(
    warehouse: Warehouse,
    source: str,
    job: str,
    onto: str,
    params: EstimateParams,
    *,
    start: str = "",
    deadline_s: float | None = None,
) -> Answered:
    """The runtimes of one job, named by its key or a unique part of it, on another machine type.

    deadline_s: how often it would be late. start: the machine type that its runs are taken from; else the one on which
    most of its vertices ran, but the target. Raises NotFound and BadInput as transfer_job, and for a job that has run
    on the target alone."""
    from tasks.report.advice import transfer_figures, transfer_result

    key = find_group(warehouse, source, job)
    vertices, runtimes_s = read_vertices(warehouse, source)
    if not start:
        counts = vertices.loc[(vertices["job"] == key) & (vertices["machine_type"] != onto), "machine_type"]
        if counts.empty:
            problem = f"job {quoted(key)} has runs on no other machine type than {onto}"
            raise BadInput(
                f"source {source}", problem, "runs elsewhere", "its own runs answer that: whorl jobs predict"
            )
        start = str(counts.value_counts().index[0])
    transferred = transfer_job(basis_of(vertices, start, onto, params), runtimes_s, key, params)
    named: dict[str, object] = {"from": start, "deadline": deadline_s and f"{deadline_s:g}s"}
    again = asking("estimate", renamed={}, onto=onto, job=key, source=source, **named)
    result = transfer_result(transferred, params.confidence, deadline_s, again)
    return Answered(
        f"advice-estimate-{key}-{onto}", transfer_figures(transferred, params.confidence, deadline_s), result
    )


def scores_for(table: str | None, warehouse: Warehouse, source: str | None, renamed: Mapping[str, str]) -> pd.DataFrame:
    """Scores of machines: machine_type, aspect, score; of a table, or of a source of `nodes` in the warehouse.

    A table without aspects is of one thread. Machines of a source go by their type and by their name. Raises BadSetting
    for neither and for both, BadInput and NotFound as read."""
    if (table is None) == (source is None):
        given = "both --scores and --scores-of" if table else "no scores of the machines"
        raise BadSetting(f"{given}; expected --scores FILE or --scores-of SOURCE (of `whorl nodes`)")
    if table is not None:
        return read_scores(table, renamed)
    thread_scores = thread_scores_of(load_history(warehouse, str(source)))
    by_type = thread_scores[thread_scores["machine_type"] != ""].drop(columns="node")
    by_name = thread_scores[thread_scores["node"] != thread_scores["machine_type"]].drop(columns="machine_type")
    return pd.concat([by_type, by_name.rename(columns={"node": "machine_type"})], ignore_index=True)


def estimate_traces(
    paths: Sequence[str],
    onto: str,
    scores: str | None,
    warehouse: Warehouse,
    scores_of: str | None,
    params: EstimateParams,
    *,
    start: str = "",
    machine: str = "",
    size_ratio: float = 1.0,
    renamed: Mapping[str, str],
) -> Answered:
    """Each task and the whole workflow of some traces on a machine.

    scores, scores_of: as scores_for takes them. start: the machine that runs are taken from, where the traces have
    several. machine: of traces that do not say it (read_traces). size_ratio: of the input to the largest that ran.
    Raises as read_traces, scores_for and estimate."""
    from tasks.report.advice import estimate_figures, estimate_result

    speeds = scores_for(scores, warehouse, scores_of, renamed)
    runs = read_traces(paths, renamed, machine=machine)
    estimated = estimate(runs, speeds, one_machine(runs, start), onto, params, size_ratio=size_ratio)
    named = {"scores": scores, "scores_of": scores_of, "from": start, "machine": machine, "size_ratio": size_ratio}
    again = asking("estimate", renamed=renamed, onto=onto, traces=list(paths), **named)
    return Answered(f"advice-estimate-{onto}", estimate_figures(estimated), estimate_result(estimated, again))
