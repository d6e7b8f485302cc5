"""Where a series changes: the way in, and what is returned; by run lengths, or by the offline methods of ruptures
(PELT, kernel, binary segmentation)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from tasks.choices import ChangePointMethod
from tasks.errors import BadInput
from tasks.params import Params
from tasks.workloads.changepoints.evidence import (
    CHOICE_SAMPLES,
    CORRELATIONS,
    NOISES,
    SeriesModel,
    best_model,
    best_noise,
    expected_length,
    prior_of,
)
from tasks.workloads.changepoints.online import (
    PriorParams,
    best_changes,
    change_probabilities,
    filter_run_lengths,
    predictive_tables,
    probability_near,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


WINDOW = 7  # samples of the running median; a phase of three samples in the middle of it is an outlier or a phase
MEDIANS_AT_ONCE = 100_000  # of windows: each is copied
LONGEST_OUTLIER = 2  # adjacent samples; three alike are a phase
MOST_MOVED = 3  # columns that are named of a change
SD_OF_MAD = 1.4826  # of a normal distribution: deviation over median absolute deviation
SD_OF_MEAN = 1.2533  # and over mean absolute deviation, where more than half the residuals are 0
SMALLEST_SPREAD = 1e-12  # deviation over largest magnitude below which a counter is constant: rounding, not change


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


@dataclass(frozen=True)
class ChangePoints:
    """The change points of a series, or of all counters together.

    indices: (k,) rising, zero-based rows of the first sample after each change. probabilities: (k,) that there is a
    change so near (params.near) to it, NaN from a method that gives none. at_each: (n,) probability that a segment
    starts exactly at each row, given the whole series; empty without a posterior. log_evidence: of the whole series,
    scaled; NaN without a posterior. models: of each counter whose season and noise were chosen."""

    n_samples: int
    indices: Ints
    probabilities: Floats
    at_each: Floats
    log_evidence: float
    models: tuple[SeriesModel, ...] = ()

    def segments(self) -> list[tuple[int, int]]:
        """Start and end (exclusive) of each segment; none for an empty series."""
        if not self.n_samples:
            return []
        edges = [0, *(int(index) for index in self.indices), self.n_samples]
        return list(itertools.pairwise(edges))


def changes_of(values: Floats, detected: ChangePoints) -> list[dict[str, float]]:
    """Each change in units of the series: row, probability, and mean and deviation of the segments before and after it.

    values: (n,); missing samples are left out."""
    rows = []
    for probability, (before, after) in zip(
        detected.probabilities.tolist(), itertools.pairwise(detected.segments()), strict=True
    ):
        change = {"row": after[0], "probability": probability}
        for side, segment in (("before", before), ("after", after)):
            part = values[slice(*segment)]
            part = part[~np.isnan(part)]
            change |= {f"mean_{side}": float(part.mean()), f"deviation_{side}": float(part.std())}
        rows.append(change)
    return rows


def most_moved(values: Floats, detected: ChangePoints) -> list[list[tuple[int, float, float]]]:
    """Of each change the columns that moved most, against how they vary around it: place, mean before and after.

    values: (n, d). At most MOST_MOVED, none of them by less than half of what the first one did."""
    changes = []
    for (first, at), (_, last) in itertools.pairwise(detected.segments()):
        moved = []
        for place, column in enumerate(values.T):
            before, after = (part[~np.isnan(part)] for part in (column[first:at], column[at:last]))
            if len(before) and len(after) and (step := abs(before.mean() - after.mean())):
                moved.append((step / (step + before.std() + after.std()), place, before.mean(), after.mean()))
        moved.sort(reverse=True)
        changes.append([(place, float(old), float(new)) for share, place, old, new in moved[:MOST_MOVED]
                        if share >= moved[0][0] / 2])  # fmt: skip
    return changes


DEFAULT = ChangePointParams()
FEWEST_SAMPLES = 3  # of a series that can tell how it varies


def find_changepoints(values: ArrayLike, params: ChangePointParams = DEFAULT) -> ChangePoints:
    """The change points of one series, or those that all counters of a run share (CWD, III-A).

    values: (n,) or (n, d). A missing sample (NaN) is left out: the samples around it count as neighbours, and rows
    keep their numbers. A counter that is missing in a row says nothing about it; constant counters say nothing at
    all. Fewer than two samples, or constants only: no change. Season and autocorrelation are what the series' evidence
    supports, unless params.prior says how segments vary. Raises BadInput for infinite values."""
    return _find(checked(values), params)


def find_changepoints_each(values: ArrayLike, params: ChangePointParams = DEFAULT) -> list[ChangePoints]:
    """The change points of each counter on its own (CWD, V-B). values: (n, d); one result a counter."""
    table = checked(values)
    return [_find(np.ascontiguousarray(table[:, [counter]]), params) for counter in range(table.shape[1])]


def _find(table: Floats, params: ChangePointParams) -> ChangePoints:
    """Of a table (n, d) that is checked."""
    ready = standardised(table, params)
    # constant counters would each hold against any change of the others; if all are, the first alone is kept
    varies = [at for at, column in enumerate(ready.T) if np.unique(column[~np.isnan(column)]).size > 1]
    informative = np.array(varies or [0], dtype=np.int64)
    ready = np.ascontiguousarray(ready[:, informative])
    if params.method == "bayes":
        return _by_run_lengths(table[:, informative], ready, params)
    return _offline(ready, params)


def _by_run_lengths(table: Floats, ready: Floats, params: ChangePointParams) -> ChangePoints:
    """By the run-length posterior. table, ready: (n, d), as measured and scaled."""
    rows = np.flatnonzero(~np.isnan(ready).all(axis=1))
    if not len(rows):
        return ChangePoints(len(table), rows, np.zeros(0), np.zeros(len(table)), 0.0)
    samples, prior, correlation = ready[rows], params.prior, 0.0
    models: tuple[SeriesModel, ...] = ()
    if prior is None:
        prior = prior_of(NOISES[0])
        if len(rows) >= FEWEST_SAMPLES and samples.any():
            samples, prior, correlation, models = _noise_by_evidence(table[rows], samples, rows, params)
    hazard = 1 / (params.expected_run_length or expected_length(len(samples)))
    tables_of = predictive_tables if len(samples) <= CHOICE_SAMPLES else predictive_tables.__wrapped__
    evidence, before, offsets, starts, filtered, last, _ = filter_run_lengths(
        samples,
        tables_of(prior, len(samples), correlation),
        np.log([hazard, 1 - hazard]),
        params.min_segment,
        params.prune_nats,
        params.max_run_lengths,
    )
    changes = best_changes(before, last)
    probabilities = change_probabilities(offsets, starts, filtered, params.min_segment)
    at_each = np.zeros(len(table))
    at_each[rows] = probabilities
    near = probability_near(changes, probabilities, params.near)
    return ChangePoints(len(table), rows[changes], near, at_each, float(evidence[-1]), models)


def _noise_by_evidence(
    measured: Floats, samples: Floats, rows: NDArray[np.int64], params: ChangePointParams
) -> tuple[Floats, PriorParams, float, tuple[SeriesModel, ...]]:
    """Samples less their seasons, and prior and correlation of the noise that all counters share.

    A season is sought in counters that were sampled in every row. measured, samples: (n, d); rows: of the table, n."""
    left, models = samples.copy(), []
    for counter in range(samples.shape[1]):
        is_there = ~np.isnan(samples[:, counter])
        if is_there.sum() < FEWEST_SAMPLES or not (samples[is_there, counter]).any():
            continue
        if samples.shape[1] == 1 or is_there.all():
            model = best_model(
                samples[is_there, counter], measured[is_there, counter], rows[is_there], params.min_segment
            )
            left[is_there, counter] = model.values
            models.append(model)
    if samples.shape[1] == 1:
        return left, prior_of(models[0].noise), models[0].correlation, tuple(models)
    _, i, j = best_noise(left, params.min_segment)
    return left, prior_of(NOISES[j]), CORRELATIONS[i], tuple(models)


def _offline(ready: Floats, params: ChangePointParams) -> ChangePoints:
    """The change points of a scaled series: means (PELT, binary segmentation) or distributions (kernel) differ.

    ready: (n, d), NaN where missing; a row counts if all its counters are there. They are found with a penalty of
    params.penalty log n for each change and counter; none has a probability."""
    rows = np.flatnonzero(~np.isnan(ready).any(axis=1))
    changes: list[int] = []
    if len(rows) >= 2 * params.min_segment and len(rows) > 1:
        import ruptures  # heavy, and asked for seldom

        detector = {
            "pelt": lambda: ruptures.Pelt(model="l2", min_size=params.min_segment, jump=1),
            "kernel": lambda: ruptures.KernelCPD(kernel="rbf", min_size=params.min_segment),
            "binseg": lambda: ruptures.Binseg(model="l2", min_size=params.min_segment, jump=1),
        }[params.method]()
        penalty = params.penalty * np.log(len(rows))
        if params.method != "kernel":  # the kernel sums over counters within one bounded similarity
            penalty *= ready.shape[1]
        changes = detector.fit(ready[rows]).predict(pen=penalty)[:-1]
    indices = rows[np.array(changes, dtype=np.int64)]
    return ChangePoints(len(ready), indices, np.full(len(indices), np.nan), np.zeros(0), float("nan"))


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
    present = column[is_there]
    scaled = np.full(len(column), np.nan)
    largest = np.abs(present).max(initial=0.0)
    if not largest:
        scaled[is_there] = 0.0
        return scaled
    present = present / largest  # so that squares of huge values stay finite
    deviation = present.std(ddof=1) if len(present) > 1 else 0.0
    scaled[is_there] = (present - present.mean()) / deviation if deviation > SMALLEST_SPREAD else 0.0
    return scaled


def blank_outliers(column: Floats, deviations: float) -> None:
    """Set isolated outliers of a series to NaN, in place.

    An outlier differs from the median of the present samples around it by more than `deviations` times the robust
    deviation of all such differences, and at most LONGEST_OUTLIER adjacent samples do: more are a short phase."""
    places = np.flatnonzero(~np.isnan(column))
    if len(places) < WINDOW:
        return
    seen = column[places]
    windows = np.lib.stride_tricks.sliding_window_view(seen, WINDOW)
    inner = [np.median(part, axis=1) for part in np.array_split(windows, 1 + len(windows) // MEDIANS_AT_ONCE)]
    at_ends = range(WINDOW // 2 + 1, WINDOW)  # so many of the window are there
    first, last = [np.median(seen[:n]) for n in at_ends], [np.median(seen[-n:]) for n in reversed(at_ends)]
    apart = np.abs(seen - np.concatenate([first, *inner, last]))
    spread = SD_OF_MAD * float(np.median(apart)) or SD_OF_MEAN * float(apart.mean())
    is_far = apart > deviations * spread
    if not spread or not np.isfinite(spread) or not is_far.any():
        return
    edges = np.flatnonzero(np.diff(is_far, prepend=False, append=False))
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        if end - start <= LONGEST_OUTLIER:
            column[places[start:end]] = np.nan
