"""What is believed of the cost of configurations that were not run: a Gaussian process on log cost.

    log cost = level + f(configuration) + noise,   f ~ GP(0, kernel)
    kernel   = J · (w₁ M(nodes, size, memory a core) + w₂ M(total memory) + w₃ M(total memory, total cores)
                    + w₄ M(total cores)) · J,   M: Matérn 5/2 on logarithms, J: centres over the candidates

Axes of *total* memory and *total* cores are what transfers between jobs: runs either fit or spill, and scale or do not.
The parameters are given, or learned on other applications; three to six runs of one job cannot tell them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, log_ndtr, ndtr

from tasks.advice.machines import SECONDS_PER_HOUR, Configurations, Floats

LEVEL = 10.0  # prior variance of a job's level: nothing is known of it
LEAST_VARIANCE = 1e-9
LEAST_NOISE = 0.03  # variance of log cost from run to run, at least: one run a configuration informs no less
LEAST_PRECISION = 1e-3  # below it a failed run informs of nothing
PRIOR_VOTES = 8.0  # what other applications say of completion counts as much as so many runs just like it
FAILED_SURCHARGE, FAILED_NOISE = 0.5, 1.0  # what a failed run stands for while none has completed
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class SurrogateParams:
    """weights: variance of the four terms; scales: lengths of their seven axes, in log units; noise: a variance.

    completion: log odds that a run completes, before any has run: a constant, and the slopes of the logarithms of
    nodes, memory of one in GB and vCPU of one."""

    weights: tuple[float, ...] = (0.2, 0.1, 0.1, 0.05)
    scales: tuple[float, ...] = (1.0,) * 7
    noise: float = 0.05
    completion: tuple[float, ...] = (2.94, 0.0, 0.0, 0.0)  # 95 % everywhere


FIXED = SurrogateParams()
LEARNED = SurrogateParams(  # what `learned` makes of the twelve scout workloads in the reference data
    weights=(0.105, 0.082, 0.089, 0.051),
    scales=(2.165, 2.217, 1.581, 0.49, 1.384, 1.069, 1.107),
    noise=0.03,
    completion=(-0.87, 1.27, 0.21, 0.91),
)


@dataclass(frozen=True)
class TrialRuns:
    """Runs of a job so far. candidate: (k,) places; log_cost: (k,), of a failed run what it had cost when it ended,
    minus infinity where nobody knows."""

    candidate: NDArray[np.int64]
    log_cost: Floats
    is_completed: Bools


@dataclass(frozen=True)
class Posterior:
    """Belief about the log cost of each candidate: (n,) means and variances without noise; covariance: (n, n)."""

    mean: Floats
    variance: Floats
    covariance: Floats = field(repr=False)


@dataclass(frozen=True)
class Prior:
    """Belief before the first run, but for the job's level: (n,) mean and (n, n) covariance."""

    mean: Floats
    covariance: Floats


def kernel(candidates: Configurations, params: SurrogateParams) -> Floats:
    """Prior covariance of log cost without level, (n, n): the sum kernel above."""
    nodes, vcpu = np.log(candidates.nodes), np.log(candidates.vcpu)
    memory = np.log(candidates.memory_gb)
    total_memory, total_vcpu = nodes + memory, nodes + vcpu
    terms = ((nodes, vcpu, memory - vcpu), (total_memory,), (total_memory, total_vcpu), (total_vcpu,))
    scales = iter(params.scales)
    summed = sum(
        weight * _matern52(np.stack([axis / next(scales) for axis in axes], axis=1))
        for weight, axes in zip(params.weights, terms, strict=True)
    )
    centred = np.eye(len(candidates)) - 1 / len(candidates)
    covariance: Floats = centred @ summed @ centred
    return covariance


def _matern52(points: Floats) -> Floats:
    """(1 + d + d²/3) exp(-d), d = √5 · distance; points: (n, axes)."""
    squared = ((points[:, None] - points[None]) ** 2).sum(-1)  # (n, n)
    distance = np.sqrt(5 * squared)
    smooth: Floats = (1 + distance + distance**2 / 3) * np.exp(-distance)
    return smooth


def prior_after(covariance: Floats, others: Sequence[TrialRuns], correlation: float, noise: float) -> Prior:
    """Belief after runs of the same application with other inputs: its cost surface is like that of this job.

    Surfaces of two inputs correlate by `correlation`; the level of each is its own."""
    others = [runs for runs in others if runs.is_completed.any()]
    if not others:
        return Prior(np.zeros(len(covariance)), covariance)
    tried = np.concatenate([runs.candidate[runs.is_completed] for runs in others])
    log_cost = np.concatenate(
        [runs.log_cost[runs.is_completed] - runs.log_cost[runs.is_completed].mean() for runs in others]
    )
    job = np.concatenate([np.full(int(runs.is_completed.sum()), at) for at, runs in enumerate(others)])
    is_same = job[:, None] == job[None]
    among = (
        covariance[np.ix_(tried, tried)] * np.where(is_same, 1, correlation)
        + LEVEL * is_same
        + noise * np.eye(len(tried))
    )
    weights = np.linalg.solve(among, correlation * covariance[tried])  # (k, n)
    return Prior(weights.T @ log_cost, covariance - correlation * covariance[:, tried] @ weights)


def posterior(prior: Prior, runs: TrialRuns, noise: float) -> Posterior:
    """Belief about all candidates after runs; noise: variance of log cost from run to run.

    A failed run says that completing would have cost at least as much as it had when it ended: its likelihood, a
    normal tail, is matched in mean and variance by one observation (expectation propagation, one pass). One of which
    nobody knows the cost says nothing of it; while there are no others the level is taken for 0."""
    is_known = np.isfinite(runs.log_cost)
    if not is_known.any():
        return Posterior(prior.mean, np.maximum(np.diag(prior.covariance), LEAST_VARIANCE), prior.covariance)
    runs = TrialRuns(runs.candidate[is_known], runs.log_cost[is_known], runs.is_completed[is_known])
    ok = runs.is_completed
    covariance = prior.covariance + LEVEL
    if not ok.any():
        surcharged = runs.log_cost + FAILED_SURCHARGE
        level = float((surcharged - prior.mean[runs.candidate]).mean())
        variances = np.full(len(ok), FAILED_NOISE)
        return _regression(prior.mean, covariance, runs.candidate, surcharged, variances, level)
    seen, observed, variances = runs.candidate[ok], runs.log_cost[ok], np.full(int(ok.sum()), noise)
    level = float((observed - prior.mean[seen]).mean())
    belief = _regression(prior.mean, covariance, seen, observed, variances, level)
    if ok.all():
        return belief
    failed = runs.candidate[~ok]
    bound, variance, informs = _lower_bounds(belief.mean[failed], belief.variance[failed], runs.log_cost[~ok], noise)
    seen = np.concatenate([seen, failed[informs]])
    observed = np.concatenate([observed, bound[informs]])
    variances = np.concatenate([variances, variance[informs]])
    return _regression(prior.mean, covariance, seen, observed, variances, level)


def _lower_bounds(mean: Floats, variance: Floats, bound: Floats, noise: float) -> tuple[Floats, Floats, Bools]:
    """Observations, their variances, and whether each informs, that stand for P(cost > bound)."""
    spread = np.sqrt(variance + noise)
    z = (bound - mean) / spread
    hazard = np.exp(-(z**2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(-z))  # φ(z) / (1 - Φ(z))
    matched_mean = mean + variance / spread * hazard
    matched_variance = variance - variance**2 / spread**2 * hazard * (hazard - z)
    precision = 1 / matched_variance - 1 / variance
    informs = precision > LEAST_PRECISION
    precision = np.where(informs, precision, 1.0)
    return (matched_mean / matched_variance - mean / variance) / precision, 1 / precision, informs


def _regression(
    mean: Floats, covariance: Floats, seen: NDArray[np.int64], observed: Floats, variances: Floats, level: float
) -> Posterior:
    """Exact regression on observations at `seen`, around prior mean and level."""
    factor = cho_factor(covariance[np.ix_(seen, seen)] + np.diag(variances), lower=True)
    cross = covariance[seen]  # (k, n)
    weights = cho_solve(factor, cross)
    updated: Floats = covariance - cross.T @ weights
    variance = np.maximum(np.diag(updated), LEAST_VARIANCE)
    return Posterior(mean + level + (observed - mean[seen] - level) @ weights, variance, updated)


def expected_improvement(mean: Floats, deviation: Floats, best: float, *, least: float = 0.0) -> Floats:
    """Expected improvement of a cost over the best so far, (n,) (Mockus; Jones et al. 1998, equation 15).

    mean, deviation: (n,), of what is believed; least: deviation that z is told in where it is less."""
    z = (best - mean) / np.maximum(deviation, least)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    improvement: Floats = deviation * (z * ndtr(z) + density)
    return improvement


def completion(candidates: Configurations, covariance: Floats, runs: TrialRuns, params: SurrogateParams) -> Floats:
    """Chance that a run completes, (n,): what other applications say, then the votes of runs alike.

    A run's vote counts by its squared correlation with a candidate; what other applications say counts as eight."""
    before = expit(np.array(params.completion) @ _completion_axes(candidates))
    deviation = np.sqrt(np.diag(covariance))
    likeness = np.maximum(covariance[:, runs.candidate] / np.outer(deviation, deviation[runs.candidate]), 0) ** 2
    chance: Floats = (PRIOR_VOTES * before + likeness @ runs.is_completed) / (PRIOR_VOTES + likeness.sum(1))
    return chance


def _completion_axes(candidates: Configurations) -> Floats:
    """A constant and the logarithms that completion depends on, (4, n)."""
    axes = (candidates.nodes, candidates.memory_gb, candidates.vcpu)
    return np.stack([np.ones(len(candidates)), *(np.log(axis) for axis in axes)])


def in_time(belief: Posterior, candidates: Configurations, max_runtime_s: float, noise: float) -> Floats:
    """Chance that a completed run takes at most max_runtime_s, (n,)."""
    log_runtime = belief.mean - np.log(candidates.rate_per_h / SECONDS_PER_HOUR)
    chance: Floats = ndtr((np.log(max_runtime_s) - log_runtime) / np.sqrt(belief.variance + noise))
    return chance


def learned(
    examples: Sequence[tuple[Configurations, TrialRuns]], *, prior_precision: float = 30.0, n_steps: int = 40
) -> SurrogateParams:
    """Parameters of greatest posterior density on jobs of other applications.

    examples: of each job its candidates, and the runs on them. Prior: normal on the logarithms of all kernel parameters
    around the fixed ones; completion: logistic regression with scikit-learn's penalty. Failed runs tell of completion
    alone."""
    start = np.log([*FIXED.weights, *FIXED.scales, LEAST_NOISE])
    completed = [
        (candidates.subset(runs.candidate[runs.is_completed]), runs.log_cost[runs.is_completed])
        for candidates, runs in examples
    ]

    def unpacked(point: Floats) -> SurrogateParams:
        values = [float(value) for value in np.exp(point)]
        n = len(FIXED.weights)
        return SurrogateParams(tuple(values[:n]), tuple(values[n:-1]), values[-1])

    def loss(point: Floats) -> float:
        params = unpacked(point)
        total = prior_precision / 2 * float(((point - start) ** 2).sum())
        for candidates, log_cost in completed:
            among = kernel(candidates, params) + LEVEL + params.noise * np.eye(len(candidates))
            lower = np.linalg.cholesky(among)
            whitened = np.linalg.solve(lower, log_cost - log_cost.mean())
            total += 0.5 * float(whitened @ whitened) + float(np.log(np.diag(lower)).sum())
        return total

    solved = optimize.minimize(loss, start, method="L-BFGS-B", options={"maxiter": n_steps})
    params = unpacked(solved.x)
    return replace(params, noise=max(params.noise, LEAST_NOISE), completion=_learned_completion(examples))


def _learned_completion(examples: Sequence[tuple[Configurations, TrialRuns]]) -> tuple[float, ...]:
    is_completed = np.concatenate([runs.is_completed for _, runs in examples])
    if is_completed.all() or not is_completed.any():
        return FIXED.completion
    # a second that a proposal need not pay
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped, unused-ignore]

    axes = np.concatenate([_completion_axes(candidates).T[runs.candidate, 1:] for candidates, runs in examples])
    fitted = LogisticRegression().fit(axes, is_completed)
    return (float(fitted.intercept_[0]), *(float(slope) for slope in fitted.coef_[0]))
