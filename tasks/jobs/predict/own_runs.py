"""The earlier runs of each run's own job, as counts in bins or as runtimes: what a prediction may lean on."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.jobs.distribution import Floats
from tasks.jobs.predict.features_earlier import EarlierRuns

Ints = NDArray[np.int64]
CELLS = 500_000  # earlier runs gone through together: what fits the cache takes a tenth of the time


def own_counts(earlier: EarlierRuns, bins: Ints, n_bins: int, *, most: int) -> Floats:
    """How many of the last `most` runs that each row knows lie in each bin: (n_rows, n_bins).

    bins: (n_past,) the bin of each run of earlier.past, in the order of its rows; -1: not counted."""
    return own_counts_by(earlier, bins, lambda seen, _: seen, n_bins, most=most)


def own_counts_by(
    earlier: EarlierRuns, values: NDArray[Any], bin_of: Callable[[NDArray[Any], Ints], Ints], n_bins: int, *, most: int
) -> Floats:
    """The same where the bin of an earlier run depends on the row that knows it: bin_of(values, rows), (n_pairs,).

    values: (n_past,), in the order of the rows of earlier.past."""
    ordered = values[earlier.order]
    found = np.zeros((len(earlier.n), n_bins))
    for rows, places in _blocks(earlier, most):
        seen = bin_of(ordered[places], rows)
        is_counted = seen >= 0
        first = int(rows[0])
        cells = (rows[is_counted] - first) * n_bins + seen[is_counted]
        counted = np.bincount(cells, minlength=(int(rows[-1]) - first + 1) * n_bins).reshape(-1, n_bins)
        found[first : first + len(counted)] += counted
    return found


def own_values(earlier: EarlierRuns, values: Floats, *, most: int) -> tuple[Floats, Ints]:
    """Values of the last `most` runs that each row knows, end to end, and the row of each.

    values: (n_past,), in the order of the rows of earlier.past. A row without earlier runs has none."""
    ordered = values[earlier.order]
    parts = [(ordered[places], rows) for rows, places in _blocks(earlier, most)]
    if not parts:
        return np.zeros(0), np.zeros(0, dtype=np.int64)
    return np.concatenate([value for value, _ in parts]), np.concatenate([row for _, row in parts])


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
