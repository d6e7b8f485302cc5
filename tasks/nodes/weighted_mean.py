"""Weighted means over the last axis, missing values aside."""

import numpy as np

from tasks.nodes.type_tables import Floats


def weighted_mean(values: Floats, weights: Floats) -> Floats:
    """Mean of values (…, k) with weights (k,) over the k that are there; NaN where none with a weight is. (…,)"""
    is_there = ~np.isnan(values)
    total = np.asarray(is_there @ weights, dtype=np.float64)
    found = np.where(is_there, values, 0.0) @ weights
    return np.asarray(np.divide(found, total, out=np.full(total.shape, np.nan), where=total > 0))
