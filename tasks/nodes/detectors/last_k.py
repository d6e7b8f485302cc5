"""Deviation from the median of the last k executions of a node and type that looked normal."""

from collections import deque

import numpy as np

from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.levelling import levelled, power_mean
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.detectors.spreads import learn_normal
from tasks.nodes.type_tables import Floats


def last_k_scores(case: Case, params: DetectorParams) -> Floats:
    """The power mean of a type's deviations, levelled by type: (n_executions,), NaN without a table.

    Training executions teach the spread alone: the median is always of earlier executions, whatever their label."""
    found = []
    n_nodes = len(case.tables.nodes)
    for table in case.tables.tables:
        is_normal = case.normal_rows(table)
        within = learn_normal(table.natural, table.nodes, is_normal, n_nodes).within
        scores = np.full(len(table.executions), np.nan)
        for node in np.unique(table.nodes):
            own = np.flatnonzero(table.nodes == node)
            scores[own] = deviations(table.natural[own] / within, params)
        found.append(levelled(scores, is_normal))
    return case.tables.in_place(found)


def deviations(series: Floats, params: DetectorParams) -> Floats:
    """Deviation of each execution of one node from the median of the last k that looked normal: (n,), NaN at first.

    series: (n, m) in time order, in deviations. An execution looks normal up to params.looks_normal. When k in a row do
    not, the node has a new level: they become what is compared with, so that a lasting change is told once."""
    normal: deque[int] = deque(maxlen=params.k)
    odd: deque[int] = deque(maxlen=params.k)
    found = np.full(len(series), np.nan)
    for at, row in enumerate(series):
        if normal:
            median = np.array([_median(column) for column in series[list(normal)].T])
            found[at] = power_mean((row - median)[None, :], params.norm, params.largest)[0]
        if np.isnan(found[at]) or found[at] <= params.looks_normal:
            normal.append(at)
            odd.clear()
            continue
        odd.append(at)
        if len(odd) == params.k:
            normal, odd = odd, deque(maxlen=params.k)
    return found


def _median(column: Floats) -> float:
    own = column[~np.isnan(column)]
    return float(np.median(own)) if len(own) else np.nan
