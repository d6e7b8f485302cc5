"""Deviation from the median of the last k executions of a node and type that looked normal."""

import numpy as np

from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.levelling import levelled
from tasks.nodes.detectors.node_rows import rows_of_nodes
from tasks.nodes.detectors.normal_looking import deviations_in_time
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.type_tables import Floats


def last_k_scores(case: Case, params: DetectorParams) -> Floats:
    """The power mean of a type's deviations, levelled by type: (n_executions,), NaN without a table.

    Training executions teach the spread alone: the median is always of earlier executions, whatever their label."""
    found = []
    for table, normal in zip(case.tables.tables, case.normals, strict=True):
        with np.errstate(over="ignore"):  # what is beyond the largest number is cut as well
            series = table.natural / normal.within
        scores = np.full(len(table.executions), np.nan)
        for own in rows_of_nodes(table.nodes):
            scores[own] = deviations(series[own], params)
        found.append(levelled(scores, case.normal_rows(table)))
    return case.tables.in_place(found)


def deviations(series: Floats, params: DetectorParams) -> Floats:
    """Deviation of each execution of one node from the median of the last k that looked normal: (n,), NaN at first.

    series: (n, m) in time order, in deviations. An execution looks normal up to params.looks_normal. When k in a row do
    not, the node has a new level: they become what is compared with, so that a lasting change is told once."""
    k = min(params.k, len(series))  # no more can be waited for
    return np.asarray(deviations_in_time(series, k, params.looks_normal, params.norm, params.largest))
