"""What search is measured against: CherryPick, Arrow, Ruya, a portfolio of other applications, processors alone.

CherryPick (Alipourfard et al. 2017) in the form that Ruya's authors replayed: a Gaussian process on (memory of a node,
total cores), Matérn 3/2 with one length scale of greatest likelihood, three random starts, expected improvement over
the whole plane, and the nearest configuration to its peak. Its fit over a grid of length scales equals scikit-learn's
(tests/advice/test_baselines.py) at a hundredth of the time."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr

from tasks.advice.arrow import FEWEST_PROFILED, arrow_proposal, weighted_acquisition
from tasks.advice.machines import Configurations, Floats, Ints
from tasks.advice.search import Method, Problem, at_random
from tasks.advice.surrogate import Runs, SurrogateParams

N_STARTS = 3
JITTER = 1e-5  # variance of observations of unit variance, as in Ruya's code
LENGTHS = np.geomspace(1e-2, 1e4, 121)  # the likelihood is flat beyond both ends
N_POINTS = 1_000  # of the plane at which the improvement is looked up
ARROW_TREES = 31  # of 101 published: a third of the time, and 0.04 dearer after six runs (tasks/advice/README.md)
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


Weigh = Callable[[Configurations, Floats, int], Floats]  # what scores make of an acquisition after so many runs


def unweighted(_candidates: Configurations, acquisition: Floats, _n_runs: int) -> Floats:
    """The acquisition as it is: without scores."""
    return acquisition


def by_scores(scores: Mapping[str, Mapping[str, float]]) -> Weigh:
    """Perona's weights (IV-D): what scores well counts more, at the start. scores: by aspect, then machine type.

    Every resource counts as fully used where tables of runs say nothing of that."""
    columns = {aspect: _scaled(by_type) for aspect, by_type in scores.items()}

    def weighed(candidates: Configurations, acquisition: Floats, n_runs: int) -> Floats:
        of = {
            aspect: np.array([[by_type.get(name, 0.0)] for name in candidates.machine_type])
            for aspect, by_type in columns.items()
        }
        return weighted_acquisition(acquisition, dict.fromkeys(of, 1.0), of, n_runs)

    return weighed


def _scaled(by_type: Mapping[str, float]) -> dict[str, float]:
    """Scores divided by their largest."""
    largest = max(abs(score) for score in by_type.values())
    return {name: score / largest for name, score in by_type.items()}


def improvement_by_pairs(problem: Problem, runs: Runs, rng: Generator, scores: Floats) -> Floats:
    """Arrow's expected improvement of each candidate, (n,). scores: (n, m), in place of metrics; m may be 0."""
    candidates, ok = problem.candidates, runs.is_completed
    axes = np.stack([candidates.nodes, candidates.vcpu, candidates.memory_gb / candidates.vcpu], axis=1)
    seen = runs.candidate[ok]
    told = arrow_proposal(axes, scores, runs.log_cost[ok], seen, rng, n_trees=ARROW_TREES)
    best = problem.best(runs)
    z = ((runs.log_cost[ok].min() if best is None else best) - told.mean) / told.deviation
    improvement: Floats = told.deviation * (z * ndtr(z) + np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))
    return improvement


def arrow(scores: Mapping[str, Mapping[str, float]] | None = None) -> Method:
    """Arrow, as Perona replays it: three random starts, then pairs of runs; with scores weighed, and told, by them."""

    def next_run(problem: Problem, runs: Runs, rng: Generator) -> int:
        is_new = np.ones(len(problem.candidates), dtype=bool)
        is_new[runs.candidate] = False
        if len(runs.candidate) < N_STARTS or runs.is_completed.sum() < FEWEST_PROFILED:
            return int(rng.choice(np.flatnonzero(is_new)))
        names = problem.candidates.machine_type
        told = [[by_type.get(name, 0.0) for name in names] for by_type in (scores or {}).values()]
        metrics = np.array(told).T if told else np.empty((len(names), 0))
        worth = improvement_by_pairs(problem, runs, rng, metrics)
        if scores:
            worth = by_scores(scores)(problem.candidates, worth, len(runs.candidate))
        return int(np.argmax(np.where(is_new, worth, -np.inf)))

    return next_run


def cherrypick_with(weigh: Weigh) -> Method:
    """CherryPick with an acquisition that scores weigh: its improvement at the candidates themselves."""

    def next_run(problem: Problem, runs: Runs, rng: Generator) -> int:
        is_new = np.ones(len(problem.candidates), dtype=bool)
        is_new[runs.candidate] = False
        seen = runs.candidate[runs.is_completed]
        if not len(runs.candidate):
            return int(rng.choice(np.flatnonzero(is_new)))
        worth = np.ones(len(problem.candidates))
        if len(runs.candidate) >= N_STARTS and len(seen):
            axes, cost = features(problem.candidates), np.exp(runs.log_cost[runs.is_completed])
            mean, deviation = _process(axes[seen], cost, axes)
            z = (cost.min() - mean) / np.maximum(deviation, JITTER)
            worth = deviation * (z * ndtr(z) + np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)) / cost.min()
        weighed = np.where(is_new, weigh(problem.candidates, worth, len(runs.candidate)), -np.inf)
        return int(rng.choice(np.flatnonzero(weighed == weighed.max())))  # sizes of the best type tie (IV-D)

    return next_run


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
