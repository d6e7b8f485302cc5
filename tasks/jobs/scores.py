"""How good predicted distributions are: scores of runs, coverage, distances of groups, and what is beyond luck."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.distribution import Empirical, Floats

LEVEL = 0.9
CALIBRATION_LEVELS = np.arange(1, 20) / 20  # 0.05, 0.10 ... 0.95


def wilson(k: int, n: int, confidence: float) -> tuple[float, float]:
    """The interval of a share k of n (Wilson 1927); n at least 1."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    centre, half = k + z * z / 2, z * (k * (n - k) / n + z * z / 4) ** 0.5
    return max(0.0, (centre - half) / (n + z * z)), min(1.0, (centre + half) / (n + z * z))


def coverage_of(predicted: Empirical, runtime_s: Floats) -> tuple[float, float]:
    """Share of the runs, (n,), inside the central interval that should hold LEVEL of them, ends included, and its
    mean width in seconds: of two predictions that cover alike, the narrower is better."""
    low, high = predicted.quantiles([(1 - LEVEL) / 2, (1 + LEVEL) / 2]).T
    return float(((runtime_s >= low) & (runtime_s <= high)).mean()), float((high - low).mean())


def pit_values(predicted: Empirical, runtime_s: Floats, rng: np.random.Generator) -> Floats:
    """Probability that was predicted to lie below each run: uniform if the predictions are calibrated; (n,).

    Where single values have a probability, a number drawn from [P(< x), P(<= x)]; rng is used only there.
    Source: Dawid 1984; Czado, Gneiting & Held 2009 for the draw."""
    low, high = predicted.cdf_below(runtime_s), predicted.cdf(runtime_s)
    is_tied = high > low
    values = high.copy()
    values[is_tied] = low[is_tied] + rng.uniform(size=int(is_tied.sum())) * (high - low)[is_tied]
    return values


def calibration_error(pit: Floats) -> float:
    """How far PIT values, (n,), are from uniform: mean over the levels of |share of values <= level - level|.

    n uniform values have an error of about 0.3 / sqrt(n)."""
    shares = np.searchsorted(np.sort(pit), CALIBRATION_LEVELS, side="right") / len(pit)
    return float(np.abs(shares - CALIBRATION_LEVELS).mean())


MIN_RUNS = 20  # of a group: the distance of fewer runs is mostly luck
MOST_POINTS = 200  # of a group where cdfs are compared
DRAWS = 100_000  # quantiles that stand for all predictions together
GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class GroupDistance:
    """value: mean distance over the n_groups that have enough runs; None, with a reason, without any."""

    value: float | None
    n_groups: int
    reason: str | None = None


def ks_by_group(predicted: Empirical, runtime_s: Floats, groups: Any) -> GroupDistance:
    """Distance within each group of at least MIN_RUNS runs, averaged over groups.

    max over t of |mean of the cdfs predicted for the group's runs - their empirical cdf|. runtime_s, groups: (n,).
    With more than MOST_POINTS distinct runtimes the cdfs are compared at that many of them, which can miss at most
    1 / MOST_POINTS of the distance."""
    by_group = pd.Series(np.arange(predicted.n)).groupby(np.asarray(groups)).indices
    distances = [_ks(predicted, runtime_s, rows) for rows in by_group.values() if len(rows) >= MIN_RUNS]
    if not distances:
        return GroupDistance(None, 0, f"none of {len(by_group)} groups has {MIN_RUNS} runs")
    return GroupDistance(float(np.mean(distances)), len(distances))


def _ks(predicted: Empirical, times: Floats, rows: Any) -> float:
    """Compared at and just below each runtime: between them only the predicted cdf moves, and upwards."""
    actual = np.sort(times[rows])
    points = np.unique(actual)
    if len(points) > MOST_POINTS:
        points = points[np.linspace(0, len(points) - 1, MOST_POINTS).round().astype(int)]
    part, grid = predicted.rows(rows), np.broadcast_to(points, (len(rows), len(points)))
    at, below = part.cdf(grid).mean(axis=0), part.cdf_below(grid).mean(axis=0)
    n = len(actual)
    actual_at = np.searchsorted(actual, points, side="right") / n
    actual_below = np.searchsorted(actual, points, side="left") / n
    return float(max(np.abs(at - actual_at).max(), np.abs(below - actual_below).max()))


def pooled_quantiles(predicted: Empirical) -> Floats:
    """About DRAWS seconds, ascending, spread like all predictions together: the same number from each instance.

    Instance i gives its quantiles at (k + frac(i × golden ratio)) / m: no draw, and even over instances."""
    m = max(1, -(-DRAWS // predicted.n))
    shift = np.modf((np.arange(predicted.n) + 0.5) * GOLDEN)[0]
    levels = (np.arange(m) + np.clip(shift, 1e-9, 1 - 1e-9)[:, None]) / m  # (n, m)
    return np.sort(predicted.quantile(levels).ravel())


def ks_pooled(predicted: Empirical, runtime_s: Floats) -> float:
    """All runs together, (n,): the distance of the mean predicted cdf from the actual one. Source: Zhu et al., 5.2.

    It rewards ignoring the job: predicting the same distribution of all runs for each of them scores 0. The predicted
    cdf is that of `pooled_quantiles`, which adds at most 1 / DRAWS plus the unevenness of its levels."""
    from scipy.stats import ks_2samp  # not above: half a second that pages need not pay

    return float(ks_2samp(pooled_quantiles(predicted), runtime_s, method="asymp").statistic)


RESAMPLES = 2000
CONFIDENCE = 0.95
CELLS = 4_000_000  # resamples times groups drawn together


Figures = dict[str, Any]
ENDS = {"": "value", "_low": "low", "_high": "high"}  # of a key: what of a difference stands there


def known(values: Mapping[str, float | None], reason: str | None = None) -> Figures:
    """These figures by key; None for what is missing or not finite, with the reason beside it."""
    figures: Figures = {}
    for key, value in values.items():
        is_known = value is not None and bool(np.isfinite(value))
        figures |= {key: value} if is_known else {key: None, f"{key}.reason": reason or "not a number"}
    return figures


@dataclass(frozen=True)
class Difference:
    """value: mean of one minus other over n_runs of n_groups; low, high: its interval at CONFIDENCE."""

    value: float | None
    low: float | None
    high: float | None
    n_runs: int
    n_groups: int
    reason: str | None = None

    def figures(self, key: str, name: str) -> Figures:
        """Value and ends, `<key><end>.<name>` each."""
        return known({f"{key}{end}.{name}": getattr(self, field) for end, field in ENDS.items()}, self.reason)


def bootstrap_difference(scores: Any, others: Any, groups: Any, rng: np.random.Generator) -> Difference:
    """Mean difference of two scores of the same runs, with a percentile interval; scores, others, groups: (n,).

    Groups are drawn with replacement, with all their runs: runs of one group are no independent evidence. Runs where
    either score is NaN are left out. No interval for fewer than two groups. Source: Efron & Tibshirani 1993, 13.3."""
    difference = np.asarray(scores, dtype=np.float64) - np.asarray(others, dtype=np.float64)
    is_there = ~np.isnan(difference)
    difference = difference[is_there]
    if not len(difference):
        return Difference(None, None, None, 0, 0, "no run has both scores")
    number = pd.factorize(np.asarray(groups)[is_there], sort=True)[0]
    sums, sizes = np.bincount(number, weights=difference), np.bincount(number).astype(np.float64)
    value, n_runs, n_groups = float(difference.mean()), len(difference), len(sizes)
    if n_groups < 2:
        return Difference(value, None, None, n_runs, n_groups, "one group: nothing to draw from")
    step, means = max(1, CELLS // n_groups), np.empty(RESAMPLES)
    for first in range(0, RESAMPLES, step):
        drawn = rng.integers(n_groups, size=(min(step, RESAMPLES - first), n_groups))
        means[first : first + step] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Difference(value, float(low), float(high), n_runs, n_groups)
