"""Irregular samples on a regular grid, gaps as missing samples, and runs cut where too much is missing.

The interval of a run is the median of its spacings. Spacings near whole intervals leave the samples as they are; a
spacing of several intervals stands for samples that were missed, which become rows without values. If a fifth of the
spacings are that long, the interval itself is long (its 90 % quantile), and the run is resampled. A resampled value is
the mean over its interval, each sample holding for the time since the one before; where less than half of an interval
was measured it is missing. A gap of more than ten intervals cuts the run."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.reading_params import RegularParams
from tasks.workloads.telemetry import FloatArray

LONG = 1.5  # intervals: a longer spacing may hide a missed sample
LONG_QUANTILE = 0.9
JITTER = 0.25  # of an interval: spacings so close to whole intervals are regular
IRREGULAR_SHARE = 0.05  # of the spacings: more that are not regular, and the run is resampled
MIXED_SHARE = 0.2  # of the spacings: more long ones, and the interval itself is long
LEAST_COVERED = 0.5  # of an interval: a resampled value of which less was measured is missing
EDGE = 1e-9  # of an interval, against rounding where a grid ends


@dataclass(frozen=True)
class Grid:
    """Samples at a regular spacing.

    at_s: (n,), rising; values: (n, k); n_missed: rows that stand for samples that were missed."""

    at_s: FloatArray
    values: FloatArray
    interval_s: float | None
    n_missed: int
    is_resampled: bool


def nominal_interval(at_s: FloatArray, params: RegularParams) -> float | None:
    """Seconds between samples as they were meant; None for a single sample. at_s: (n,), strictly rising."""
    if params.interval_s:
        return params.interval_s
    if len(at_s) < 2:
        return None
    spacing = np.diff(at_s)
    median = float(np.median(spacing))
    if _is_mixed(spacing, median):
        return float(np.quantile(spacing, LONG_QUANTILE))
    return median


def cut_at_gaps(at_s: FloatArray, interval_s: float | None, params: RegularParams) -> list[slice]:
    """The pieces of a run between gaps of more than max_gap_intervals, in order. at_s: (n,), strictly rising."""
    if interval_s is None or len(at_s) < 2:
        return [slice(0, len(at_s))]
    spacing = np.diff(at_s)
    usual_s = max(interval_s, float(np.median(spacing)))  # a shorter interval may have been asked for
    cuts = np.flatnonzero(spacing > (params.max_gap_intervals + 0.5) * usual_s) + 1
    edges = [0, *cuts.tolist(), len(at_s)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def to_grid(at_s: FloatArray, values: FloatArray, interval_s: float | None) -> Grid:
    """One piece of a run, without gaps that would cut it, at a regular spacing.

    at_s: (n,), strictly rising seconds; values: (n, k), NaN: missing. Left alone are samples whose spacings are near
    whole intervals, but for a share of IRREGULAR_SHARE; their times stay as measured."""
    if interval_s is None or len(at_s) < 2:
        return Grid(at_s, values, interval_s, 0, is_resampled=False)
    steps = np.diff(at_s) / interval_s
    whole = np.maximum(1, np.rint(steps)).astype(np.int64)
    is_off = np.abs(steps - whole) > JITTER
    is_mixed = (steps > LONG).mean() > MIXED_SHARE
    if is_off.mean() > IRREGULAR_SHARE or is_mixed:
        return _resampled(at_s, values, interval_s)
    return _with_missed(at_s, values, interval_s, np.where(is_off, 1, whole))


def _is_mixed(spacing: FloatArray, median: float) -> bool:
    return bool((spacing > LONG * median).mean() > MIXED_SHARE)


def _with_missed(at_s: FloatArray, values: FloatArray, interval_s: float, whole: NDArray[np.int64]) -> Grid:
    row_of = np.concatenate([[0], np.cumsum(whole)])
    n_rows = int(row_of[-1]) + 1
    if n_rows == len(at_s):
        return Grid(at_s, values, interval_s, 0, is_resampled=False)
    filled = np.full((n_rows, values.shape[1]), np.nan)
    filled[row_of] = values
    times = np.interp(np.arange(n_rows), row_of, at_s)
    return Grid(times, filled, interval_s, n_rows - len(at_s), is_resampled=False)


def _resampled(at_s: FloatArray, values: FloatArray, interval_s: float) -> Grid:
    """Means over intervals that end at at_s[0], at_s[0] + interval_s, …; each sample holds since the one before."""
    edges = np.concatenate([[at_s[0] - interval_s], at_s])
    held_s = np.diff(edges)
    n_rows = int(np.floor((at_s[-1] - at_s[0]) / interval_s + EDGE)) + 1
    grid = at_s[0] + interval_s * np.arange(-1, n_rows)
    resampled = np.empty((n_rows, values.shape[1]))
    for column in range(values.shape[1]):
        one = values[:, column]
        is_known = ~np.isnan(one)
        known_s = _integral(edges, np.where(is_known, held_s, 0.0), grid)
        area = _integral(edges, np.where(is_known, one, 0.0) * held_s, grid)
        is_covered = known_s >= LEAST_COVERED * interval_s
        resampled[:, column] = np.where(is_covered, area / np.where(is_covered, known_s, 1.0), np.nan)
    is_missed = np.isnan(resampled).all(axis=1)
    return Grid(grid[1:], resampled, interval_s, int(is_missed.sum()), is_resampled=True)


def _integral(edges: FloatArray, parts: FloatArray, grid: FloatArray) -> FloatArray:
    """The integral over each interval of the grid of a function that is constant between the edges."""
    total = np.concatenate([[0.0], np.cumsum(parts)])
    return np.asarray(np.diff(np.interp(grid, edges, total)))
