"""Medians of the last executions that looked normal, while executions arrive: each verdict hangs on those before it.

That is one step after another, so it is compiled. The values under each median are kept in order."""

import numpy as np
from numba import njit

from tasks.nodes.type_tables import Floats, Ints


@njit(cache=True)
def deviations_in_time(series: Floats, k: int, looks_normal: float, power: float, largest: float) -> Floats:
    """The power mean of each row's distances from the medians of the last k rows that looked normal: (n,).

    series: (n, m), NaN where not measured. NaN for a row that cannot be compared: it counts as normal, as does one up
    to looks_normal. When k rows in a row do not, they take the place of the normal ones. k: 1 … n."""
    n, m = series.shape
    found = np.full(n, np.nan)
    normal, odd = np.empty(k, np.int64), np.empty(k, np.int64)  # rows; the oldest normal one is at `oldest`
    ordered, n_there = np.empty((m, k)), np.zeros(m, np.int64)  # the values of the normal rows, and how many
    n_normal, n_odd, oldest = 0, 0, 0
    for row in range(n):
        if n_normal > 0:
            found[row] = distance(series[row], ordered, n_there, power, largest)
        if found[row] > looks_normal:
            odd[n_odd] = row
            n_odd += 1
            if n_odd == k:
                normal, odd = odd, normal
                n_normal, n_odd, oldest = k, 0, 0
                n_there[:] = 0
                for other in normal:
                    enter(series[other], ordered, n_there)
            continue
        n_odd = 0
        if n_normal == k:
            leave(series[normal[oldest]], ordered, n_there)
            normal[oldest] = row
            oldest = (oldest + 1) % k
        else:
            normal[n_normal] = row
            n_normal += 1
        enter(series[row], ordered, n_there)
    return found


@njit(cache=True)
def distance(values: Floats, ordered: Floats, n_there: Ints, power: float, largest: float) -> float:
    """The power mean (levelling.py) of the distances of a row (m,) from the medians; NaN where none can be told."""
    total, n_told = 0.0, 0
    for metric in range(len(values)):
        count = n_there[metric]
        if count == 0 or np.isnan(values[metric]):
            continue
        median = ordered[metric, count // 2]
        if count % 2 == 0:
            median = (median + ordered[metric, count // 2 - 1]) / 2
        apart = abs(values[metric] - median)
        if not np.isnan(apart):
            total += min(apart, largest) ** power
            n_told += 1
    return (total / n_told) ** (1 / power) if n_told else np.nan


@njit(cache=True)
def enter(values: Floats, ordered: Floats, n_there: Ints) -> None:
    """Put what a row measured in its place among the values of each metric."""
    for metric in range(len(values)):
        if np.isnan(values[metric]):
            continue
        at = n_there[metric]
        while at > 0 and ordered[metric, at - 1] > values[metric]:
            ordered[metric, at] = ordered[metric, at - 1]
            at -= 1
        ordered[metric, at] = values[metric]
        n_there[metric] += 1


@njit(cache=True)
def leave(values: Floats, ordered: Floats, n_there: Ints) -> None:
    """Take what a row measured out again."""
    for metric in range(len(values)):
        if np.isnan(values[metric]):
            continue
        n_there[metric] -= 1
        for at in range(np.searchsorted(ordered[metric, : n_there[metric] + 1], values[metric]), n_there[metric]):
            ordered[metric, at] = ordered[metric, at + 1]
