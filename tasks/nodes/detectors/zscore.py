"""Robust z-scores: how far each metric lies from what its node did before, in robust deviations.

    z = (x - median) / (1.4826 · MAD)

by the node's own training executions; a node with few of them by its own earlier executions, and where these are few
too, by the fleet. Source: Iglewicz & Hoaglin 1993; Perona, section IV, has no such baseline."""

import numpy as np
import pandas as pd

from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.levelling import levelled, power_mean
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.detectors.spreads import Normal
from tasks.nodes.type_tables import Bools, Floats, TypeTable


def zscore_scores(case: Case, params: DetectorParams) -> Floats:
    """The power mean of a type's z-scores, levelled by type: (n_executions,), NaN without a table."""
    found = []
    for table, normal in zip(case.tables.tables, case.normals, strict=True):
        z = z_scores(table, normal, params)
        found.append(levelled(power_mean(z, params.norm, params.largest), case.normal_rows(table)))
    return case.tables.in_place(found)


def z_scores(table: TypeTable, normal: Normal, params: DetectorParams) -> Floats:
    """The z-score of each metric, positive where it is worse: (n, m), NaN where not measured.

    Infinite where it is beyond the largest number: what a metric was that hardly ever varied, and then is huge."""
    centre, spread = centre_and_spread(table, normal, params)
    with np.errstate(over="ignore"):
        return np.asarray(-table.orientation * (table.natural - centre) / spread)


def centre_and_spread(table: TypeTable, normal: Normal, params: DetectorParams) -> tuple[Floats, Floats]:
    """What each metric of each row is expected to be, and its robust deviation, in base units: (n, m) each."""
    has_own = (normal.n >= params.min_history)[table.nodes][:, None]
    earlier = _earlier_medians(table, ~has_own[:, 0], params)
    has_earlier = ~np.isnan(earlier)
    centre = np.where(has_own, normal.centres[table.nodes], np.where(has_earlier, earlier, normal.centre))
    own_spread = np.maximum(normal.deviations[table.nodes], params.least_spread * normal.within)
    return centre, np.where(has_own, own_spread, np.where(has_earlier, normal.within, normal.around))


def _earlier_medians(table: TypeTable, is_asked: Bools, params: DetectorParams) -> Floats:
    """Median of each node's latest earlier executions, the row itself left out; NaN for fewer than min_history: (n, m).

    is_asked: (n,) all rows of some nodes; NaN for the others."""
    found = np.full(table.natural.shape, np.nan)
    rows = np.flatnonzero(is_asked)
    if not len(rows):
        return found
    nodes = table.nodes[rows]
    each = pd.DataFrame(table.natural[rows]).groupby(nodes)
    rolled = each.rolling(params.history, min_periods=min(params.min_history, params.history)).median()
    rolled = rolled.groupby(level=0).shift(1)
    found[rows] = rolled.droplevel(0).sort_index().to_numpy(dtype=np.float64)
    return found
