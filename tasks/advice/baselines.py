"""What search is measured against: CherryPick, Arrow, Ruya, a portfolio of other applications, processors alone.

CherryPick (Alipourfard et al. 2017) in the form that Ruya's authors replayed: a Gaussian process on (memory of a node,
total cores), Matérn 3/2 with one length scale of greatest likelihood, three random starts, expected improvement over
the whole plane, and the nearest configuration to its peak. Its fit over a grid of length scales equals scikit-learn's
(tests/advice/test_baselines.py) at a hundredth of the time.

Arrow (Hsu et al. 2018) learns from each pair of profiled runs (i, j): from configuration i, what the run on it looked
like inside (metrics i), and configuration j, to the log cost of j. A candidate gets a prediction from every profiled
run; their mean is the estimate, their scatter the uncertainty. Perona (Scheinert et al. 2022, IV-D) multiplies any
acquisition by how well a machine scores in the resources that the job has used so far."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.random import Generator
from scipy.spatial.distance import cdist
from scipy.special import ndtr

from tasks.advice.machines import Configurations, Floats, Ints
from tasks.advice.search import Method, Problem, at_random
from tasks.advice.surrogate import SurrogateParams, TrialRuns, expected_improvement

N_STARTS = 3
JITTER = 1e-5  # variance of observations of unit variance, as in Ruya's code
LENGTHS = np.geomspace(1e-2, 1e4, 121)  # the likelihood is flat beyond both ends
N_POINTS = 1_000  # of the plane at which the improvement is looked up
ARROW_TREES = 31  # of 101 published: a third of the time, and 0.04 dearer after six runs (tasks/advice/README.md)
N_TREES, DEPTH = 101, 5  # the published settings
SOURCE_JITTER = 1e-8  # variance added to that of the sources
FEWEST_PROFILED = 2  # one ordered pair each way
SEEDS = 2**31 - 1
ACQUISITION_FLOOR = 0.01  # so that scores decide where nothing is to be gained
LARGEST_SUM = 6  # of scores: memory 1, processor 1, disk 2, network 2 benchmarks, each at most 1
VCPU_ONLY = SurrogateParams(weights=(0.0, 0.0, 0.0, 0.3))


def features(candidates: Configurations) -> Floats:
    """Memory of a node in GB, and processors of the cluster: (n, 2), as they are."""
    return np.stack([candidates.memory_gb, candidates.total_vcpu], axis=1)


def _matern32(distance: Floats) -> Floats:
    """(1 + d) exp(-d), d = √3 · distance."""
    scaled = np.sqrt(3) * distance
    smooth: Floats = (1 + scaled) * np.exp(-scaled)
    return smooth


def likeliest_length(points: Floats, values: Floats) -> float:
    """The length scale of greatest marginal likelihood for standardised values, (k,) at points (k, d)."""
    among = _matern32(cdist(points, points)[None] / LENGTHS[:, None, None]) + JITTER * np.eye(len(points))
    lower = np.linalg.cholesky(among)  # (lengths, k, k)
    whitened = np.linalg.solve(lower, np.broadcast_to(values[:, None], (len(LENGTHS), len(values), 1)))[..., 0]
    log_determinants = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(1)
    return float(LENGTHS[np.argmax(-0.5 * (whitened**2).sum(1) - log_determinants)])


def _process(points: Floats, values: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation at places (m, d), of values that are standardised inside."""
    level, spread = values.mean(), values.std() or 1.0
    standard = (values - level) / spread
    length = likeliest_length(points, standard)
    among = _matern32(cdist(points, points) / length) + JITTER * np.eye(len(points))
    cross = _matern32(cdist(at, points) / length)  # (m, k)
    solved = np.linalg.solve(among, np.column_stack([standard, cross.T]))
    variance = np.maximum(1 - np.einsum("mk,km->m", cross, solved[:, 1:]), 0)
    return level + spread * cross @ solved[:, 0], spread * np.sqrt(variance)


def cherrypick_among(problem: Problem, runs: TrialRuns, among: Ints, rng: Generator) -> int:
    """CherryPick's next run among these candidates; see the module."""
    seen = runs.candidate[runs.is_completed]
    if len(runs.candidate) < N_STARTS or not len(seen):
        return int(rng.choice(among))
    axes = features(problem.candidates)
    plane = rng.uniform(axes.min(0), axes.max(0), size=(N_POINTS, axes.shape[1]))
    cost = np.exp(runs.log_cost[runs.is_completed])
    mean, deviation = _process(axes[seen], cost, plane)
    best = problem.best(runs)
    worth = expected_improvement(mean, deviation, cost.min() if best is None else np.exp(best), least=JITTER)
    if problem.max_runtime_s is not None:  # CherryPick, 3.3: times the chance that the runtime is kept
        runtime = cost / problem.candidates.cost(np.ones(len(problem.candidates)))[seen]
        time, time_deviation = _process(axes[seen], runtime, plane)
        worth = worth * ndtr((problem.max_runtime_s - time) / np.maximum(time_deviation, JITTER))
    peak = plane[np.argmax(worth)]
    return int(among[np.argmin(((axes[among] - peak) ** 2).sum(1))])


def arrow_proposal(
    configurations: Floats,
    metrics: Floats,
    log_cost: Floats,
    profiled: Ints,
    rng: np.random.Generator,
    *,
    n_trees: int = N_TREES,
) -> tuple[Floats, Floats]:
    """Log cost of each candidate as trees on pairs of profiled runs see it: (n,) mean and standard deviation.

    configurations: (n, d). metrics: (n, m), read at the profiled rows alone; m may be 0. log_cost: (k,) of the
    profiled. profiled: (k,) rows of the candidates that have run, two at least. n_trees: fewer are faster and a little
    noisier. The estimate is the mean over the k sources, the variance their sample variance plus a jitter: the diagonal
    of the published covariance, which is all that expected improvement of one candidate needs."""
    from sklearn.tree import ExtraTreeRegressor  # type: ignore[import-untyped, unused-ignore]

    k = len(profiled)
    seen = metrics[profiled]
    low, high = seen.min(axis=0, initial=np.inf), seen.max(axis=0, initial=-np.inf)
    from_0_to_1 = (seen - low) / np.where(high > low, high - low, 1.0)  # 0 where it does not vary
    sources = np.hstack([configurations[profiled], from_0_to_1])  # (k, d + m)
    first, second = np.nonzero(~np.eye(k, dtype=bool))
    inputs = np.hstack([sources[first], configurations[profiled][second]]).astype(np.float32)  # (k (k - 1), 2 d + m)
    targets = log_cost[second]
    n = len(configurations)
    queries = np.hstack([np.repeat(sources, n, axis=0), np.tile(configurations, (k, 1))]).astype(np.float32)
    total = np.zeros(k * n)
    for seed in rng.integers(SEEDS, size=n_trees):  # a forest of these, without what it costs to start one
        tree = ExtraTreeRegressor(max_depth=DEPTH, random_state=int(seed))
        total += tree.fit(inputs, targets, check_input=False).tree_.predict(queries)[:, 0]
    by_source = (total / n_trees).reshape(k, n)
    return by_source.mean(axis=0), np.sqrt(by_source.var(axis=0, ddof=1) + SOURCE_JITTER)


def weighted_acquisition(
    acquisition: Floats, utilisation_of: Mapping[str, float], scores_of: Mapping[str, Floats], n_profiled: int
) -> Floats:
    """An acquisition, weighted by the scores of each candidate's machine in what the job uses: (n,).

        a' = (a + 0.01) (1 + S / 6^max(1, n - 1)),   S = Σ_aspect u_aspect Σ_benchmark s_benchmark

    acquisition: (n,). utilisation_of: 0 to 1 by aspect. scores_of: (n, n_benchmarks) by aspect, of the machine of each
    candidate, over the largest magnitude; published are 1 benchmark of memory and of processor, 2 of disk and of
    network. n_profiled: runs so far; the weight all but vanishes from the fifth on."""
    score = np.zeros(len(acquisition))
    for aspect, used in utilisation_of.items():
        score += used * scores_of[aspect].sum(axis=1)
    return np.asarray((acquisition + ACQUISITION_FLOOR) * (1 + score / LARGEST_SUM ** max(1, n_profiled - 1)))


def by_scores(
    scores: Mapping[str, Mapping[str, float]], candidates: Configurations, acquisition: Floats, n_runs: int
) -> Floats:
    """Perona's weights (IV-D): what scores well counts more, at the start. scores: by aspect, then machine type.

    Every resource counts as fully used where tables of runs say nothing of that."""
    columns = {}
    for aspect, by_type in scores.items():
        largest = max(map(abs, by_type.values()))
        columns[aspect] = np.array([[by_type.get(name, 0.0) / largest] for name in candidates.machine_type])
    return weighted_acquisition(acquisition, dict.fromkeys(columns, 1.0), columns, n_runs)


def arrow(scores: Mapping[str, Mapping[str, float]] | None = None) -> Method:
    """Arrow, as Perona replays it: three random starts, then pairs of runs; with scores weighed, and told, by them."""

    def next_run(problem: Problem, runs: TrialRuns, rng: Generator) -> int:
        candidates, ok, is_new = problem.candidates, runs.is_completed, problem.is_new(runs)
        if len(runs.candidate) < N_STARTS or ok.sum() < FEWEST_PROFILED:
            return int(rng.choice(np.flatnonzero(is_new)))
        aspect_scores = [
            [by_type.get(name, 0.0) for name in candidates.machine_type] for by_type in (scores or {}).values()
        ]
        metrics = np.array(aspect_scores).T if aspect_scores else np.empty((len(candidates), 0))
        axes = np.stack([candidates.nodes, candidates.vcpu, candidates.memory_gb / candidates.vcpu], axis=1)
        log_cost, best = runs.log_cost[ok], problem.best(runs)
        believed = arrow_proposal(axes, metrics, log_cost, runs.candidate[ok], rng, n_trees=ARROW_TREES)
        worth = expected_improvement(*believed, float(log_cost.min()) if best is None else best)
        if scores:
            worth = by_scores(scores, candidates, worth, len(runs.candidate))
        return int(np.argmax(np.where(is_new, worth, -np.inf)))

    return next_run


def cherrypick_with(scores: Mapping[str, Mapping[str, float]]) -> Method:
    """CherryPick with an acquisition that scores weigh: its improvement at the candidates themselves."""

    def next_run(problem: Problem, runs: TrialRuns, rng: Generator) -> int:
        is_new, seen = problem.is_new(runs), runs.candidate[runs.is_completed]
        if not len(runs.candidate):
            return int(rng.choice(np.flatnonzero(is_new)))
        worth = np.ones(len(problem.candidates))
        if len(runs.candidate) >= N_STARTS and len(seen):
            axes, cost = features(problem.candidates), np.exp(runs.log_cost[runs.is_completed])
            mean, deviation = _process(axes[seen], cost, axes)
            worth = expected_improvement(mean, deviation, cost.min(), least=JITTER) / cost.min()
        weighed = np.where(is_new, by_scores(scores, problem.candidates, worth, len(runs.candidate)), -np.inf)
        return int(rng.choice(np.flatnonzero(weighed == weighed.max())))  # sizes of the best type tie (IV-D)

    return next_run


def cherrypick(problem: Problem, runs: TrialRuns, rng: Generator) -> int:
    """CherryPick among all candidates that have not run."""
    return cherrypick_among(problem, runs, np.flatnonzero(problem.is_new(runs)), rng)


def ruya(problem: Problem, runs: TrialRuns, rng: Generator) -> int:
    """Ruya: CherryPick among the candidates that are promising for the memory need, then among the rest."""
    return cherrypick_among(problem, runs, problem.open_candidates(runs), rng)


def portfolio(order: Sequence[int]) -> Method:
    """The method that runs candidates in this order, promising ones first; the rest at random."""

    def next_run(problem: Problem, runs: TrialRuns, rng: Generator) -> int:
        still_open = set(problem.open_candidates(runs).tolist())
        listed = [at for at in order if at in still_open]
        return listed[0] if listed else at_random(problem, runs, rng)

    return next_run
