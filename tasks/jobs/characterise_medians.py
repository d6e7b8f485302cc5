"""Exact medians of many stretches of one array, without a loop over them."""

import numpy as np

from tasks.jobs.group_counts import Ints
from tasks.jobs.pmf import Floats

AT_ONCE = 2**20  # values that are copied at a time; one longer stretch is copied as a whole


def medians_of(values: Floats, starts: Ints, sizes: Ints) -> Floats:
    """The median of each stretch values[start : start + size]: (n,), missing for an empty one.

    starts, sizes: (n,). Stretches of one size are the rows of one matrix; of n values there are at most sqrt(2 n)
    sizes. The mean of the middle two is that of pandas, to the bit."""
    medians = np.full(len(sizes), np.nan)
    order = np.argsort(sizes, kind="stable")
    found, firsts = np.unique(sizes[order], return_index=True)
    for size, same in zip(found.tolist(), np.split(order, firsts[1:]), strict=True):
        if size:
            n_rows = max(1, AT_ONCE // size)
            for at in range(0, len(same), n_rows):
                rows = same[at : at + n_rows]
                medians[rows] = _row_medians(values[starts[rows][:, None] + np.arange(size)])
    return medians


def _row_medians(matrix: Floats) -> Floats:
    """matrix: (n, size), changed."""
    low, high = (matrix.shape[1] - 1) // 2, matrix.shape[1] // 2
    matrix.partition((low, high) if low < high else low, axis=1)
    return np.asarray((matrix[:, low] + matrix[:, high]) / 2)
