"""Change points of a series, by the method that the parameters name."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tasks.workloads.changepoints.found import ChangePoints, RunLengths
from tasks.workloads.changepoints.online import filter_run_lengths
from tasks.workloads.changepoints.params import ChangePointParams
from tasks.workloads.changepoints.predictive import predictive_tables
from tasks.workloads.changepoints.segmentation import best_changes, change_probabilities, probability_near
from tasks.workloads.changepoints.standardise import checked, standardised

Floats = NDArray[np.float64]
DEFAULT = ChangePointParams()


def find_changepoints(values: ArrayLike, params: ChangePointParams = DEFAULT) -> ChangePoints:
    """The change points of one series, or those that all counters of a run share (CWD, III-A).

    values: (n,) or (n, d). A missing sample (NaN) is left out: the samples around it count as neighbours, and rows
    keep their numbers. A counter that is missing in a row says nothing about it; constant counters say nothing at
    all. Fewer than two samples, or constants only: no change. Raises BadInput for infinite values."""
    return _find(checked(values), params)


def find_changepoints_each(values: ArrayLike, params: ChangePointParams = DEFAULT) -> list[ChangePoints]:
    """The change points of each counter on its own (CWD, V-B). values: (n, d); one result a counter."""
    table = checked(values)
    return [_find(np.ascontiguousarray(table[:, [counter]]), params) for counter in range(table.shape[1])]


def _find(table: Floats, params: ChangePointParams) -> ChangePoints:
    ready = _informative(standardised(table, params))
    rows = np.flatnonzero(~np.isnan(ready).all(axis=1))
    if not len(rows):
        return _nothing(len(table))
    if params.method == "bayes":
        return _by_run_lengths(ready[rows], rows, len(table), params)
    from tasks.workloads.changepoints.offline import find_offline  # imports ruptures

    return find_offline(ready, params)


def _informative(ready: Floats) -> Floats:
    """Without constant counters: each would hold against any change of the others. All constant: the first alone."""
    if ready.shape[1] == 1:
        return ready
    is_constant = [len(np.unique(column[~np.isnan(column)])) < 2 for column in ready.T]
    return ready[:, [0]] if all(is_constant) else np.ascontiguousarray(ready[:, ~np.array(is_constant)])


def _by_run_lengths(samples: Floats, rows: NDArray[np.int64], n: int, params: ChangePointParams) -> ChangePoints:
    hazard = 1 / params.expected_run_length
    evidence, before, offsets, starts, filtered, last, _ = filter_run_lengths(
        samples,
        predictive_tables(params.prior, len(samples)).arrays(),
        np.log([hazard, 1 - hazard]),
        params.min_segment,
        params.prune_nats,
        params.max_run_lengths,
    )
    changes = best_changes(before, last)
    probabilities = change_probabilities(offsets, starts, filtered, params.min_segment)
    at_each = np.zeros(n)
    at_each[rows] = probabilities
    near = probability_near(changes, probabilities, params.near)
    run_lengths = RunLengths(rows, offsets, rows[starts], filtered)
    return ChangePoints(n, rows[changes], near, at_each, float(evidence[-1]), run_lengths)


def _nothing(n: int) -> ChangePoints:
    none = np.zeros(0, dtype=np.int64)
    return ChangePoints(
        n, none, np.zeros(0), np.zeros(n), 0.0, RunLengths(none, np.zeros(1, np.int64), none, np.zeros(0))
    )
