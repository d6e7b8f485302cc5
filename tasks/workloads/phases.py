"""Phases of a counter and their summaries: mean, median, variance, Dickey–Fuller statistic, distribution (CWD, V-C).

The distribution is kept as four quantiles beside the median, on the normalised scale: they exist for a phase of one
sample, have the same number for every phase, and the distance between two sets of quantiles is that between the
distributions (Wasserstein); a histogram of five samples is mostly empty."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.phase_params import PhaseParams
from tasks.workloads.telemetry import FloatArray

QUANTILES = (0.1, 0.25, 0.75, 0.9)
STATISTICS = ("mean", "median", "variance", "adf", *(f"q{round(100 * q)}" for q in QUANTILES))
ADF = STATISTICS.index("adf")
UNDETERMINED = 0.0  # of the Dickey-Fuller statistic: between a random walk (about -1.5) and an explosion (above 0)
LEAST_DEVIATION = 1e-6  # relative to the level: below it rounding would be called stationary
LEAST_RESIDUAL = 1e-12  # of a regression, as a share of the squares that it explains: below it is a perfect fit
ADF_LIMIT = 50.0  # beyond it the statistic says no more, and would outweigh all else in a distance

Bounds = NDArray[np.int64]


def bounds_of(changepoints: Sequence[int] | NDArray[np.int64], n_samples: int) -> Bounds:
    """Where phases begin, and the end: 0 = t_0 < t_1 < … < t_(M+1) = n_samples (III-A1).

    Raises ValueError for a change point outside of 1 to n_samples − 1 or no sample."""
    inner = np.unique(np.asarray(changepoints, dtype=np.int64))
    if n_samples < 1:
        raise ValueError("a run without a sample has no phase")
    if len(inner) and (inner[0] < 1 or inner[-1] >= n_samples):
        raise ValueError(f"change points {inner.tolist()} of {n_samples} samples: expected 1 to {n_samples - 1}")
    return np.concatenate([[0], inner, [n_samples]]).astype(np.int64)


def summarise_phases(series: FloatArray, bounds: Bounds, params: PhaseParams) -> FloatArray:
    """One row of STATISTICS for each phase of a counter: (n_phases, n_statistics).

    series: (n_samples,), normalised; NaN does not count, and a phase of nothing else has only zeros."""
    pieces = [series[start:end] for start, end in pairwise(bounds)]
    return np.array([_summary(piece[np.isfinite(piece)], params) for piece in pieces])


def _summary(phase: FloatArray, params: PhaseParams) -> list[float]:
    if len(phase) == 0:
        return [0.0] * len(STATISTICS)
    adf = dickey_fuller(phase, params)
    quantiles = np.quantile(phase, [0.5, *QUANTILES])
    return [phase.mean(), quantiles[0], phase.var(), UNDETERMINED if adf is None else adf, *quantiles[1:]]


def dickey_fuller(phase: FloatArray, params: PhaseParams) -> float | None:
    """The augmented Dickey–Fuller statistic (constant, no trend) of a phase; None where it is undetermined.

    Undetermined: fewer than adf_min_samples, constant up to LEAST_DEVIATION, or a regression that fits
    perfectly (a ramp, a single early spike). Cut at ± ADF_LIMIT."""
    if len(phase) < max(params.adf_min_samples, 2 * params.adf_lags + 5):
        return None
    steps = np.diff(phase)
    if phase.std() <= LEAST_DEVIATION * max(1, abs(phase.mean())) or steps.std() <= LEAST_DEVIATION * phase.std():
        return None
    design, answer = _design(phase, params.adf_lags), steps[params.adf_lags :]
    if np.linalg.matrix_rank(design) < params.adf_lags + 2:
        return None
    residual = answer - design @ np.linalg.lstsq(design, answer)[0]
    if (residual**2).sum() <= LEAST_RESIDUAL * (answer**2).sum():
        return None
    from statsmodels.tsa.stattools import adfuller

    statistic = adfuller(phase, maxlag=params.adf_lags, autolag=None, result_object=False)[0]
    return float(np.clip(statistic, -ADF_LIMIT, ADF_LIMIT)) if np.isfinite(statistic) else None


def _design(phase: FloatArray, lags: int) -> FloatArray:
    """Regressors of the Dickey–Fuller regression: level before, lagged differences, constant."""
    steps = np.diff(phase)
    rows = len(steps) - lags
    lagged = [steps[lags - lag : lags - lag + rows] for lag in range(1, lags + 1)]
    return np.column_stack([phase[lags : lags + rows], *lagged, np.ones(rows)])


def shared_bounds(bounds: Sequence[Bounds], params: PhaseParams) -> Bounds:
    """Phases of the workload from those of its counters: where at least vote_share of the varying ones change together.

    V-D compares phases of workloads, V-B finds those of counters; this is the rule between them. A counter votes for
    each of its change points; votes within vote_samples count together; the sample with most votes (of equal ones
    the first) becomes a change point, and takes the votes near it away. Raises ValueError for no counter."""
    if not bounds:
        raise ValueError("no counter, hence no phase; expected at least one")
    n_samples = int(bounds[0][-1])
    inner = [one[1:-1] for one in bounds]
    n_needed = params.vote_share * max(1, sum(len(one) > 0 for one in inner))
    votes: NDArray[np.bool_] = np.zeros((len(inner), n_samples), dtype=np.bool_)
    for counter, points in enumerate(inner):
        votes[counter, points] = True
    found: list[int] = []
    while True:
        near, there = _within_reach(votes, params.vote_samples).sum(axis=0), votes.sum(axis=0)
        best = int((near * (len(votes) + 1) + there).argmax())  # of equal ones that with most votes of its own
        if near[best] == 0 or near[best] < n_needed:
            return bounds_of(sorted(found), n_samples)
        found.append(best)
        votes[:, max(0, best - params.vote_samples) : best + params.vote_samples + 1] = False


def _within_reach(votes: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    """Whether a counter has a vote at most `reach` samples away; a change point is never at sample 0."""
    padded = np.pad(votes, [(0, 0), (reach, reach)])
    near = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1, axis=1).any(axis=2)
    return np.asarray(near & (np.arange(votes.shape[1]) > 0))
