"""What search is measured against: CherryPick, Ruya, a portfolio of other applications' best, and processors alone.

CherryPick (Alipourfard et al. 2017) in the form that Ruya's authors replayed: a Gaussian process on (memory of a node,
total cores), Matérn 3/2 with one length scale of greatest likelihood, three random starts, expected improvement over
the whole plane, and the nearest configuration to its peak. Its fit over a grid of length scales equals scikit-learn's
(tests/advice/test_baselines.py) at a hundredth of the time."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr

from tasks.advice.machines import Configurations, Floats, Ints
from tasks.advice.search import Method, Problem, at_random
from tasks.advice.surrogate import Runs, SurrogateParams

N_STARTS = 3
JITTER = 1e-5  # variance of observations of unit variance, as in Ruya's code
LENGTHS = np.geomspace(1e-2, 1e4, 121)  # the likelihood is flat beyond both ends
N_POINTS = 1_000  # of the plane at which the improvement is looked up
VCPU_ONLY = SurrogateParams(weights=(0.0, 0.0, 0.0, 0.3))


def features(candidates: Configurations) -> Floats:
    """Memory of a node in GB, and processors of the cluster: (n, 2), as they are."""
    return np.stack([candidates.memory_gb, candidates.total_vcpu], axis=1)


def _matern32(distance: Floats) -> Floats:
    """(1 + d) exp(-d), d = √3 · distance."""
    scaled = np.sqrt(3) * distance
    smooth: Floats = (1 + scaled) * np.exp(-scaled)
    return smooth


def _distances(left: Floats, right: Floats) -> Floats:
    distances: Floats = np.sqrt(((left[:, None] - right[None]) ** 2).sum(-1))
    return distances


def likeliest_length(points: Floats, values: Floats) -> float:
    """The length scale of greatest marginal likelihood for standardised values, (k,) at points (k, d)."""
    among = _matern32(_distances(points, points)[None] / LENGTHS[:, None, None]) + JITTER * np.eye(len(points))
    lower = np.linalg.cholesky(among)  # (lengths, k, k)
    whitened = np.linalg.solve(lower, np.broadcast_to(values[:, None], (len(LENGTHS), len(values), 1)))[..., 0]
    log_determinants = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(1)
    return float(LENGTHS[np.argmax(-0.5 * (whitened**2).sum(1) - log_determinants)])


def _process(points: Floats, values: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation at places (m, d), of values that are standardised inside."""
    level, spread = values.mean(), values.std() or 1.0
    standard = (values - level) / spread
    length = likeliest_length(points, standard)
    among = _matern32(_distances(points, points) / length) + JITTER * np.eye(len(points))
    cross = _matern32(_distances(at, points) / length)  # (m, k)
    solved = np.linalg.solve(among, np.column_stack([standard, cross.T]))
    variance = np.maximum(1 - np.einsum("mk,km->m", cross, solved[:, 1:]), 0)
    return level + spread * cross @ solved[:, 0], spread * np.sqrt(variance)


def cherrypick_among(problem: Problem, runs: Runs, among: Ints, rng: Generator) -> int:
    """CherryPick's next run among these candidates; see the module."""
    seen = runs.candidate[runs.is_completed]
    if len(runs.candidate) < N_STARTS or not len(seen):
        return int(rng.choice(among))
    axes = features(problem.candidates)
    plane = rng.uniform(axes.min(0), axes.max(0), size=(N_POINTS, axes.shape[1]))
    cost = np.exp(runs.log_cost[runs.is_completed])
    mean, deviation = _process(axes[seen], cost, plane)
    best = problem.best(runs)
    z = ((cost.min() if best is None else np.exp(best)) - mean) / np.maximum(deviation, JITTER)
    worth = deviation * (z * ndtr(z) + np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))
    if problem.max_runtime_s is not None:  # CherryPick, 3.3: times the chance that the runtime is kept
        runtime = cost / problem.candidates.cost(np.ones(len(problem.candidates)))[seen]
        time, time_deviation = _process(axes[seen], runtime, plane)
        worth = worth * ndtr((problem.max_runtime_s - time) / np.maximum(time_deviation, JITTER))
    peak = plane[np.argmax(worth)]
    return int(among[np.argmin(((axes[among] - peak) ** 2).sum(1))])


def cherrypick(problem: Problem, runs: Runs, rng: Generator) -> int:
    """CherryPick among all candidates that have not run."""
    is_new = np.ones(len(problem.candidates), dtype=bool)
    is_new[runs.candidate] = False
    return cherrypick_among(problem, runs, np.flatnonzero(is_new), rng)


def ruya(problem: Problem, runs: Runs, rng: Generator) -> int:
    """Ruya: CherryPick among the candidates that are promising for the memory need, then among the rest."""
    return cherrypick_among(problem, runs, problem.open_candidates(runs), rng)


def portfolio_order(costs: Sequence[Floats], n: int) -> list[int]:
    """The n candidates that together would have served other jobs best, the most useful first.

    costs: (candidates,) of each job, as multiples of its optimum, infinite where it failed or did not run. Greedy: each
    adds what lowers the mean of the jobs' best most."""
    table = np.minimum(
        np.stack(costs), np.nanmax(np.where(np.isfinite(costs), costs, np.nan)) * 2
    )  # (jobs, candidates)
    best = np.full(len(table), np.inf)
    order: list[int] = []
    for _ in range(min(n, table.shape[1])):
        means = np.minimum(best[:, None], table).mean(0)
        means[order] = np.inf
        order.append(int(np.argmin(means)))
        best = np.minimum(best, table[:, order[-1]])
    return order


def portfolio(order: Sequence[int]) -> Method:
    """The method that runs candidates in this order, promising ones first; the rest at random."""

    def next_run(problem: Problem, runs: Runs, rng: Generator) -> int:
        still_open = set(problem.open_candidates(runs).tolist())
        listed = [at for at in order if at in still_open]
        return listed[0] if listed else at_random(problem, runs, rng)

    return next_run
