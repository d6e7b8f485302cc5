"""Runtimes predicted by shapes: the paper's hard label, the mixture by probability, and one that leans on own runs."""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.jobs.binned import (
    Binned,
    Tails,
    outer_edges,
    without_zero_bin,
)
from tasks.jobs.distribution import Floats
from tasks.jobs.predict.features_earlier import EarlierRuns
from tasks.jobs.shapes import ShapeSet

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


Variant = Literal["hard", "soft", "leaning"]
VARIANTS: tuple[Variant, ...] = ("hard", "soft", "leaning")
PRIOR_RUNS = 20.0  # own runs that count as much as the shapes, in `leaning`


def predict_by_shapes(
    variant: Variant,
    shapes: ShapeSet,
    probabilities: Floats,
    medians_s: Floats,
    tails: Tails,
    *,
    own: Floats | None = None,
    empty_bin_prior: float,
) -> Binned:
    """Runtime distributions: a shape, or a mixture of shapes, stretched or shifted by the median of each run's job.

    probabilities: (n, k) of the shapes; medians_s: (n,) seconds, above 0 for ratios; own: (n, n_bins) counts of the
    job's earlier runs (leaning). hard: the most probable shape alone, as in the paper (5.2); soft: mixed by
    probability; leaning: (own + 20 · soft) / (n_own + 20)."""
    k, n_bins = shapes.centres.shape
    theta = (1 - empty_bin_prior) * shapes.centres + empty_bin_prior / n_bins
    weights = np.eye(k)[probabilities.argmax(axis=1)] if variant == "hard" else probabilities
    bins = shapes.bins
    edges = outer_edges(bins.low, bins.high, n_bins, bins.kind)
    if variant != "leaning" or own is None:
        if bins.kind == "ratio":
            edges, theta = without_zero_bin(edges, theta)
        return Binned(edges, theta, medians_s, bins.kind, tails, weights)
    masses = own + PRIOR_RUNS * (weights @ theta)
    masses = masses / masses.sum(axis=1, keepdims=True)
    if bins.kind == "ratio":
        edges, masses = without_zero_bin(edges, masses)
    return Binned(edges, masses, medians_s, bins.kind, tails)
