"""How good predicted distributions are: scores of runs, coverage, distances of groups, and what is beyond luck."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from tasks.jobs.distribution import Empirical, Floats, checked_times

LEVEL = 0.9
CALIBRATION_LEVELS = np.arange(1, 20) / 20  # 0.05, 0.10 ... 0.95


def wilson(k: int, n: int, confidence: float) -> tuple[float, float]:
    """The interval of a share k of n (Wilson 1927); n at least 1."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    centre, half = k + z * z / 2, z * (k * (n - k) / n + z * z / 4) ** 0.5
    return max(0.0, (centre - half) / (n + z * z)), min(1.0, (centre + half) / (n + z * z))


def coverage_of(predicted: Empirical, runtime_s: Any, *, level: float = LEVEL) -> tuple[float, float]:
    """Share of the runs, (n,), inside the central interval that should hold `level` of them, ends included, and its
    mean width in seconds: of two predictions that cover alike, the narrower is better."""
    times = _runs(predicted, runtime_s)
    ends = predicted.quantile(np.broadcast_to([(1 - level) / 2, (1 + level) / 2], (predicted.n, 2)))
    share = float(((times >= ends[:, 0]) & (times <= ends[:, 1])).mean())
    return share, float((ends[:, 1] - ends[:, 0]).mean())


def pit_values(predicted: Empirical, runtime_s: Any, rng: np.random.Generator) -> Floats:
    """Probability that was predicted to lie below each run: uniform if the predictions are calibrated; (n,).

    Where single values have a probability, a number drawn from [P(< x), P(<= x)]; rng is used only there.
    Source: Dawid 1984; Czado, Gneiting & Held 2009 for the draw."""
    times = _runs(predicted, runtime_s)
    low, high = predicted.cdf_below(times), predicted.cdf(times)
    is_tied = high > low
    values = high.copy()
    values[is_tied] = low[is_tied] + rng.uniform(size=int(is_tied.sum())) * (high - low)[is_tied]
    return values


def calibration_error(pit: Floats) -> float:
    """How far PIT values, (n,), are from uniform: mean over the levels of |share of values <= level - level|.

    n uniform values have an error of about 0.3 / sqrt(n)."""
    shares = np.searchsorted(np.sort(pit), CALIBRATION_LEVELS, side="right") / len(pit)
    return float(np.abs(shares - CALIBRATION_LEVELS).mean())


def _runs(predicted: Empirical, runtime_s: Any) -> Floats:
    times = checked_times("runtime_s", runtime_s, predicted.n)
    if times.ndim != 1:
        raise ValueError(f"runtime_s: shape {times.shape}; expected ({predicted.n},), one run for each instance")
    return times


MIN_RUNS = 20  # of a group: the distance of fewer runs is mostly luck
MOST_POINTS = 200  # of a group where cdfs are compared
DRAWS = 100_000  # quantiles that stand for all predictions together
PERCENTILES = np.arange(1, 100) / 100
GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class GroupDistance:
    """value: mean distance over n_groups of n_runs that have enough runs."""

    value: float | None
    n_groups: int
    n_runs: int
    reason: str | None = None


def ks_by_group(
    predicted: Empirical, runtime_s: Any, groups: Any, *, min_runs: int = MIN_RUNS, most_points: int = MOST_POINTS
) -> GroupDistance:
    """Distance within each group of at least min_runs runs, averaged over groups.

    max over t of |mean of the cdfs predicted for the group's runs - their empirical cdf|. runtime_s, groups: (n,).
    With more than most_points distinct runtimes the cdfs are compared at that many of them, which can miss at most
    1 / most_points of the distance."""
    times = checked_times("runtime_s", runtime_s, predicted.n)
    names, number, sizes = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    if number.shape != times.shape:
        raise ValueError(f"groups: shape {number.shape}; expected {times.shape}, one for each run")
    order = np.argsort(number, kind="stable")
    ends = np.cumsum(sizes)
    large = np.flatnonzero(sizes >= min_runs)
    distances = np.array([_ks(predicted, times, order[ends[g] - sizes[g] : ends[g]], most_points) for g in large])
    if not len(large):
        reason = f"none of {len(names)} groups has {min_runs} runs"
        return GroupDistance(None, 0, 0, reason)
    return GroupDistance(float(distances.mean()), len(large), int(sizes[large].sum()))


def _ks(predicted: Empirical, times: Floats, rows: Any, most_points: int) -> float:
    """Compared at and just below each runtime: between them only the predicted cdf moves, and upwards."""
    actual = np.sort(times[rows])
    points = np.unique(actual)
    if len(points) > most_points:
        points = points[np.linspace(0, len(points) - 1, most_points).round().astype(int)]
    part, grid = predicted.rows(rows), np.broadcast_to(points, (len(rows), len(points)))
    at, below = part.cdf(grid).mean(axis=0), part.cdf_below(grid).mean(axis=0)
    n = len(actual)
    actual_at = np.searchsorted(actual, points, side="right") / n
    actual_below = np.searchsorted(actual, points, side="left") / n
    return float(max(np.abs(at - actual_at).max(), np.abs(below - actual_below).max()))


def pooled_quantiles(predicted: Empirical, *, n_draws: int = DRAWS) -> Floats:
    """About n_draws seconds, ascending, spread like all predictions together: the same number from each instance.

    Instance i gives its quantiles at (k + frac(i × golden ratio)) / m: no draw, and even over instances."""
    m = max(1, -(-n_draws // predicted.n))
    shift = np.modf((np.arange(predicted.n) + 0.5) * GOLDEN)[0]
    levels = (np.arange(m) + np.clip(shift, 1e-9, 1 - 1e-9)[:, None]) / m  # (n, m)
    return np.sort(predicted.quantile(levels).ravel())


def compare_pooled(predicted: Empirical, runtime_s: Any) -> tuple[float, float]:
    """All runs together, (n,): the distance of the mean predicted cdf from the actual one (KS), and the mean over the
    percentiles of |predicted - actual| in seconds. Source: Zhu et al., 5.2.

    It rewards ignoring the job: predicting the same distribution of all runs for each of them scores 0. The predicted
    cdf is that of `pooled_quantiles`, which adds at most 1 / DRAWS plus the unevenness of its levels."""
    from scipy.stats import ks_2samp  # not above: half a second that pages need not pay

    actual, pooled = _runs(predicted, runtime_s), pooled_quantiles(predicted)
    predicted_s, actual_s = (np.quantile(values, PERCENTILES, method="inverted_cdf") for values in (pooled, actual))
    distance = float(ks_2samp(pooled, actual, method="asymp").statistic)
    return distance, float(np.abs(predicted_s - actual_s).mean())


RESAMPLES = 2000
CONFIDENCE = 0.95
CELLS = 4_000_000  # resamples times groups drawn together


@dataclass(frozen=True)
class Difference:
    """value: mean of one minus other over runs; low, high: its interval at CONFIDENCE.

    share_below: of the resamples, how many are below 0."""

    value: float | None
    low: float | None
    high: float | None
    share_below: float | None
    n_runs: int
    n_groups: int
    n_left_out: int = 0
    reason: str | None = None


def bootstrap_difference(
    scores: Any,
    others: Any,
    groups: Any,
    rng: np.random.Generator,
    *,
    n_resamples: int = RESAMPLES,
) -> Difference:
    """Mean difference of two scores of the same runs, with a percentile interval; scores, others, groups: (n,).

    Groups are drawn with replacement, with all their runs: runs of one group are no independent evidence. Runs where
    either score is NaN are left out. No interval for fewer than two groups. Source: Efron & Tibshirani 1993, 13.3.
    Raises ValueError for shapes that differ and infinite scores."""
    first, second, keys = np.asarray(scores, dtype=np.float64), np.asarray(others, dtype=np.float64), np.asarray(groups)
    if first.ndim != 1 or not first.shape == second.shape == keys.shape:
        raise ValueError(f"scores: shapes {first.shape}, {second.shape}, {keys.shape}; expected (n,) for all")
    if np.isinf(first).any() or np.isinf(second).any():
        raise ValueError("scores: infinite values; expected finite ones, such as log-scores with a floor")
    difference = first - second
    is_there = ~np.isnan(difference)
    difference, keys = difference[is_there], keys[is_there]
    n_left_out, n_runs = int((~is_there).sum()), len(difference)
    if not n_runs:
        return Difference(None, None, None, None, 0, 0, n_left_out, "no run has both scores")
    _, number = np.unique(keys, return_inverse=True)
    sums = np.bincount(number, weights=difference).astype(np.float64)
    sizes = np.bincount(number).astype(np.float64)
    value, n_groups = float(difference.mean()), len(sizes)
    if n_groups < 2:
        reason = "one group: nothing to draw from"
        return Difference(value, None, None, None, n_runs, n_groups, n_left_out, reason)
    means = _resampled(sums, sizes, rng, n_resamples)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    below = float((means < 0).mean())
    return Difference(value, float(low), float(high), below, n_runs, n_groups, n_left_out)


def _resampled(sums: Floats, sizes: Floats, rng: np.random.Generator, n_resamples: int) -> Floats:
    """Mean over the runs of the groups drawn, once for each resample: (n_resamples,)."""
    n_groups = len(sums)
    step = max(1, CELLS // n_groups)
    means = np.empty(n_resamples)
    for first in range(0, n_resamples, step):
        drawn = rng.integers(n_groups, size=(min(step, n_resamples - first), n_groups))
        means[first : first + step] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return means
