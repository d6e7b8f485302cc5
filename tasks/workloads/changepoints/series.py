"""The settings of change points, and a series made ready: outliers set aside, counters by mean and deviation."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from tasks.choices import ChangePointMethod
from tasks.errors import BadInput
from tasks.params import Params


class PriorParams(Params):
    """What is believed of a segment before its first sample: a normal-inverse-gamma prior, values in scaled units.

    mean, kappa: expected level, and the samples that this belief is worth. noise, alpha: expected variance of the
    noise, 1 being the whole series (beta: alpha noise), and half the samples that it is worth (2 alpha: freedom of t).
    trend_share: probability that a segment is a straight line and not a level. trend_span: deviation of a line's rise
    over the whole series, in deviations of noise."""

    mean: float = 0.0
    kappa: float = Field(0.1, gt=0)
    alpha: float = Field(3.0, gt=0)
    noise: float = Field(0.3, gt=0)
    trend_share: float = Field(0.5, ge=0, lt=1)
    trend_span: float = Field(30.0, gt=0)


class ChangePointParams(Params):
    """How change points are found: by the posterior of run lengths (bayes), or by an offline method of ruptures.

    expected_run_length: samples between changes before any is seen; None: ten times the series. prior: of segments
    with noise that does not depend on itself; None: season and noise by evidence. is_scaled: each counter by its mean
    and deviation. outlier_deviations: one or two samples so many robust deviations from their neighbours count as
    missing; 0: none do. min_segment: fewest samples between changes. prune_nats, max_run_lengths: run lengths are
    dropped whose log probability is so far below the best, and beyond so many. near: samples around a change within
    which its probability counts. penalty: of a change for ruptures' methods, in logs of the samples."""

    method: ChangePointMethod = "bayes"
    expected_run_length: float | None = Field(None, gt=1)
    prior: PriorParams | None = None
    is_scaled: bool = True
    outlier_deviations: float = Field(10.0, ge=0)
    min_segment: int = Field(2, ge=1)
    prune_nats: float = Field(30.0, ge=5)
    max_run_lengths: int = Field(256, ge=8)
    near: int = Field(5, ge=0)
    penalty: float = Field(3.0, gt=0)


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
        if params.is_scaled:
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
    seen = column[places]
    apart = np.abs(seen - pd.Series(seen).rolling(WINDOW, center=True, min_periods=1).median().to_numpy())
    spread = SD_OF_MAD * float(np.median(apart)) or SD_OF_MEAN * float(apart.mean())
    is_far = apart > deviations * spread
    if not spread or not np.isfinite(spread) or not is_far.any():
        return
    edges = np.flatnonzero(np.diff(is_far, prepend=False, append=False))
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        if end - start <= LONGEST_OUTLIER:
            column[places[start:end]] = np.nan
