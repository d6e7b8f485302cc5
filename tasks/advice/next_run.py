"""Ask and tell: what a job has run on so far, the configuration to run next, and when to stop.

The table of runs is the whole state: a result is a row more, and the same table gives the same proposal."""

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from tasks.advice.machines import Configurations, Floats, MachineType, configurations
from tasks.advice.memory import MemoryNeed
from tasks.advice.params import SearchParams
from tasks.advice.readers.tables import RUNS
from tasks.advice.search import LEAST_RUNS, Problem, Proposal, propose
from tasks.advice.surrogate import Runs
from tasks.errors import BadInput, BadSetting
from tasks.quantities import duration, number, share

Status = Literal["completed", "failed", "killed"]
LEAST_APPLICATIONS, LEAST_TRIED = 3, 5  # before other applications say where to start
COLUMNS = ("job", "machine_type", "nodes", "runtime_s", "status")


@dataclass(frozen=True)
class Tried:
    """A run so far, with its cost in the currency of the prices."""

    machine_type: str
    nodes: int
    runtime_s: float
    status: str
    cost: float
    is_valid: bool


@dataclass(frozen=True)
class NextRun:
    """What to run next for a job, or that it is time to stop.

    answer: the sentence; certainty, reasons: how sure, and why; best: the cheapest run so far that will do."""

    job: str
    answer: str
    certainty: str
    reasons: tuple[str, ...]
    is_finished: bool
    configuration: str | None
    machine_type: str | None
    nodes: int | None
    proposal: Proposal | None
    best: Tried | None
    tried: tuple[Tried, ...]
    n_candidates: int
    n_promising: int
    need: MemoryNeed | None
    priced_on: str


def candidates_of(machines: Mapping[str, MachineType], runs: pd.DataFrame, params: SearchParams) -> Configurations:
    """Every machine type with every number of nodes up to the largest cluster, and whatever has run already.

    Raises BadInput for a machine type that ran and is not described, and where only one configuration is left."""
    unknown = sorted(set(runs["machine_type"]) - set(machines))
    if unknown:
        fix = "add a row with its vCPU, memory and price"
        raise BadInput("machines", f"nothing about {', '.join(unknown[:5])}", "every machine type that has run", fix)
    pairs = {(name, n) for name, kind in machines.items() for n in params.nodes if n * kind.vcpu <= params.max_vcpu}
    pairs |= set(zip(runs["machine_type"], runs["nodes"], strict=True))
    if len(pairs) < 2:
        what = f"{len(pairs)} configurations of {len(machines)} machine types within {params.max_vcpu} vCPU"
        raise BadSetting(
            f"{what}; expected at least two to choose from; name more machine types, --nodes or --max-vcpu"
        )
    return configurations([(machines[name], int(n)) for name, n in sorted(pairs)])


def runs_on(candidates: Configurations, runs: pd.DataFrame) -> Runs:
    """The rows of a job as runs of candidates, repeats by their mean; a configuration that completed once can."""
    places = [candidates.index(*pair) for pair in zip(runs["machine_type"], runs["nodes"].tolist(), strict=True)]
    at = np.array(places, dtype=np.int64)
    rate = candidates.cost(np.ones(len(candidates)))
    frame = pd.DataFrame({"at": at, "cost": rate[at] * runs["runtime_s"].to_numpy(float), "ok": runs["completed"]})
    frame = frame[frame["ok"] | ~frame["at"].isin(frame["at"][frame["ok"]])]
    means = frame.groupby("at", sort=False).agg(cost=("cost", "mean"), ok=("ok", "all"))
    return Runs(means.index.to_numpy(np.int64), np.log(means["cost"].to_numpy(float)), means["ok"].to_numpy(bool))


def costs_of_others(candidates: Configurations, runs: pd.DataFrame, job: str) -> tuple[Floats, ...]:
    """Costs of jobs of other applications on the candidates, as multiples of their optimum.

    None unless at least three applications have completed on five configurations each."""
    own = runs["application"][runs["job"] == job]
    rows = runs[runs["application"] != (own.iloc[0] if len(own) else job.split("_")[0])]
    of_jobs = {name: runs_on(candidates, part) for name, part in rows.groupby("job")}
    told = {name: one for name, one in of_jobs.items() if one.is_completed.sum() >= LEAST_TRIED}
    if rows["application"][rows["job"].isin(list(told))].nunique() < LEAST_APPLICATIONS:
        return ()
    costs = []
    for one in told.values():
        on_all, log_cost = np.full(len(candidates), np.inf), one.log_cost[one.is_completed]
        on_all[one.candidate[one.is_completed]] = np.exp(log_cost - log_cost.min())
        costs.append(on_all)
    return tuple(costs)


def job_of(runs: pd.DataFrame, job: str | None) -> str:
    """The job that is meant: the named one, which may be new, or the only one. Raises BadSetting."""
    names = sorted(set(runs["job"]))
    if job is None and len(names) > 1:
        raise BadSetting(f"runs of {len(names)} jobs ({', '.join(names[:5])}); expected one; name it with --job")
    return job or (names[0] if names else "job")


def next_run(
    runs: pd.DataFrame,
    job: str,
    machines: Mapping[str, MachineType],
    params: SearchParams,
    *,
    need: MemoryNeed | None = None,
    max_runtime_s: float | None = None,
    priced_on: str = "",
) -> NextRun:
    """The configuration to run next, from all rows of a table of runs; those of the job's family are made use of.

    Raises BadInput, BadSetting as candidates_of."""
    own = runs[runs["job"] == job]
    candidates = candidates_of(machines, runs, params)
    is_alike = runs["family"] == own["family"].iloc[0] if len(own) else runs["application"] == job.split("_")[0]
    alike = runs[is_alike & (runs["job"] != job)]
    others = tuple(runs_on(candidates, rows) for _, rows in alike.groupby("job"))
    costs = costs_of_others(candidates, runs, job)
    problem = Problem(candidates, need, max_runtime_s, others=others, other_costs=costs)
    so_far = runs_on(candidates, own)
    proposal = propose(problem, so_far, np.random.default_rng(_seed(job, params.seed)))
    tried = tuple(_tried(row, candidates, max_runtime_s) for row in own.itertuples())
    best = min((run for run in tried if run.is_valid), key=lambda run: run.cost, default=None)
    is_finished = proposal is None or not proposal.is_worthwhile
    chosen = None if proposal is None else proposal.candidate
    return NextRun(
        job=job,
        answer=_answer(candidates, proposal, best, is_finished),
        certainty=_certainty(proposal, best),
        reasons=tuple(_reasons(problem, so_far, proposal, others, own)),
        is_finished=is_finished,
        configuration=None if chosen is None else candidates.name(chosen),
        machine_type=None if chosen is None else candidates.machine_type[chosen],
        nodes=None if chosen is None else int(candidates.nodes[chosen]),
        proposal=proposal,
        best=best,
        tried=tried,
        n_candidates=len(candidates),
        n_promising=int(problem.is_promising.sum()),
        need=need,
        priced_on=priced_on,
    )


def _seed(job: str, seed: int) -> list[int]:
    """A seed of its own for each job, the same in every process."""
    return [seed, int.from_bytes(sha256(job.encode()).digest()[:4], "big")]


def _tried(row: object, candidates: Configurations, max_runtime_s: float | None) -> Tried:
    at = candidates.index(row.machine_type, int(row.nodes))  # type: ignore[attr-defined]
    runtime_s, completed = float(row.runtime_s), bool(row.completed)  # type: ignore[attr-defined]
    is_valid = completed and (max_runtime_s is None or runtime_s <= max_runtime_s)
    cost = float(candidates.cost(np.full(len(candidates), runtime_s))[at])
    status = "too slow" if completed and not is_valid else "completed" if completed else "failed"
    return Tried(row.machine_type, int(row.nodes), runtime_s, status, cost, is_valid)  # type: ignore[attr-defined]


def _answer(candidates: Configurations, proposal: Proposal | None, best: Tried | None, is_finished: bool) -> str:
    if best is not None and is_finished:
        return f"Stop: {best.nodes} × {best.machine_type} is the one to use, at {number(best.cost)} a run."
    if proposal is None:
        return "Stop: every configuration has run, and none of them will do."
    where = candidates.name(proposal.candidate)
    if np.isnan(proposal.cost):
        return f"Run it first on {where}."
    return (
        f"Run it next on {where}: expected to cost {number(proposal.cost)} "
        f"({number(proposal.cost_low)} to {number(proposal.cost_high)} in nine of ten runs) "
        f"and to take {duration(proposal.runtime_s)}."
    )


def _certainty(proposal: Proposal | None, best: Tried | None) -> str:
    if proposal is None:
        return "Certain: nothing is left to try."
    if np.isnan(proposal.cost):
        return "Nothing is known of this job's cost yet."
    gain = (
        "" if np.isnan(proposal.value_share) else f", and a saving of {share(proposal.value_share)} is to be expected"
    )
    known = "" if best is None else f"; the best so far is {best.nodes} × {best.machine_type} at {number(best.cost)}"
    chances = f"it completes with a chance of {share(proposal.chance_completed)}"
    if proposal.chance_in_time < 1:
        chances += f" and is in time with {share(proposal.chance_in_time)}"
    return f"{chances[0].upper()}{chances[1:]}{gain}{known}."


def _reasons(
    problem: Problem, runs: Runs, proposal: Proposal | None, others: Sequence[Runs], own: pd.DataFrame
) -> list[str]:
    candidates, told = problem.candidates, []
    if not len(own):
        told.append("The table has no run of this job yet.")
    if proposal is not None:
        at = proposal.candidate
        told.append(
            f"{candidates.name(at)} has {number(candidates.total_vcpu[at])} vCPU and "
            f"{number(candidates.total_memory_gb[at])} GB in all, at {number(candidates.rate_per_h[at])} an hour."
        )
        if not np.isnan(proposal.learned_share):
            told.append(f"It makes the cost of all configurations {share(proposal.learned_share)} less uncertain.")
    if problem.need is not None:
        n_fit = int(problem.is_promising.sum())
        told.append(f"Memory: {problem.need.reason}; {n_fit} of {len(candidates)} configurations are promising.")
    starts, n_jobs = ([] if others else problem.starts), len(problem.other_costs)
    if proposal is not None and proposal.candidate in starts and len(runs.candidate) < len(starts):
        told.append(f"It is among the {len(starts)} that together served {n_jobs} jobs of other applications best.")
    if others:
        n_others = sum(len(one.candidate) for one in others)
        told.append(f"{n_others} runs of the same application with other inputs count as well.")
    if not runs.is_completed.all():
        told.append(f"{int((~runs.is_completed).sum())} of {len(own)} runs failed; what is like them counts less.")
    if proposal is not None and not proposal.is_worthwhile:
        told.append(f"After {len(own)} runs (at least {LEAST_RUNS}) another one is expected to save next to nothing.")
    return told


def add_run(path: Path, job: str, machine_type: str, nodes: int, runtime_s: float, status: Status) -> None:
    """Add the result of a run to a CSV of runs, which is made where there is none; whole or not at all.

    Raises BadInput if the file names its columns otherwise, or is no text."""
    row = {"job": job, "machine_type": machine_type, "nodes": nodes, "runtime_s": f"{runtime_s:g}", "status": status}
    header, text = list(COLUMNS), ""
    if path.exists() and path.stat().st_size:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(path, "cannot be added to", "a CSV of runs as UTF-8", "add the row by hand") from error
        header = next(csv.reader([text.splitlines()[0]]))
    places = {_ours(name): name for name in header}
    if missing := [name for name in ("job", "machine_type", "nodes", "runtime_s", "completed") if name not in places]:
        fix = f"start a new file with the columns {', '.join(COLUMNS)}, or add the row by hand"
        raise BadInput(path, f"no column {', '.join(missing)}", "the columns of a table of runs", fix)
    by_name = {places[_ours(name)]: value for name, value in row.items()}
    waiting = path.with_name(f".{path.name}.part")
    with waiting.open("w", encoding="utf-8", newline="") as file:
        file.write(text if text.endswith("\n") or not text else f"{text}\n")
        writer = csv.DictWriter(file, header, restval="", lineterminator="\n")
        if not text:
            writer.writeheader()
        writer.writerow(by_name)
        file.flush()
        os.fsync(file.fileno())
    waiting.rename(path)


def _ours(name: str) -> str:
    """Our name of a column of runs, as the reader knows it."""
    return next((ours for ours, field in RUNS.items() if name in (ours, *field.known_as)), name)
