"""Is one prediction better than another on these runs, or by luck: a paired bootstrap over groups."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.jobs.distribution import Floats

RESAMPLES = 2000
CONFIDENCE = 0.95
CELLS = 4_000_000  # resamples times groups drawn together


@dataclass(frozen=True)
class Difference:
    """value: mean of one minus other over runs; low, high: its interval at `confidence`.

    share_below: of the resamples, how many are below 0."""

    value: float | None
    low: float | None
    high: float | None
    share_below: float | None
    confidence: float
    n_runs: int
    n_groups: int
    n_left_out: int = 0
    reason: str | None = None


def bootstrap_difference(
    one: Any,
    other: Any,
    groups: Any,
    rng: np.random.Generator,
    *,
    n_resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Difference:
    """Mean difference of two scores of the same runs, with a percentile interval; one, other, groups: (n,).

    Groups are drawn with replacement, with all their runs: runs of one group are no independent evidence. Runs where
    either score is NaN are left out. No interval for fewer than two groups. Source: Efron & Tibshirani 1993, 13.3.
    Raises ValueError for shapes that differ and infinite scores."""
    first, second, keys = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64), np.asarray(groups)
    if first.ndim != 1 or not first.shape == second.shape == keys.shape:
        raise ValueError(f"scores: shapes {first.shape}, {second.shape}, {keys.shape}; expected (n,) for all")
    if np.isinf(first).any() or np.isinf(second).any():
        raise ValueError("scores: infinite values; expected finite ones, such as log-scores with a floor")
    difference = first - second
    is_there = ~np.isnan(difference)
    difference, keys = difference[is_there], keys[is_there]
    n_left_out, n_runs = int((~is_there).sum()), len(difference)
    if not n_runs:
        return Difference(None, None, None, None, confidence, 0, 0, n_left_out, "no run has both scores")
    _, number = np.unique(keys, return_inverse=True)
    sums = np.bincount(number, weights=difference).astype(np.float64)
    sizes = np.bincount(number).astype(np.float64)
    value, n_groups = float(difference.mean()), len(sizes)
    if n_groups < 2:
        reason = "one group: nothing to draw from"
        return Difference(value, None, None, None, confidence, n_runs, n_groups, n_left_out, reason)
    means = _resampled(sums, sizes, rng, n_resamples)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    below = float((means < 0).mean())
    return Difference(value, float(low), float(high), below, confidence, n_runs, n_groups, n_left_out)


def _resampled(sums: Floats, sizes: Floats, rng: np.random.Generator, n_resamples: int) -> Floats:
    """Mean over the runs of the groups drawn, once for each resample: (n_resamples,)."""
    n_groups = len(sums)
    step = max(1, CELLS // n_groups)
    means = np.empty(n_resamples)
    for first in range(0, n_resamples, step):
        drawn = rng.integers(n_groups, size=(min(step, n_resamples - first), n_groups))
        means[first : first + step] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return means
