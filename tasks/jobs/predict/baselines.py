"""What a predictor must beat besides boosted quantiles: the runs of the job, and of its user with the same request; one
shape for all jobs; a random-forest regression; and the paper's shapes."""

from typing import Literal

import numpy as np
import pandas as pd

from tasks.boosters import matrix
from tasks.jobs.binned import (
    Binned,
    Tails,
    outer_edges,
    without_zero_bin,
)
from tasks.jobs.distribution import Floats
from tasks.jobs.empirical import Empirical, gather_history
from tasks.jobs.predict.earlier import EarlierRuns, Ints
from tasks.jobs.predict.peers import Histories
from tasks.jobs.predict.pool import order_quantiles
from tasks.jobs.shapes import ShapeSet

STAND_INS = 200  # quantiles that stand for the shape of all runs
MIN_LEAF = 3  # runs of a leaf of the random forest
LARGEST = 1e30  # that its trees are given; they count in 32 bits


def history_prediction(known: Histories, peers: str, stand_in: Floats) -> Floats:
    """For each row the (n + 1) rule over the last runs of its peers that had ended before it was submitted.

    So the baseline knows as much as the model does, up to the same moment. stand_in: (n, n_levels) quantiles in logs
    of seconds for rows without such runs; so is what is returned."""
    found = order_quantiles(known.log_s[peers])
    return np.where(np.isfinite(found), found, stand_in)


def global_prediction(earlier: EarlierRuns, ratios: Floats, medians_s: Floats) -> Empirical:
    """One shape for all jobs: quantiles of all ratios to the median, times the median of each row's job (n,)."""
    quantiles = np.quantile(ratios, (np.arange(STAND_INS) + 0.5) / STAND_INS)
    n = len(earlier.n)
    values = (medians_s[:, None] * quantiles).ravel()
    return Empirical(gather_history(values, np.repeat(np.arange(n), STAND_INS)), np.arange(n))


def forest_prediction(
    features: pd.DataFrame, runtime_s: Floats, asked: pd.DataFrame, *, n_trees: int, seed: int
) -> Empirical:
    """A random-forest regression of the runtime in seconds, as Zhu et al. extend Shao et al. 2019: one sure value.

    features, runtime_s: training rows; asked: (n, p). Its pooled runtimes are what Figure 8 compares."""
    from sklearn.ensemble import RandomForestRegressor  # type: ignore[import-untyped, unused-ignore]

    model = RandomForestRegressor(n_trees, min_samples_leaf=MIN_LEAF, max_features=1 / 3, n_jobs=1, random_state=seed)
    known, new = (np.clip(np.where(np.isinf(x), np.nan, x), -LARGEST, LARGEST) for x in map(matrix, (features, asked)))
    model.fit(known, runtime_s)
    told = np.maximum(np.asarray(model.predict(new), dtype=float), 0.0)
    return Empirical(gather_history(told, np.arange(len(told))), np.arange(len(told)))


def own_counts(earlier: EarlierRuns, bins: Ints, n_bins: int, *, most: int) -> Floats:
    """How many of the last `most` runs that each row knows lie in each bin: (n_rows, n_bins).

    bins: (n_past,) the bin of each run of earlier.past, in the order of its rows; -1: not counted."""
    ordered = bins[earlier.order]
    counted = [earlier.sums((ordered == one).astype(float)[:, None], window=most) for one in range(n_bins)]
    return np.hstack(counted)


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
