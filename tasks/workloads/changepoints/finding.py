"""Where a series changes: the way in, and what is returned; by run lengths, or by the offline methods of ruptures
(PELT, kernel, binary segmentation)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

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
    best_changes,
    change_probabilities,
    filter_run_lengths,
    predictive_tables,
    probability_near,
)
from tasks.workloads.changepoints.series import ChangePointParams, PriorParams, checked, standardised

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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


def changes_of(values: Floats, found: ChangePoints) -> list[dict[str, float]]:
    """Each change in units of the series: row, probability, and mean and deviation of the segments before and after it.

    values: (n,); missing samples are left out."""
    told = []
    for probability, (before, after) in zip(
        found.probabilities.tolist(), itertools.pairwise(found.segments()), strict=True
    ):
        change = {"row": after[0], "probability": probability}
        for side, segment in (("before", before), ("after", after)):
            part = pd.Series(values[slice(*segment)])
            change |= {f"mean_{side}": float(part.mean()), f"deviation_{side}": float(part.std(ddof=0))}
        told.append(change)
    return told


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
    informative = _informative(ready)
    ready = np.ascontiguousarray(ready[:, informative])
    if params.method == "bayes":
        return _by_run_lengths(table[:, informative], ready, params)
    return _offline(ready, params)


def _informative(ready: Floats) -> NDArray[np.int64]:
    """Without constant counters: each would hold against any change of the others. All constant: the first alone."""
    varies = [
        column for column in range(ready.shape[1]) if np.unique(ready[:, column][~np.isnan(ready[:, column])]).size > 1
    ]
    return np.array(varies or [0], dtype=np.int64)


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
            samples, prior, correlation, models = _told_by_evidence(table[rows], samples, rows, params)
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


def _told_by_evidence(
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
            left[is_there, counter] = model.values  # noqa: PD011
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
