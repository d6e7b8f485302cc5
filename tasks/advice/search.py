"""Search for the cheapest cluster configuration, a run at a time: ask for a proposal, run it, tell what came of it."""

import csv
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.random import Generator

from tasks.advice.machines import (
    SECONDS_PER_HOUR,
    Configurations,
    Floats,
    Ints,
    MachineType,
    MemoryNeed,
    configurations,
    promising,
)
from tasks.advice.params import SearchParams
from tasks.advice.surrogate import (
    LEARNED,
    Bools,
    Posterior,
    Prior,
    SurrogateParams,
    TrialRuns,
    completion,
    expected_improvement,
    in_time,
    kernel,
    posterior,
    prior_after,
)
from tasks.advice.tables import RUNS, factor_of_column, theirs_of
from tasks.errors import BadInput, BadSetting
from tasks.quantities import duration, number, share
from tasks.storage import whole

FAILED_FACTOR = 2  # what a failed run counts as, times the dearest that completed
N_STARTS = 3  # by what served other applications best
CORRELATION = 0.8  # of the cost surfaces of two inputs of one application
INTERVAL_Z = 1.645  # half of a 90 % interval, in standard deviations
LIKELY = 0.25  # to meet the deadline
NEARLY = 0.95  # as likely to complete as any other
LEAST_RUNS, LEAST_VALUE = 6, 0.02  # enough has been tried, and another run is worth less than this share of the cost


def portfolio_order(costs: Sequence[Floats], n: int) -> list[int]:
    """The n candidates that together would have served other jobs best, the most useful first.

    costs: (candidates,) of each job, as multiples of its optimum, infinite where it failed or did not run. Greedy: each
    adds what lowers the mean of the jobs' best most."""
    stacked = np.stack(costs)  # (jobs, candidates)
    is_known = np.isfinite(stacked)
    if not is_known.any():
        return []
    table = np.where(is_known, stacked, FAILED_FACTOR * stacked[is_known].max())
    best = np.full(len(table), np.inf)
    order: list[int] = []
    for _ in range(min(n, table.shape[1])):
        means = np.minimum(best[:, None], table).mean(0)
        means[order] = np.inf
        order.append(int(np.argmin(means)))
        best = np.minimum(best, table[:, order[-1]])
    return order


@dataclass(frozen=True)
class Problem:
    """What is searched: candidates, the job's memory need (None: unknown), and the longest runtime that will do.

    others: runs of the same application with other inputs, on the same candidates. other_costs: (n,) costs of jobs of
    other applications as multiples of their optimum, infinite where they failed or did not run. lacking_gb: memory of
    the whole cluster that was too little for the job."""

    candidates: Configurations
    need: MemoryNeed | None = None
    max_runtime_s: float | None = None
    params: SurrogateParams = LEARNED
    others: tuple[TrialRuns, ...] = ()
    other_costs: tuple[Floats, ...] = ()
    lacking_gb: float = 0.0

    @cached_property
    def prior(self) -> Prior:
        """Belief before the first run."""
        covariance = kernel(self.candidates, self.params)
        return prior_after(covariance, self.others, CORRELATION, self.params.noise)

    @cached_property
    def starts(self) -> list[int]:
        """The first candidates to run, none where no other application tells: those that served the others best."""
        if not self.other_costs:
            return []
        rows = np.flatnonzero(self.is_promising)
        return [int(rows[at]) for at in portfolio_order([costs[rows] for costs in self.other_costs], N_STARTS)]

    @cached_property
    def is_promising(self) -> Bools:
        """Which candidates are tried first, (n,)."""
        return promising(self.candidates, self.need)

    def is_new(self, runs: TrialRuns) -> Bools:
        """Which candidates have not run, (n,): those that have more memory than was too little, if there are any."""
        is_new = ~np.isin(np.arange(len(self.candidates)), runs.candidate)
        has_more = is_new & (self.candidates.total_memory_gb > self.lacking_gb)
        return has_more if has_more.any() else is_new

    def open_candidates(self, runs: TrialRuns) -> Ints:
        """Candidates to choose the next run from: promising ones, and the rest once those have run.

        With a deadline only what is likely to keep it counts as promising, as far as runs tell."""
        is_new = self.is_new(runs)
        preferred = is_new & self.is_promising
        if self.max_runtime_s is not None and len(runs.candidate):
            preferred &= self.chance_in_time(self.belief(runs)) >= LIKELY
        return np.flatnonzero(preferred if preferred.any() else is_new)

    def is_valid(self, candidate: Ints, log_cost: Floats, is_completed: Bools) -> Bools:
        """Which runs completed in time."""
        if self.max_runtime_s is None:
            return is_completed
        longest = np.log(self.candidates.cost(np.full(len(self.candidates), self.max_runtime_s)))
        return is_completed & (log_cost <= longest[candidate])

    def best(self, runs: TrialRuns) -> float | None:
        """The least log cost of a run that completed in time."""
        valid = self.is_valid(runs.candidate, runs.log_cost, runs.is_completed)
        return float(runs.log_cost[valid].min()) if valid.any() else None

    def belief(self, runs: TrialRuns) -> Posterior:
        """What is believed after these runs."""
        return posterior(self.prior, runs, self.params.noise)

    def chance_in_time(self, belief: Posterior) -> Floats:
        """Chance that a completed run of each candidate meets the deadline, (n,); 1 without one."""
        if self.max_runtime_s is None:
            return np.ones(len(self.candidates))
        return in_time(belief, self.candidates, self.max_runtime_s, self.params.noise)

    def chance_completed(self, runs: TrialRuns) -> Floats:
        """Chance that a run of each candidate completes, (n,)."""
        return completion(self.candidates, self.prior.covariance, runs, self.params)


Method = Callable[[Problem, TrialRuns, Generator], int]


def at_random(problem: Problem, runs: TrialRuns, rng: Generator) -> int:
    """Any candidate that has not run: the plainest baseline, and where it goes on long enough the exhaustive search."""
    return int(rng.choice(np.flatnonzero(problem.is_new(runs))))


def by_improvement(problem: Problem, runs: TrialRuns, rng: Generator) -> int:
    """Ours: the greatest expected improvement, weighed by the chances to complete and to be in time."""
    if len(runs.candidate) < len(problem.starts) and not problem.others:
        untried = [at for at in problem.starts if problem.is_new(runs)[at]]
        if untried:
            return untried[0]
    candidates = problem.open_candidates(runs)
    if not len(runs.candidate) and not problem.others:
        return int(rng.choice(candidates))
    if not np.isfinite(runs.log_cost).any() and not problem.others:  # nothing tells costs: the largest is the dearest
        chance = problem.chance_completed(runs)[candidates]
        candidates = candidates[chance >= NEARLY * chance.max()]
        return int(candidates[np.argmin(problem.candidates.rate_per_h[candidates])])
    return int(candidates[np.argmax(_worth(problem, runs)[candidates])])


def _worth(problem: Problem, runs: TrialRuns) -> Floats:
    """Expected improvement of log cost by a run of each candidate that completes in time, (n,)."""
    if not len(runs.candidate):
        return -problem.prior.mean
    belief = problem.belief(runs)
    best = problem.best(runs)
    if best is None:  # nothing has met the deadline yet: what is sure to, and cheap, is worth most
        best = float(np.quantile(belief.mean, 0.5))
    worth = expected_improvement(belief.mean, np.sqrt(belief.variance), best)
    if not runs.is_completed.all():  # while nothing fails, fear of failing costs more than it saves
        worth = worth * problem.chance_completed(runs)
    return worth * problem.chance_in_time(belief)


@dataclass(frozen=True)
class Proposal:
    """The configuration to run next. cost: expected, with a 90 % interval of one run, in the unit of prices.

    value_share: expected saving of the best cost by this run, as a share of it; chances: that it completes, and is in
    time (1 without a deadline); learned_share: how much less uncertain all candidates are then on average.
    is_worthwhile: False once enough was tried and hardly anything is to be gained."""

    candidate: int
    cost: float
    cost_low: float
    cost_high: float
    runtime_s: float
    value_share: float
    chance_completed: float
    chance_in_time: float
    learned_share: float
    is_worthwhile: bool


def propose(problem: Problem, runs: TrialRuns, rng: Generator) -> Proposal | None:
    """The next run, by our method; None once all candidates have run. Before any run its cost is not known (NaN)."""
    if len(np.unique(runs.candidate)) == len(problem.candidates):
        return None
    at = by_improvement(problem, runs, rng)
    if not np.isfinite(runs.log_cost).any():
        nan = float("nan")
        return Proposal(at, nan, nan, nan, nan, nan, nan, nan, nan, is_worthwhile=True)
    belief, noise = problem.belief(runs), problem.params.noise
    best, worth = problem.best(runs), float(_worth(problem, runs)[at])
    spread = INTERVAL_Z * np.sqrt(belief.variance[at] + noise)
    cost = np.exp(belief.mean[at])
    reduction = (belief.covariance[at] ** 2).sum() / (belief.variance[at] + noise)
    enough = min(LEAST_RUNS, len(problem.candidates) - 1)
    tried_enough = len(runs.candidate) >= enough and best is not None
    return Proposal(
        candidate=at,
        cost=float(cost),
        cost_low=float(cost * np.exp(-spread)),
        cost_high=float(cost * np.exp(spread)),
        runtime_s=float(cost / problem.candidates.cost(np.ones(len(problem.candidates)))[at]),
        value_share=float("nan") if best is None else worth,
        chance_completed=float(problem.chance_completed(runs)[at]),
        chance_in_time=float(problem.chance_in_time(belief)[at]),
        learned_share=float(reduction / belief.variance.sum()),
        is_worthwhile=not (tried_enough and worth < LEAST_VALUE),
    )


@dataclass(frozen=True)
class CandidateOutcomes:
    """What each candidate would give: (n,) log cost of its run (of a failed one, what it cost), and if it completed."""

    log_cost: Floats
    is_completed: Bools = field(repr=False)

    def runs(self, candidates: Sequence[int]) -> TrialRuns:
        """The runs of some candidates, in their order."""
        at = np.array(candidates, dtype=np.int64)
        return TrialRuns(at, self.log_cost[at], self.is_completed[at])


def search(problem: Problem, outcome: CandidateOutcomes, n_runs: int, method: Method, rng: Generator) -> Ints:
    """The candidates that a search of n_runs runs tries, in their order, (min(n_runs, n),)."""
    tried: list[int] = []
    for _ in range(min(n_runs, len(problem.candidates))):
        tried.append(method(problem, outcome.runs(tried), rng))
    return np.array(tried, dtype=np.int64)


Status = Literal["completed", "failed", "killed", "out-of-memory"]
LEAST_APPLICATIONS, LEAST_TRIED = 3, 5  # before other applications say where to start
COLUMNS = ("job", "machine_type", "nodes", "runtime_s", "status")


@dataclass(frozen=True)
class TriedRun:
    """A run so far, with its cost in the currency of the prices."""

    machine_type: str
    nodes: int
    runtime_s: float
    status: str
    cost: float
    is_valid: bool


@dataclass(frozen=True)
class SearchProposal:
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
    best: TriedRun | None
    tried: tuple[TriedRun, ...]
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
        fix = "name more machine types, --nodes or --max-vcpu"
        raise BadSetting(f"{what}; expected at least two to choose from; {fix}")
    return configurations([(machines[name], int(n)) for name, n in sorted(pairs)])


def runs_on(candidates: Configurations, runs: pd.DataFrame) -> TrialRuns:
    """The rows of a job as runs of candidates, repeats by their mean; a configuration that completed once can."""
    pairs = zip(runs["machine_type"], runs["nodes"].tolist(), strict=True)
    at = np.array([candidates.places[pair] for pair in pairs], dtype=np.int64)
    rate = candidates.cost(np.ones(len(candidates)))
    frame = pd.DataFrame({"at": at, "cost": rate[at] * runs["runtime_s"].to_numpy(float), "ok": runs["completed"]})
    frame = frame[frame["ok"] | ~frame["at"].isin(frame["at"][frame["ok"]])]
    means = frame.groupby("at", sort=False).agg(cost=("cost", "mean"), ok=("ok", "all"))
    log_cost = np.nan_to_num(np.log(means["cost"].to_numpy(float)), nan=-np.inf)
    return TrialRuns(means.index.to_numpy(np.int64), log_cost, means["ok"].to_numpy(bool))


def lacking_gb(candidates: Configurations, runs: pd.DataFrame) -> float:
    """The largest memory of a whole cluster on which a run of a job lacked some; 0 for none, or where nobody tells.

    Runs on as much memory as another completed with, or more, lacked it for other reasons."""
    if "lacked_memory" not in runs:
        return 0.0
    places = zip(runs["machine_type"], runs["nodes"].tolist(), strict=True)
    total_gb = candidates.total_memory_gb[[candidates.places[pair] for pair in places]]
    enough_gb = total_gb[runs["completed"].to_numpy(bool)].min(initial=np.inf)
    lacked = runs["lacked_memory"].to_numpy(bool) & (total_gb < enough_gb)
    return float(total_gb[lacked].max(initial=0.0))


def costs_of_others(candidates: Configurations, runs: pd.DataFrame, job: str) -> tuple[Floats, ...]:
    """Costs of jobs of other applications on the candidates, as multiples of their optimum.

    None unless at least three applications have completed on five configurations each."""
    applications = runs["application"][runs["job"] == job]
    rows = runs[runs["application"] != (applications.iloc[0] if len(applications) else job.split("_")[0])]
    of_jobs = {name: runs_on(candidates, part) for name, part in rows.groupby("job")}
    tried_jobs = {name: job_runs for name, job_runs in of_jobs.items() if job_runs.is_completed.sum() >= LEAST_TRIED}
    if rows["application"][rows["job"].isin(list(tried_jobs))].nunique() < LEAST_APPLICATIONS:
        return ()
    costs = []
    for job_runs in tried_jobs.values():
        on_all, log_cost = np.full(len(candidates), np.inf), job_runs.log_cost[job_runs.is_completed]
        on_all[job_runs.candidate[job_runs.is_completed]] = np.exp(log_cost - log_cost.min())
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
) -> SearchProposal:
    """The configuration to run next, from all rows of a table of runs; those of the job's family are made use of.

    Raises BadInput, BadSetting as candidates_of."""
    job_runs = runs[runs["job"] == job]
    candidates = candidates_of(machines, runs, params)
    is_alike = (
        runs["family"] == job_runs["family"].iloc[0] if len(job_runs) else runs["application"] == job.split("_")[0]
    )
    alike = runs[is_alike & (runs["job"] != job)]
    others = tuple(runs_on(candidates, rows) for _, rows in alike.groupby("job"))
    costs = costs_of_others(candidates, runs, job)
    lacking = lacking_gb(candidates, job_runs)
    problem = Problem(candidates, need, max_runtime_s, others=others, other_costs=costs, lacking_gb=lacking)
    so_far = runs_on(candidates, job_runs)
    of_job = int.from_bytes(sha256(job.encode()).digest()[:4], "big")  # the same in every process
    proposal = propose(problem, so_far, np.random.default_rng([params.seed, of_job]))
    tried = tuple(_tried(row, machines, max_runtime_s) for row in job_runs.to_dict("records"))
    best = _best(problem, so_far)
    is_finished = proposal is None or not proposal.is_worthwhile
    candidate = None if proposal is None else proposal.candidate
    return SearchProposal(
        job=job,
        answer=_answer(candidates, proposal, best, is_finished, is_first=not tried),
        certainty=_certainty(candidates, proposal, best, is_finished),
        reasons=tuple(_reasons(problem, so_far, proposal, others, job_runs)),
        is_finished=is_finished,
        configuration=None if candidate is None else candidates.name(candidate),
        machine_type=None if candidate is None else candidates.machine_type[candidate],
        nodes=None if candidate is None else int(candidates.nodes[candidate]),
        proposal=proposal,
        best=best,
        tried=tried,
        n_candidates=len(candidates),
        n_promising=int(problem.is_promising.sum()),
        need=need,
        priced_on=priced_on,
    )


def _best(problem: Problem, runs: TrialRuns) -> TriedRun | None:
    """The cheapest configuration so far that will do, with the mean of its runs."""
    valid = problem.is_valid(runs.candidate, runs.log_cost, runs.is_completed)
    if not valid.any():
        return None
    at = int(np.argmin(np.where(valid, runs.log_cost, np.inf)))
    place, cost, candidates = int(runs.candidate[at]), float(np.exp(runs.log_cost[at])), problem.candidates
    runtime_s = cost / candidates.rate_per_h[place] * SECONDS_PER_HOUR
    return TriedRun(candidates.machine_type[place], int(candidates.nodes[place]), runtime_s, "completed", cost, True)


def _tried(row: Mapping[Any, Any], machines: Mapping[str, MachineType], max_runtime_s: float | None) -> TriedRun:
    kind, nodes, runtime_s, completed = (row[name] for name in ("machine_type", "nodes", "runtime_s", "completed"))
    is_valid = completed and (max_runtime_s is None or runtime_s <= max_runtime_s)
    cost = nodes * machines[kind].price_per_h * runtime_s / SECONDS_PER_HOUR
    return TriedRun(
        kind, nodes, runtime_s, "failed" if not completed else "completed" if is_valid else "too slow", cost, is_valid
    )


def _answer(
    candidates: Configurations, proposal: Proposal | None, best: TriedRun | None, is_finished: bool, *, is_first: bool
) -> str:
    if best is not None and is_finished:
        return f"Stop: {best.nodes} × {best.machine_type} is the one to use, at {number(best.cost)} a run."
    if proposal is None:
        return "Stop: every configuration has run, and none of them will do."
    where = candidates.name(proposal.candidate)
    if np.isnan(proposal.cost):
        return f"Run it {'first' if is_first else 'next'} on {where}."
    return (
        f"Run it next on {where}: expected to cost {number(proposal.cost)} "
        f"({number(proposal.cost_low)} to {number(proposal.cost_high)} in nine of ten runs) "
        f"and to take {duration(proposal.runtime_s)}."
    )


def _certainty(candidates: Configurations, proposal: Proposal | None, best: TriedRun | None, is_finished: bool) -> str:
    if proposal is None:
        return "Certain: nothing is left to try."
    if np.isnan(proposal.cost):
        return "Nothing is known of this job's cost yet."
    saving = f", and a saving of {share(proposal.value_share)} is to be expected"
    gain = "" if np.isnan(proposal.value_share) else saving
    known = "" if best is None else f"; the best so far is {best.nodes} × {best.machine_type} at {number(best.cost)}"
    what = f"the next to try, {candidates.name(proposal.candidate)}," if is_finished else "it"
    chances = f"{what} completes with a chance of {share(proposal.chance_completed)}"
    if proposal.chance_in_time < 1:
        chances += f" and is in time with {share(proposal.chance_in_time)}"
    return f"{chances[0].upper()}{chances[1:]}{gain}{known}."


def _reasons(
    problem: Problem, runs: TrialRuns, proposal: Proposal | None, others: Sequence[TrialRuns], job_runs: pd.DataFrame
) -> list[str]:
    candidates, reasons = problem.candidates, []
    if not len(job_runs):
        reasons.append("The table has no run of this job yet.")
    if proposal is not None:
        at = proposal.candidate
        reasons.append(
            f"{candidates.name(at)} has {number(candidates.total_vcpu[at])} vCPU and "
            f"{number(candidates.total_memory_gb[at])} GB in all, at {number(candidates.rate_per_h[at])} an hour."
        )
        if not np.isnan(proposal.learned_share):
            reasons.append(
                f"A run there makes the cost of all configurations {share(proposal.learned_share)} less uncertain."
            )
    if problem.need is not None:
        n_fit = int(problem.is_promising.sum())
        reasons.append(f"Memory: {problem.need.reason}; {n_fit} of {len(candidates)} configurations are promising.")
    starts, n_jobs = ([] if others else problem.starts), len(problem.other_costs)
    if proposal is not None and proposal.candidate in starts and len(runs.candidate) < len(starts):
        reasons.append(f"It is among the {len(starts)} that together served {n_jobs} jobs of other applications best.")
    if others:
        n_others = sum(len(other.candidate) for other in others)
        reasons.append(f"{n_others} runs of the same application with other inputs count as well.")
    if not runs.is_completed.all():
        reasons.append(
            f"{int((~runs.is_completed).sum())} of {len(job_runs)} runs failed; what is like them counts less."
        )
    if problem.lacking_gb:
        reasons.append(f"{number(problem.lacking_gb)} GB in all were too little: what has more comes first.")
    if proposal is not None and not proposal.is_worthwhile:
        on = f"{len(job_runs)} runs on {len(runs.candidate)} configurations"
        reasons.append(f"After {on} another one is expected to save next to nothing.")
    return reasons


def add_run(
    path: Path,
    job: str,
    machine_type: str,
    nodes: int,
    runtime_s: float | None,
    status: Status,
    renamed: Mapping[str, str],
) -> None:
    """Add the result of a run to a CSV of runs, which is made where there is none; whole or not at all.

    runtime_s: None of a failed run where nobody knows it. renamed: ours to theirs. Raises BadInput if the file lacks a
    column, or is no text."""
    header, text = list(COLUMNS), ""
    if path.exists() and path.stat().st_size:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(path, "cannot be added to", "a CSV of runs as UTF-8", "add the row by hand") from error
        header = next(csv.reader([text.splitlines()[0]]))
    theirs = {ours: ours for ours in RUNS if ours in header} | theirs_of(header, RUNS, renamed if text else {})
    if missing := [name for name in ("job", "machine_type", "nodes", "runtime_s", "completed") if name not in theirs]:
        fix = f"start a new file with the columns {', '.join(COLUMNS)}, or add the row by hand"
        raise BadInput(path, f"no column {', '.join(missing)}", "the columns of a table of runs", fix)
    factor = factor_of_column(str(path), theirs["runtime_s"], RUNS["runtime_s"])
    took = "" if runtime_s is None else f"{runtime_s / factor:g}"
    row = {"job": job, "machine_type": machine_type, "nodes": nodes, "runtime_s": took, "completed": status}
    with whole(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        file.write(text if text.endswith("\n") or not text else f"{text}\n")
        writer = csv.DictWriter(file, header, restval="", lineterminator="\n")
        if not text:
            writer.writeheader()
        writer.writerow({theirs[ours]: value for ours, value in row.items()})
        file.flush()
        os.fsync(file.fileno())
