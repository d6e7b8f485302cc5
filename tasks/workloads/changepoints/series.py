"""The settings of change points, and a series made ready: outliers set aside, counters by mean and deviation."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from tasks.choices import ChangePointMethod
from tasks.errors import BadInput
from tasks.params import Params

Scale = Literal["deviation", "none"]


class PriorParams(Params):
    """What is believed of a segment before its first sample: a normal-inverse-gamma prior, values in scaled units."""

    mean: float = Field(0.0, ge=-1e12, le=1e12, description="Expected level of a segment")
    kappa: float = Field(
        0.1, gt=0, le=1e6, description="Samples that the belief in the level is worth; small: levels may lie far apart"
    )
    alpha: float = Field(
        3.0, gt=0, le=1e6, description="Half the samples that the belief in the noise is worth (2 alpha: freedom of t)"
    )
    noise: float = Field(
        0.3, gt=0, le=1e12, description="Expected variance of the noise, 1 being the whole series (beta: alpha noise)"
    )
    trend_share: float = Field(
        0.5,
        ge=0,
        lt=1,
        description="Prior probability that a segment is a straight line and not a level; 0: levels only",
    )
    trend_span: float = Field(
        30.0, gt=0, le=1e6, description="Prior deviation of a line's rise over the whole series, in deviations of noise"
    )


class ChangePointParams(Params):
    """How change points are found."""

    method: ChangePointMethod = Field(
        "bayes", description="bayes: run-length posterior; pelt, kernel, binseg: the offline methods of ruptures"
    )
    expected_run_length: float | None = Field(
        None, gt=1, le=1e12, description="Samples between changes before any is seen; None: ten times the series"
    )
    prior: PriorParams | None = Field(
        None, description="Of segments with noise that does not depend on itself; None: season and noise by evidence"
    )
    scale: Scale = Field(
        "deviation", description="deviation: each counter by its mean and standard deviation; none: values as they are"
    )
    outlier_deviations: float = Field(
        10.0,
        ge=0,
        le=1e6,
        description="One or two samples this many robust deviations from their neighbours count as missing; 0: none do",
    )
    min_segment: int = Field(2, ge=1, le=1_000_000, description="Fewest samples between changes")
    prune_nats: float = Field(
        30.0, ge=5, le=1e6, description="Run lengths whose log probability is this far below the best are dropped"
    )
    max_run_lengths: int = Field(
        256, ge=8, le=1_000_000, description="Most run lengths kept at a time; more cost more, in proportion"
    )
    near: int = Field(
        5, ge=0, le=1000, description="A change's probability counts that it lies within so many samples of the place"
    )
    penalty: float = Field(
        3.0, gt=0, le=1e6, description="Penalty of a change for pelt, kernel and binseg, in logs of the samples"
    )


Floats = NDArray[np.float64]

WINDOW = 7  # samples of the running median; a phase of three samples in the middle of it is an outlier or a phase
LONGEST_OUTLIER = 2  # adjacent samples; three alike are a phase
SD_OF_MAD = 1.4826  # of a normal distribution: deviation over median absolute deviation
SD_OF_MEAN = 1.2533  # and over mean absolute deviation, where more than half the residuals are 0
SMALLEST_SPREAD = 1e-12  # deviation over largest magnitude below which a counter is constant: rounding, not change


def checked(values: ArrayLike) -> Floats:
    """The series as (n, d) floats, NaN where a sample is missing.

    values: (n,) or (n, d). Raises BadInput when it has another shape, holds no number, or an infinite one."""
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput("series", "holds something that is no number", "numbers, NaN where one is missing") from None
    if table.ndim not in (1, 2):
        raise BadInput("series", f"has {table.ndim} dimensions", "samples, or samples by counters")
    if table.ndim == 1:
        table = table[:, None]
    if np.isinf(table).any():
        row, column = np.argwhere(np.isinf(table))[0]
        raise BadInput(
            f"series, row {row}, counter {column}",
            f"is {table[row, column]}",
            "finite numbers",
            "leave the sample out (NaN) if it was not measured",
        )
    return np.ascontiguousarray(table)


def standardised(table: Floats, params: ChangePointParams) -> Floats:
    """Each counter without isolated outliers, by its mean and standard deviation; constants become 0.

    table: (n, d), as `checked` gives it. Missing samples and outliers are NaN in what is returned."""
    ready = table.copy()
    for counter in range(table.shape[1]):
        if params.outlier_deviations > 0:
            blank_outliers(ready[:, counter], params.outlier_deviations)
        if params.scale == "deviation":
            ready[:, counter] = _scaled(ready[:, counter])
    return ready


def _scaled(column: Floats) -> Floats:
    is_there = ~np.isnan(column)
    found = column[is_there]
    scaled = np.full(len(column), np.nan)
    largest = np.abs(found).max(initial=0.0)
    if not largest:
        scaled[is_there] = 0.0
        return scaled
    found = found / largest  # so that squares of huge values stay finite
    deviation = found.std(ddof=1) if len(found) > 1 else 0.0
    scaled[is_there] = (found - found.mean()) / deviation if deviation > SMALLEST_SPREAD else 0.0
    return scaled


def blank_outliers(column: Floats, deviations: float) -> None:
    """Set isolated outliers of a series to NaN, in place.

    An outlier differs from the median of the present samples around it by more than `deviations` times the robust
    deviation of all such differences, and at most LONGEST_OUTLIER adjacent samples do: more are a short phase."""
    places = np.flatnonzero(~np.isnan(column))
    if len(places) < WINDOW:
        return
    apart = from_neighbours(column[places])
    spread = SD_OF_MAD * float(np.median(apart)) or SD_OF_MEAN * float(apart.mean())
    is_far = apart > deviations * spread
    if not spread or not np.isfinite(spread) or not is_far.any():
        return
    edges = np.flatnonzero(np.diff(is_far, prepend=False, append=False))
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        if end - start <= LONGEST_OUTLIER:
            column[places[start:end]] = np.nan


@njit(cache=True)
def from_neighbours(found: Floats) -> Floats:
    """How far each sample lies from the median of the WINDOW samples around it, fewer at the ends. found: (n,)."""
    n = len(found)
    apart, window = np.empty(n), np.empty(WINDOW)
    for i in range(n):
        low, high = max(0, i - WINDOW // 2), min(n, i + WINDOW // 2 + 1)
        for j in range(low, high):  # insertion sort
            at = j - low
            while at > 0 and window[at - 1] > found[j]:
                window[at] = window[at - 1]
                at -= 1
            window[at] = found[j]
        size = high - low
        apart[i] = abs(found[i] - (window[(size - 1) // 2] + window[size // 2]) / 2)
    return apart
