"""Normalised runtimes and their distributions: ratio and delta, where the median comes from, bins, PMFs, quantiles."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, model_validator

from tasks.errors import BadInput
from tasks.jobs.params import BinParams, Kind
from tasks.jobs.predict.peers import earlier_runs
from tasks.params import Params

RATIO_HIGH, DELTA_HIGH_S = 10.0, 900.0  # the paper's ends of the bins: outliers lie beyond (footnote 3)
TAIL_SHARE = 0.01  # of the runs lie above the upper end before it is rounded down, where the runs decide
SMOOTHING_BINS = 1.0  # standard deviation of the Gaussian that smooths a distribution, in bins of REFERENCE_BINS


def normalise(runtime_s: ArrayLike, median_s: ArrayLike, kind: Kind) -> NDArray[np.float64]:
    """Runtime over median (ratio, no unit) or runtime minus median (delta, seconds).

    runtime_s, median_s: (n,). Returns (n,); missing where either is missing, and a ratio where the median is 0.
    Source: Zhu et al. 2023, Definition 4.1."""
    runtimes, medians = np.asarray(runtime_s, dtype=float), np.asarray(median_s, dtype=float)
    if kind == "delta":
        return np.asarray(runtimes - medians)
    return np.asarray(runtimes / np.where(medians > 0, medians, np.nan))


def historic_medians(
    runs: pd.DataFrame, history: Mapping[str, float] | pd.Series, *, past: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The median that each run is compared with, and its source: median_s, median_source, on the index of `runs`.

    - history: the job is in `history` (group key to median of period D1, seconds): that median, whenever the run was.
    - before: it is not; the median of the runs of the job in `past` (default: `runs` themselves) that ended strictly
      before this one was submitted.
    - none: nothing is known, the median is missing.

    runs: group_key, submitted_at; past: group_key, submitted_at, ended_at, runtime_s, of which rows without an end or
    a finite runtime are left out. A run without submitted_at has no before. Medians that are missing, infinite or
    below 0 count as absent.
    Source: Zhu et al. 2023, section 4.2 (D1); the fallbacks are ours."""
    by_key = history if isinstance(history, pd.Series) else pd.Series(history, dtype=float)
    medians = _usable(runs["group_key"].map(by_key))
    is_open = np.isnan(medians)
    known_by = np.where(is_open, "none", "history").astype(object)
    if is_open.any():
        earlier = earlier_runs(runs[is_open], runs if past is None else past)
        medians[is_open] = _usable(earlier.quantile(earlier.values("runtime_s"), 0.5, window=len(earlier.order) or 1))
        known_by[is_open & ~np.isnan(medians)] = "before"
    sources = pd.Categorical(known_by, categories=["history", "before", "none"])
    return pd.DataFrame({"median_s": medians, "median_source": sources}, index=runs.index)


def _usable(medians: ArrayLike) -> NDArray[np.float64]:
    """A copy without medians that no runtime can have."""
    values = np.array(medians, dtype=float)
    values[~(np.isfinite(values) & (values >= 0))] = np.nan
    return values


Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
REFERENCE_BINS = 200  # the width of the smoothing is stated for so many
LOWEST_RATIO = 1.1
NICE_RATIOS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)  # each also times 10, 100, …
NICE_SECONDS = (1, 2, 3, 5, 10, 15, 20, 30, 45)  # each also in minutes
NICE_HOURS = (1, 2, 3, 4, 6, 8, 12, 18, 24, 36, 48)  # each also times 10, 100, …
NICE_FRACTIONS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
DECADES = 10.0 ** np.arange(6)


class Bins(Params):
    """n_bins bins: the first and the last are open and hold the outliers, those inside are equally wide.

    ratio: the last holds values >= high, the first values <= low (a ratio of 0: a run of no length).
    delta: the last holds values > high, the first values < low. So an outlier is what footnote 3 calls one. Bins
    inside hold their lower and not their upper edge; a delta of exactly `high` is in the last of them."""

    kind: Kind = Field(description="How the values were normalised")
    low: float = Field(description="Lower end of the bins inside; ratio or seconds", allow_inf_nan=False)
    high: float = Field(description="Upper end of the bins inside; ratio or seconds", allow_inf_nan=False)
    n_bins: int = Field(200, ge=3, le=10_000, description="Number of bins, with the two for outliers")

    @model_validator(mode="after")
    def _low_is_below_high(self) -> "Bins":
        if self.low >= self.high:
            raise ValueError(f"low {self.low:g} is not below high {self.high:g}")
        return self

    @property
    def n_inside(self) -> int:
        """Bins between the two for outliers."""
        return self.n_bins - 2

    @property
    def width(self) -> float:
        """Of a bin inside."""
        return (self.high - self.low) / self.n_inside

    @property
    def edges(self) -> Floats:
        """(n_bins + 1,), from minus to plus infinity."""
        return np.asarray(np.r_[-np.inf, np.linspace(self.low, self.high, self.n_inside + 1), np.inf])

    @property
    def centres(self) -> Floats:
        """(n_bins,); those of the open bins lie half a width beyond the ends, which is for drawing only."""
        return np.asarray(self.low + self.width * (np.arange(self.n_bins) - 0.5))

    def index(self, values: ArrayLike) -> NDArray[np.intp]:
        """The bin h(x) of each value, from 0; -1 for a missing one. values: any shape. Source: section 5.2."""
        x = np.asarray(values, dtype=float)
        inside = (np.clip(x, self.low, self.high) - self.low) * self.n_inside / (self.high - self.low)
        index = np.minimum(np.nan_to_num(inside, nan=-2.0).astype(np.intp) + 1, self.n_inside)
        is_ratio = self.kind == "ratio"
        index[x <= self.low if is_ratio else x < self.low] = 0
        index[x >= self.high if is_ratio else x > self.high] = self.n_bins - 1
        return np.asarray(index)


def bins_of(kind: Kind, params: BinParams, values: ArrayLike | None = None) -> Bins:
    """The bins that the parameters ask for; `values` (normalised runs) are needed for ranges from the data."""
    if params.ranges == "data":
        return derived_bins(kind, [] if values is None else values, params)
    low, high = (0.0, RATIO_HIGH) if kind == "ratio" else (-DELTA_HIGH_S, DELTA_HIGH_S)
    return Bins(kind=kind, low=low, high=high, n_bins=params.n_bins)


def derived_bins(kind: Kind, values: ArrayLike, params: BinParams) -> Bins:
    """Ranges from the runs: the value that TAIL_SHARE of them exceed, rounded down to a round number.

    10.6 times becomes 10, 1066 s becomes 900 s (15 min), as in the paper; ratios begin at 0, deltas at minus the
    upper end. At least 1.1 times and 1 ms, so runs that never vary have bins, too. values: any shape, missing and
    infinite ones are left out. Raises BadInput if none is left. Source: footnote 3."""
    x = np.asarray(values, dtype=float)
    x = x[np.isfinite(x)]
    if not len(x):
        raise BadInput("normalised runs", "none to derive a range from", "runs with a median; or set ranges to paper")
    ratios = np.r_[LOWEST_RATIO, np.outer(DECADES, NICE_RATIOS).ravel()[1:]]
    hours = 3600 * np.outer(DECADES, NICE_HOURS).ravel()
    seconds = np.r_[NICE_FRACTIONS, NICE_SECONDS, 60 * np.array(NICE_SECONDS), np.unique(hours)]
    steps = ratios if kind == "ratio" else seconds
    tail = np.quantile(x, 1 - TAIL_SHARE)
    high = float(max(steps[steps <= tail], default=steps[0]))
    return Bins(kind=kind, low=0.0 if kind == "ratio" else -high, high=high, n_bins=params.n_bins)


def histogram(values: ArrayLike, groups: ArrayLike, n_groups: int, bins: Bins) -> Counts:
    """n_h, the runs of each group in each bin: (n_groups, n_bins). Source: Zhu et al. 2023, section 4.2.

    values: (n_runs,) normalised; groups: (n_runs,) from 0 to n_groups - 1. Missing values and groups of -1 are left
    out."""
    numbers, index = np.asarray(groups, dtype=np.intp), bins.index(values)
    cells = (numbers * bins.n_bins + index)[(index >= 0) & (numbers >= 0)]
    return np.bincount(cells, minlength=n_groups * bins.n_bins).reshape(n_groups, bins.n_bins)


def pmfs_of(counts: ArrayLike) -> Floats:
    """phi, the share of each bin: (n_groups, n_bins), rows sum to 1; missing for a group without runs."""
    n_h = np.asarray(counts, dtype=float)
    n = n_h.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(n_h, n, out=np.full(n_h.shape, np.nan), where=n > 0))


def smooth(pmfs: ArrayLike, bins: Bins, smoothing_bins: float) -> Floats:
    """PMFs whose bins share with their neighbours, so that close bins count as close: (n_groups, n_bins).

    Kernel: Gaussian, cut at 4 standard deviations, reflected at the ends of the inside: mass stays 1, a flat PMF
    stays flat, and the bins for outliers neither give nor take. smoothing_bins: standard deviation in bins of a PMF
    with 200 bins; with others the same width in values; 0: none. Source: section 4.2, kernel ours."""
    smoothed = np.array(pmfs, dtype=float)
    if smoothing_bins > 0 and smoothed.size:
        from scipy.ndimage import gaussian_filter1d  # not above: pages need all else, and this takes as long as pandas

        sigma = smoothing_bins * bins.n_bins / REFERENCE_BINS
        smoothed[..., 1:-1] = gaussian_filter1d(smoothed[..., 1:-1], sigma, axis=-1, mode="reflect")
    return smoothed


def quantiles(pmfs: ArrayLike, bins: Bins, levels: ArrayLike) -> Floats:
    """The value that X stays under with each probability: (n_groups, n_levels), linear inside a bin.

    A level within the outliers gives the end: `low` means at most this, `high` at least this. Missing for a missing
    PMF. levels: between 0 and 1."""
    p, q = np.atleast_2d(np.asarray(pmfs, dtype=float)), np.atleast_1d(np.asarray(levels, dtype=float))
    mass = np.cumsum(p, axis=1)
    mass = mass / mass[:, -1:]
    columns: list[Any] = []
    rows = np.arange(len(p))
    for level in q:
        bin_ = np.minimum((mass < level).sum(axis=1), bins.n_bins - 1)  # the first with so much mass
        before = np.where(bin_ > 0, mass[rows, bin_ - 1], 0.0)
        share = (level - before) / np.where(mass[rows, bin_] > before, mass[rows, bin_] - before, 1.0)
        value = bins.low + bins.width * (bin_ - 1 + share)
        value = np.where(bin_ == 0, bins.low, np.where(bin_ == bins.n_bins - 1, bins.high, value))
        columns.append(np.where(np.isnan(mass[:, -1]), np.nan, value))
    return np.stack(columns, axis=1)
