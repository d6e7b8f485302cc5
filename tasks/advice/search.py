"""Search for the cheapest cluster configuration, a run at a time: ask for a proposal, run it, tell what came of it.

Ours: expected improvement on log cost under `surrogate`, among the configurations that are promising for the job's
memory need first, times the chance that the run completes and that it ends in time. The first run is drawn at random
among the promising ones; where jobs of other applications have run, the first three are what served those best."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.random import Generator

from tasks.advice.machines import Configurations, Floats, Ints
from tasks.advice.memory import MemoryNeed, promising
from tasks.advice.surrogate import (
    LEARNED,
    Bools,
    Posterior,
    Prior,
    Runs,
    SurrogateParams,
    completion,
    expected_improvement,
    in_time,
    kernel,
    posterior,
    prior_after,
)

FAILED_FACTOR = 2  # what a failed run counts as, times the dearest that completed
N_STARTS = 3  # by what served other applications best
CORRELATION = 0.8  # of the cost surfaces of two inputs of one application
INTERVAL_Z = 1.645  # half of a 90 % interval, in standard deviations
LIKELY = 0.25  # to meet the deadline
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
    other applications as multiples of their optimum, infinite where they failed or did not run."""

    candidates: Configurations
    need: MemoryNeed | None = None
    max_runtime_s: float | None = None
    params: SurrogateParams = LEARNED
    others: tuple[Runs, ...] = ()
    correlation: float = CORRELATION
    other_costs: tuple[Floats, ...] = ()

    @cached_property
    def prior(self) -> Prior:
        """Belief before the first run."""
        covariance = kernel(self.candidates, self.params)
        return prior_after(covariance, self.others, self.correlation, self.params.noise)

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

    def open_candidates(self, runs: Runs) -> Ints:
        """Candidates to choose the next run from: promising ones, and the rest once those have run.

        With a deadline only what is likely to keep it counts as promising, as far as runs tell."""
        is_new = np.ones(len(self.candidates), dtype=bool)
        is_new[runs.candidate] = False
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

    def best(self, runs: Runs) -> float | None:
        """The least log cost of a run that completed in time."""
        valid = self.is_valid(runs.candidate, runs.log_cost, runs.is_completed)
        return float(runs.log_cost[valid].min()) if valid.any() else None

    def belief(self, runs: Runs) -> Posterior:
        """What is believed after these runs."""
        return posterior(self.prior, runs, self.params.noise)

    def chance_in_time(self, belief: Posterior) -> Floats:
        """Chance that a completed run of each candidate meets the deadline, (n,); 1 without one."""
        if self.max_runtime_s is None:
            return np.ones(len(self.candidates))
        return in_time(belief, self.candidates, self.max_runtime_s, self.params.noise)

    def chance_completed(self, runs: Runs) -> Floats:
        """Chance that a run of each candidate completes, (n,)."""
        return completion(self.candidates, self.prior.covariance, runs, self.params)


Method = Callable[[Problem, Runs, Generator], int]


def at_random(problem: Problem, runs: Runs, rng: Generator) -> int:
    """Any candidate that has not run: the plainest baseline, and where it goes on long enough the exhaustive search."""
    is_new = np.ones(len(problem.candidates), dtype=bool)
    is_new[runs.candidate] = False
    return int(rng.choice(np.flatnonzero(is_new)))


def by_improvement(problem: Problem, runs: Runs, rng: Generator) -> int:
    """Ours: the greatest expected improvement, weighed by the chances to complete and to be in time."""
    if len(runs.candidate) < len(problem.starts) and not problem.others:
        untried = [at for at in problem.starts if at not in runs.candidate]
        if untried:
            return untried[0]
    candidates = problem.open_candidates(runs)
    if not len(runs.candidate) and not problem.others:
        return int(rng.choice(candidates))
    return int(candidates[np.argmax(_worth(problem, runs)[candidates])])


def _worth(problem: Problem, runs: Runs) -> Floats:
    """Expected improvement of log cost by a run of each candidate that completes in time, (n,)."""
    if not len(runs.candidate):
        return -problem.prior.mean
    belief = problem.belief(runs)
    best = problem.best(runs)
    if best is None:  # nothing has met the deadline yet: what is sure to, and cheap, is worth most
        best = float(np.quantile(belief.mean, 0.5))
    worth = expected_improvement(belief, best)
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


def propose(problem: Problem, runs: Runs, rng: Generator) -> Proposal | None:
    """The next run, by our method; None once all candidates have run. Before any run its cost is not known (NaN)."""
    if len(np.unique(runs.candidate)) == len(problem.candidates):
        return None
    at = by_improvement(problem, runs, rng)
    if not len(runs.candidate):
        nan = float("nan")
        return Proposal(at, nan, nan, nan, nan, nan, nan, nan, nan, is_worthwhile=True)
    belief, noise = problem.belief(runs), problem.params.noise
    best, worth = problem.best(runs), float(_worth(problem, runs)[at])
    spread = INTERVAL_Z * np.sqrt(belief.variance[at] + noise)
    cost = np.exp(belief.mean[at])
    reduction = (belief.covariance[at] ** 2).sum() / (belief.variance[at] + noise)
    tried_enough = len(runs.candidate) >= LEAST_RUNS and best is not None
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
class Outcome:
    """What each candidate would give: (n,) log cost of its run (of a failed one, what it cost), and if it completed."""

    log_cost: Floats
    is_completed: Bools = field(repr=False)

    def runs(self, candidates: Sequence[int]) -> Runs:
        """The runs of some candidates, in their order."""
        at = np.array(candidates, dtype=np.int64)
        return Runs(at, self.log_cost[at], self.is_completed[at])


def as_multiples(candidates: Configurations, outcome: Outcome, others: Configurations) -> Floats:
    """Costs of a job on other candidates, (n_others,), as multiples of its optimum; infinite where none completed."""
    log_cost = np.where(outcome.is_completed, outcome.log_cost, np.inf)
    there = np.array([np.inf if at is None else log_cost[at] for at in candidates.places(others)])
    multiples: Floats = np.exp(there - log_cost.min())
    return multiples


def search(problem: Problem, outcome: Outcome, n_runs: int, method: Method, rng: Generator) -> Ints:
    """The candidates that a search of n_runs runs tries, in their order, (min(n_runs, n),)."""
    tried: list[int] = []
    for _ in range(min(n_runs, len(problem.candidates))):
        tried.append(method(problem, outcome.runs(tried), rng))
    return np.array(tried, dtype=np.int64)
