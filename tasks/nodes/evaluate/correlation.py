"""Rank correlations of scores with application performance, with intervals over nodes."""

import numpy as np
from scipy.stats import rankdata

from tasks.nodes.type_tables import Floats

LEAST = 4  # pairs of values from which a correlation is told
CELLS = 4_000_000  # resamples times nodes drawn together


def spearman(one: Floats, others: Floats) -> Floats:
    """Spearman's correlation of one (n,) with each column of others (n, a), ties by mean rank: (a,).

    Over the rows where both are there; NaN for fewer than 4, and where either does not vary."""
    return np.array([_pair(one, other) for other in others.T])


def _pair(one: Floats, other: Floats) -> float:
    is_there = ~np.isnan(one) & ~np.isnan(other)
    if is_there.sum() < LEAST:
        return np.nan
    first, second = _centred(rankdata(one[is_there])), _centred(rankdata(other[is_there]))
    size = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / size if size else np.nan


def _centred(ranks: Floats) -> Floats:
    return np.asarray(ranks - ranks.mean())


def typical(correlations: Floats) -> float:
    """Median absolute value, of those that are known; NaN for none."""
    known = np.abs(correlations[~np.isnan(correlations)])
    return float(np.median(known)) if len(known) else np.nan


def signed_interval(
    one: Floats, others: Floats, n_resamples: int, confidence: float, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Median over the columns of others of the signed correlation, and its interval over resampled rows.

    Rows are drawn with replacement and keep the ranks that they have among all rows. NaN where nothing is known."""
    known = spearman(one, others)
    if np.isnan(known).all():
        return np.nan, np.nan, np.nan
    ranks = [_both_ranks(one, other) for other in others.T]
    n = len(one)
    step = max(1, CELLS // n)
    drawn = []
    for first in range(0, n_resamples, step):
        counts = rng.multinomial(n, np.full(n, 1 / n), size=min(step, n_resamples - first)).astype(np.float64)
        each = np.column_stack([_weighted(counts, pair) for pair in ranks])
        drawn.append(np.nanmedian(each, axis=1))
    low, high = np.nanquantile(np.concatenate(drawn), [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(np.nanmedian(known)), float(low), float(high)


def _both_ranks(one: Floats, other: Floats) -> tuple[Floats, Floats, Floats]:
    """Ranks of both among the rows where both are there, 0 elsewhere, and whether they are."""
    is_there = ~np.isnan(one) & ~np.isnan(other)
    ranks = np.zeros((2, len(one)))
    if is_there.any():
        ranks[0, is_there] = _centred(rankdata(one[is_there]))
        ranks[1, is_there] = _centred(rankdata(other[is_there]))
    return ranks[0], ranks[1], is_there.astype(np.float64)


def _weighted(counts: Floats, pair: tuple[Floats, Floats, Floats]) -> Floats:
    """Pearson's correlation of the ranks in each resample: (n_resamples,). counts: (n_resamples, n)."""
    first, second, is_there = pair
    total = counts @ is_there
    with np.errstate(divide="ignore", invalid="ignore"):
        means = (counts @ first) / total, (counts @ second) / total
        covariance = (counts @ (first * second)) / total - means[0] * means[1]
        variances = [(counts @ (x**2)) / total - mean**2 for x, mean in zip((first, second), means, strict=True)]
        return np.asarray(covariance / np.sqrt(variances[0] * variances[1]))
