"""How well predicted changes agree with measured ones, beside "no change" and "the mean change of other jobs"."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest, spearmanr

from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.distribution import Floats
from tasks.jobs.scores import (
    Difference,
    bootstrap_difference,
)

MIN_CORRELATED = 3


@dataclass(frozen=True)
class Directions:
    """Of n pairs that have a direction, how many were foretold right, with the Wilson interval of the share.

    n_in_band: pairs left out since their log runtime changed by less than the dead band; n_undecided: of the n, those
    foretold to stay exactly alike, which count as wrong."""

    n: int
    n_right: int
    share: float | None
    low: float | None
    high: float | None
    n_in_band: int
    n_undecided: int


@dataclass(frozen=True)
class PairScore:
    """One change, over n pairs of n_groups jobs. mean_measured, mean_predicted: of the log runtime ratios.

    mae: mean absolute error of the log ratio, and of the same pairs for "no change" and for the mean change of other
    jobs (folds). versus_…: model less the other, below 0 where the model is better, with its interval over jobs.
    directions_mean_change: had each pair gone as the mean of other jobs. correlation (Pearson), rank_correlation
    (Spearman): None with a reason. n_unpredicted: pairs left out for want of a prediction."""

    n: int
    n_groups: int
    n_unpredicted: int
    mean_measured: float | None = None
    mean_predicted: float | None = None
    directions: Directions | None = None
    directions_mean_change: Directions | None = None
    mae: float | None = None
    mae_no_change: float | None = None
    mae_mean_change: float | None = None
    versus_no_change: Difference | None = None
    versus_mean_change: Difference | None = None
    correlation: float | None = None
    rank_correlation: float | None = None
    reason: str | None = None
    correlation_reason: str | None = None


def score_pairs(
    measured: Any, predicted: Any, groups: Any, params: WhatIfParams, rng: np.random.Generator
) -> PairScore:
    """Predicted beside measured log runtime ratios of the pairs of one change; measured, predicted, groups: (n,).

    Pairs whose prediction is NaN are left out and counted; no pair is a reason, not an error. Raises ValueError for
    shapes that differ or a measured change that is not finite."""
    real, told, keys = np.asarray(measured, dtype=float), np.asarray(predicted, dtype=float), np.asarray(groups)
    if real.ndim != 1 or not real.shape == told.shape == keys.shape:
        raise ValueError(f"pairs: shapes {real.shape}, {told.shape}, {keys.shape}; expected (n,) for all")
    if not np.isfinite(real).all():
        raise ValueError("measured: values that are not finite; expected log runtime ratios, as match_pairs gives them")
    is_there = np.isfinite(told)
    real, told, keys, n_unpredicted = real[is_there], told[is_there], keys[is_there], int((~is_there).sum())
    n, n_groups = len(real), len(np.unique(keys))
    if n == 0:
        return PairScore(0, 0, n_unpredicted, reason="no matched pair with a measured and a predicted change")
    usual = mean_of_others(real, keys, params, rng)
    pearson, spearman, why = _correlations(real, told)
    error, none, mean = np.abs(told - real), np.abs(real), np.abs(usual - real)
    resampling: dict[str, Any] = {"n_resamples": params.n_resamples, "confidence": params.confidence}
    return PairScore(
        n,
        n_groups,
        n_unpredicted,
        mean_measured=float(real.mean()),
        mean_predicted=float(told.mean()),
        directions=directions_of(real, told, params),
        directions_mean_change=directions_of(real, usual, params) if n_groups > 1 else None,
        mae=float(error.mean()),
        mae_no_change=float(none.mean()),
        mae_mean_change=float(mean.mean()) if n_groups > 1 else None,
        versus_no_change=bootstrap_difference(error, none, keys, rng, **resampling),
        versus_mean_change=bootstrap_difference(error, mean, keys, rng, **resampling),
        correlation=pearson,
        rank_correlation=spearman,
        reason="one job: no other to take a mean change from" if n_groups == 1 else None,
        correlation_reason=why,
    )


def directions_of(measured: Floats, predicted: Floats, params: WhatIfParams) -> Directions:
    """Share of right directions over the pairs that changed by at least params.dead_band; (n,) log ratios.

    The interval takes pairs as independent; those of one job are not quite. Source: Wilson 1927."""
    is_told = np.isfinite(predicted)
    has_direction = is_told & (np.abs(measured) >= params.dead_band) & (measured != 0)
    n_in_band = int((is_told & ~has_direction).sum())
    real, told = np.sign(measured[has_direction]), np.sign(predicted[has_direction])
    n, n_right, n_undecided = len(real), int((real == told).sum()), int((told == 0).sum())
    if n == 0:
        return Directions(0, 0, None, None, None, n_in_band, 0)
    interval = binomtest(n_right, n).proportion_ci(params.confidence, method="wilson")
    return Directions(n, n_right, n_right / n, float(interval.low), float(interval.high), n_in_band, n_undecided)


def mean_of_others(measured: Floats, groups: Any, params: WhatIfParams, rng: np.random.Generator) -> Floats:
    """For each pair the mean change over the pairs of the other folds' jobs: (n,); NaN if there is only one job.

    Whole jobs are dealt at random into params.n_folds folds, or as many as there are jobs."""
    _, number = np.unique(np.asarray(groups), return_inverse=True)
    n_groups = int(number.max(initial=-1)) + 1
    n_folds = min(params.n_folds, n_groups)
    if n_folds < 2:
        return np.full(len(measured), np.nan)
    fold = (rng.permutation(n_groups) % n_folds)[number]
    sums, sizes = np.bincount(fold, weights=measured, minlength=n_folds), np.bincount(fold, minlength=n_folds)
    means = (sums.sum() - sums) / (sizes.sum() - sizes)
    return np.asarray(means[fold])


def _correlations(real: Floats, told: Floats) -> tuple[float | None, float | None, str | None]:
    if len(real) < MIN_CORRELATED:
        return None, None, f"fewer than {MIN_CORRELATED} pairs"
    if np.ptp(told) == 0 or np.ptp(real) == 0:
        return None, None, f"all {'predicted' if np.ptp(told) == 0 else 'measured'} changes are alike"
    return float(np.corrcoef(real, told)[0, 1]), float(spearmanr(real, told).statistic), None
