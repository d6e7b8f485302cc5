"""Runtimes predicted by shapes: the paper's hard label, the mixture by probability, and one that leans on history."""

from typing import Literal

import numpy as np

from tasks.jobs.binned import (
    Binned,
    Tails,
    outer_edges,
    without_zero_bin,
)
from tasks.jobs.distribution import Floats
from tasks.jobs.shapes import ShapeSet

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
