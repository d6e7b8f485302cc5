"""The earlier runs of each run's own job, as counts in bins: what the paper's shapes lean on."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tasks.jobs.distribution import Floats
from tasks.jobs.predict.features_earlier import EarlierRuns

Ints = NDArray[np.int64]
CELLS = 500_000  # earlier runs gone through together: what fits the cache takes a tenth of the time


def own_counts(earlier: EarlierRuns, bins: Ints, n_bins: int, *, most: int) -> Floats:
    """How many of the last `most` runs that each row knows lie in each bin: (n_rows, n_bins).

    bins: (n_past,) the bin of each run of earlier.past, in the order of its rows; -1: not counted."""
    ordered = bins[earlier.order]
    found = np.zeros((len(earlier.n), n_bins))
    for rows, places in _blocks(earlier, most):
        seen = ordered[places]
        is_counted = seen >= 0
        first = int(rows[0])
        cells = (rows[is_counted] - first) * n_bins + seen[is_counted]
        counted = np.bincount(cells, minlength=(int(rows[-1]) - first + 1) * n_bins).reshape(-1, n_bins)
        found[first : first + len(counted)] += counted
    return found


def _blocks(earlier: EarlierRuns, most: int) -> Iterator[tuple[Ints, Ints]]:
    """Pairs of a row and a place among the earlier runs, block by block of rows."""
    n = np.minimum(earlier.n, most)
    ends = np.cumsum(n)
    start = 0
    while start < len(n):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + CELLS, side="right")))
        sizes = n[start:stop]
        rows = np.repeat(np.arange(start, stop), sizes)
        if len(rows):
            within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            yield rows, np.repeat(earlier.last[start:stop] - sizes + 1, sizes) + within
        start = stop
