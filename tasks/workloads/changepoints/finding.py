"""Change points of a series, by the method that the parameters name."""

from __future__ import annotations

import numpy as np
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
from tasks.workloads.changepoints.found import ChangePoints, RunLengths
from tasks.workloads.changepoints.online import filter_run_lengths
from tasks.workloads.changepoints.params import ChangePointParams, PriorParams
from tasks.workloads.changepoints.predictive import predictive_tables
from tasks.workloads.changepoints.segmentation import best_changes, change_probabilities, probability_near
from tasks.workloads.changepoints.standardise import checked, standardised

Floats = NDArray[np.float64]
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
    if params.method == "bayes":
        return _by_run_lengths(table, params)
    from tasks.workloads.changepoints.offline import find_offline  # imports ruptures

    ready = standardised(table, params)
    return find_offline(np.ascontiguousarray(ready[:, _informative(ready)]), params)


def _informative(ready: Floats) -> NDArray[np.int64]:
    """Without constant counters: each would hold against any change of the others. All constant: the first alone."""
    varies = [
        column for column in range(ready.shape[1]) if np.unique(ready[:, column][~np.isnan(ready[:, column])]).size > 1
    ]
    return np.array(varies or [0], dtype=np.int64)


def _by_run_lengths(table: Floats, params: ChangePointParams) -> ChangePoints:
    """By the run-length posterior, of a table (n, d) that is checked."""
    ready = standardised(table, params)
    informative = _informative(ready)
    ready = np.ascontiguousarray(ready[:, informative])
    rows = np.flatnonzero(~np.isnan(ready).all(axis=1))
    if not len(rows):
        return _nothing(len(table))
    samples, prior, correlation = ready[rows], params.prior, 0.0
    models: tuple[SeriesModel, ...] = ()
    if prior is None:
        prior = prior_of(NOISES[0])
        if len(rows) >= FEWEST_SAMPLES and samples.any():
            samples, prior, correlation, models = _told_by_evidence(table[rows][:, informative], samples, rows, params)
    hazard = 1 / (params.expected_run_length or expected_length(len(samples)))
    tables_of = predictive_tables if len(samples) <= CHOICE_SAMPLES else predictive_tables.__wrapped__
    evidence, before, offsets, starts, filtered, last, _ = filter_run_lengths(
        samples,
        tables_of(prior, len(samples), correlation).arrays(),
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
    of_rows = starts if len(rows) == len(table) else rows[starts]
    run_lengths = RunLengths(rows, offsets, of_rows, filtered)
    return ChangePoints(len(table), rows[changes], near, at_each, float(evidence[-1]), run_lengths, models)


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
            left[is_there, counter] = model.values
            models.append(model)
    if samples.shape[1] == 1:
        return left, prior_of(models[0].noise), models[0].correlation, tuple(models)
    _, i, j = best_noise(left, params.min_segment)
    return left, prior_of(NOISES[j]), CORRELATIONS[i], tuple(models)


def _nothing(n: int) -> ChangePoints:
    none = np.zeros(0, dtype=np.int64)
    return ChangePoints(
        n, none, np.zeros(0), np.zeros(n), 0.0, RunLengths(none, np.zeros(1, np.int64), none, np.zeros(0))
    )
