"""What else differs where the log has such values: a warning that a predicted change may have another cause.

In a log little deviation of the load can mean that all machines are full. A model that learned from it then foretells
slower runs if the deviation is set to 0, though nobody asked for full machines."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.control.edits import changed_columns
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.distribution import Floats

COLUMNS = ["feature", "value", "companion", "mean_there", "mean_in_all", "distance"]


def find_companions(
    before: pd.DataFrame, after: pd.DataFrame, training: pd.DataFrame, params: WhatIfParams
) -> pd.DataFrame:
    """Features that the change leaves as they are, and that are unusual where the training data have its new values.

    before, after: the same rows; training: the same features. For each changed feature its median new value is taken,
    and the share params.near_share of the training rows nearest to it; a companion is an unchanged feature whose mean
    over these rows is at least params.companion_sds standard deviations from that over all training rows.
    Columns: feature, value, companion, mean_there, mean_in_all, distance (in standard deviations, above 0 if larger
    there); the largest distance first."""
    changed = changed_columns(before, after)
    others = [str(name) for name in after if name not in changed]
    old, new = before[changed].to_numpy(dtype=float), after[changed].to_numpy(dtype=float)
    differs = ~((old == new) | (np.isnan(old) & np.isnan(new)))
    known = training[others].to_numpy(dtype=float)
    usual = _means(known)
    spread = _means((known - usual) ** 2) ** 0.5
    rows = []
    for place, name in enumerate(changed):
        values = new[differs[:, place], place]
        near = _nearest(training[name].to_numpy(dtype=float), values, params)
        if near is None:
            continue
        there = _means(known[near])
        distance = np.divide(there - usual, spread, out=np.zeros(len(others)), where=spread > 0)
        far = np.flatnonzero(np.abs(distance) >= params.companion_sds)
        rows += [(name, float(np.nanmedian(values)), others[at], there[at], usual[at], distance[at]) for at in far]
    found = pd.DataFrame(rows, columns=COLUMNS)
    return found.sort_values("distance", key=abs, ascending=False, kind="stable", ignore_index=True)


def _nearest(training: Floats, values: Floats, params: WhatIfParams) -> NDArray[np.bool_] | None:
    """Which training rows are nearest to the median of the values, ties among them; None if either is unknown."""
    if np.isnan(values).all() or np.isnan(training).all():
        return None
    apart = np.abs(training - np.nanmedian(values))
    return np.asarray(apart <= np.nanquantile(apart, params.near_share))


def _means(table: Floats) -> Floats:
    """Mean of each column over what is known; NaN where nothing is: (p,)."""
    n_known = np.isfinite(table).sum(axis=0)
    sums = np.where(np.isfinite(table), table, 0.0).sum(axis=0)
    return np.where(n_known > 0, sums / np.maximum(n_known, 1), np.nan)
