"""Predicted against actual runtimes of many runs together: Kolmogorov–Smirnov distances and quantiles (Figure 8)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.jobs.distribution import Floats, Predicted, checked_times

MIN_RUNS = 20  # of a group: the distance of fewer runs is mostly luck
MOST_POINTS = 200  # of a group where cdfs are compared
DRAWS = 100_000  # quantiles that stand for all predictions together
PERCENTILES = tuple(range(1, 100))
GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class GroupDistance:
    """value: mean distance over n_groups of n_runs; by_group: (n_groups,) in the order of `groups`.

    n_small: groups left out since they have too few runs."""

    value: float | None
    n_groups: int
    n_runs: int
    n_small: int
    groups: Any
    by_group: Floats
    reason: str | None = None


@dataclass(frozen=True)
class Pooled:
    """All runs together. ks: distance of the mean predicted cdf from the actual one; table: one row a percentile.

    mae_s: mean over the percentiles of |predicted - actual|, in seconds."""

    ks: float | None
    percentiles: tuple[int, ...]
    predicted_s: Floats
    actual_s: Floats
    error_s: Floats
    mae_s: float | None
    n: int
    reason: str | None = None


def ks_by_group(
    predicted: Predicted, runtime_s: Any, groups: Any, *, min_runs: int = MIN_RUNS, most_points: int = MOST_POINTS
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
        return GroupDistance(None, 0, 0, len(names), names[large], np.zeros(0), reason)
    n_runs, n_small = int(sizes[large].sum()), len(names) - len(large)
    return GroupDistance(float(distances.mean()), len(large), n_runs, n_small, names[large], distances)


def _ks(predicted: Predicted, times: Floats, rows: Any, most_points: int) -> float:
    """Compared at and just below each runtime: between them only the predicted cdf moves, and upwards."""
    actual = np.sort(times[rows])
    points = np.unique(actual)
    if len(points) > most_points:
        points = points[np.linspace(0, len(points) - 1, most_points).round().astype(int)]
    part, asked = predicted.rows(rows), np.broadcast_to(points, (len(rows), len(points)))
    at, below = part.cdf(asked).mean(axis=0), part.cdf_below(asked).mean(axis=0)
    n = len(actual)
    actual_at = np.searchsorted(actual, points, side="right") / n
    actual_below = np.searchsorted(actual, points, side="left") / n
    return float(max(np.abs(at - actual_at).max(), np.abs(below - actual_below).max()))


def pooled_quantiles(predicted: Predicted, *, n_draws: int = DRAWS) -> Floats:
    """About n_draws seconds, ascending, spread like all predictions together: the same number from each instance.

    Instance i gives its quantiles at (k + frac(i × golden ratio)) / m: no draw, and even over instances."""
    m = max(1, -(-n_draws // predicted.n))
    shift = np.modf((np.arange(predicted.n) + 0.5) * GOLDEN)[0]
    levels = (np.arange(m) + np.clip(shift, 1e-9, 1 - 1e-9)[:, None]) / m  # (n, m)
    return np.sort(predicted.quantile(levels).ravel())


def compare_pooled(predicted: Predicted, runtime_s: Any, *, n_draws: int = DRAWS) -> Pooled:
    """Pooled distance, quantile–quantile table and its mean absolute error; runtime_s: (n,). Source: Zhu et al., 5.2.

    It rewards ignoring the job: predicting the same distribution of all runs for each of them scores 0. The predicted
    cdf is that of `pooled_quantiles`, which adds at most 1 / n_draws plus the unevenness of its levels."""
    if predicted.n == 0:
        none = np.zeros(0)
        return Pooled(None, PERCENTILES, none, none, none, None, 0, "no runs to score")
    actual = np.sort(checked_times("runtime_s", runtime_s, predicted.n))
    pooled = pooled_quantiles(predicted, n_draws=n_draws)
    levels = np.asarray(PERCENTILES) / 100
    predicted_s, actual_s = (np.quantile(found, levels, method="inverted_cdf") for found in (pooled, actual))
    error_s = np.abs(predicted_s - actual_s)
    ks = _two_sample(pooled, actual)
    return Pooled(ks, PERCENTILES, predicted_s, actual_s, error_s, float(error_s.mean()), predicted.n)


def _two_sample(one: Floats, other: Floats) -> float:
    """Largest difference of two empirical cdfs; both ascending."""
    points = np.concatenate([one, other])
    at_one = np.searchsorted(one, points, side="right") / len(one)
    at_other = np.searchsorted(other, points, side="right") / len(other)
    return float(np.abs(at_one - at_other).max())
