"""Spearman's correlation with an interval over groups: runs of one group are no independent evidence."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from tasks.jobs.distribution import Floats
from tasks.jobs.scores import (
    CONFIDENCE,
    RESAMPLES,
)

CELLS = 4_000_000  # resamples times groups drawn together


@dataclass(frozen=True)
class RankCorrelation:
    """value: mean of the correlations, weighted; low, high: its interval over groups; n_runs, n_groups behind it."""

    value: float | None
    low: float | None
    high: float | None
    n_runs: int
    n_groups: int
    reason: str | None = None


def rank_correlation(
    pairs: list[tuple[Floats, Floats, float]],
    groups: Any,
    rng: np.random.Generator,
    *,
    n_resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> RankCorrelation:
    """Weighted mean of Spearman's rho over pairs of columns, with a percentile interval from drawing groups.

    pairs: (x, y, weight), x and y (n,), runs where either is NaN left out of that pair; groups: (n,). Ranks (ties:
    mean) are taken once, over all runs, and drawn with their groups. A pair whose x or y is constant is left out, its
    weight with it. Source: Spearman 1904; Efron & Tibshirani 1993, 13.3 (groups drawn whole)."""
    _, number = np.unique(np.asarray(groups), return_inverse=True)
    n_groups = int(number.max()) + 1 if len(number) else 0
    used = [found for x, y, weight in pairs if (found := _moments(x, y, weight, number, n_groups)) is not None]
    if not used:
        return RankCorrelation(None, None, None, 0, 0, "nothing that varies and is known")
    has_runs = np.any([moments[:, 0] > 0 for moments, _ in used], axis=0)
    used = [(moments[has_runs], weight) for moments, weight in used]
    n_runs, n_used = int(max(moments[:, 0].sum() for moments, _ in used)), int(has_runs.sum())
    value = float(_weighted([(moments.sum(axis=0)[None], weight) for moments, weight in used])[0])
    if n_used < 2:
        return RankCorrelation(value, None, None, n_runs, n_used, "one group: nothing to draw from")
    drawn = _resampled(used, n_used, rng, n_resamples)
    low, high = np.nanquantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return RankCorrelation(value, float(low), float(high), n_runs, n_used)


def _moments(x: Any, y: Any, weight: float, number: Any, n_groups: int) -> tuple[Floats, float] | None:
    """Sums over the runs of each group of 1, u, v, u², v², u v of centred ranks u, v: (n_groups, 6)."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    is_known = ~(np.isnan(first) | np.isnan(second))
    first, second, of_group = first[is_known], second[is_known], number[is_known]
    if weight <= 0 or not len(first) or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    u, v = (2 * rankdata(values) / len(values) - 1 for values in (first, second))
    columns = (np.ones(len(u)), u, v, u * u, v * v, u * v)
    return np.stack([np.bincount(of_group, weights=column, minlength=n_groups) for column in columns], axis=1), weight


def _resampled(used: list[tuple[Floats, float]], n_groups: int, rng: np.random.Generator, n_resamples: int) -> Floats:
    step, drawn = max(1, CELLS // n_groups), []
    for first in range(0, n_resamples, step):
        n = min(step, n_resamples - first)
        counts = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=n).astype(np.float64)  # (n, n_groups)
        drawn.append(_weighted([(counts @ moments, weight) for moments, weight in used]))
    return np.concatenate(drawn)


def _weighted(sums: list[tuple[Floats, float]]) -> Floats:
    """Weighted mean of the correlations; sums: (m, 6) each, returns (m,), NaN where none is defined."""
    correlations = np.stack([_correlation(moments) for moments, _ in sums])  # (pairs, m)
    weights = np.where(np.isnan(correlations), 0.0, np.array([weight for _, weight in sums])[:, None])
    total = weights.sum(axis=0)
    mean: Floats = np.where(
        total > 0, (weights * np.nan_to_num(correlations)).sum(axis=0) / np.where(total > 0, total, 1), np.nan
    )
    return mean


def _correlation(moments: Floats) -> Floats:
    """Pearson's of the ranks: (n sum uv - sum u sum v) / sqrt((n sum u² - (sum u)²) (n sum v² - (sum v)²))."""
    n, u, v, uu, vv, uv = moments.T
    spread = (n * uu - u * u) * (n * vv - v * v)
    rounding = 1e-12
    is_defined = spread > rounding
    correlation: Floats = np.where(is_defined, (n * uv - u * v) / np.sqrt(np.where(is_defined, spread, 1.0)), np.nan)
    return correlation
