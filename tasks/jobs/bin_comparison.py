"""How many bins a distribution should have: how stable the labels are, and how well unseen runs are foretold."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from tasks.jobs.pmf import Bins, Counts, Floats, histogram
from tasks.jobs.posterior import hard_labels, log_posterior, log_shapes
from tasks.jobs.shape_params import PosteriorParams, ShapeParams
from tasks.jobs.shapes import Labels, fit_shapes, largest_k


def compare_bins(
    values: ArrayLike,
    groups: ArrayLike,
    bins: Bins,
    params: ShapeParams,
    posterior: PosteriorParams,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """How well each of params.compared_n_bins does over the ends of `bins`: n_bins, stability, log_score, n_groups.

    The runs of each group are dealt at random into two halves; shapes come from the first halves.
    stability: adjusted Rand index between the posterior labels of both halves. log_score: mean log density (nats;
    per ratio or second inside, the probability itself for the bins of outliers) of the second halves under the
    shapes, weighted by the posterior of the first halves: larger is better, comparable between numbers of bins.
    Groups with params.min_support runs take part, each half needs half of that; with fewer different halves than
    params.k, there are as many shapes. Raises as fit_shapes does.
    Source: section 4.2, where it was done by eye."""
    x, numbers = np.asarray(values, dtype=float), np.asarray(groups, dtype=np.intp)
    is_there = np.isfinite(x) & (numbers >= 0)
    x, numbers, is_first = _halves(x[is_there], numbers[is_there], rng)
    n_groups = int(numbers.max(initial=-1)) + 1
    is_big = np.bincount(numbers, minlength=n_groups) >= params.min_support
    halves = {}
    for n_bins in params.compared_n_bins:
        cut = bins.model_copy(update={"n_bins": n_bins})
        first, second = (histogram(x[h], numbers[h], n_groups, cut)[is_big] for h in (is_first, ~is_first))
        halves[n_bins] = first, second
    return compare_halves(halves, bins, params, posterior)


def compare_halves(
    halves: Mapping[int, tuple[Counts, Counts]], bins: Bins, params: ShapeParams, posterior: PosteriorParams
) -> pd.DataFrame:
    """The table of compare_bins from the histograms of both halves, by number of bins: (n_groups, n_bins) each."""
    from sklearn.metrics import adjusted_rand_score  # type: ignore[import-untyped, unused-ignore]

    half = params.model_copy(update={"min_support": max(1, params.min_support // 2)})
    rows = []
    for n_bins, (first, second) in halves.items():
        cut = bins.model_copy(update={"n_bins": n_bins})
        k = min(params.k, largest_k(first, cut, half))
        shapes = fit_shapes(first, cut, half.model_copy(update={"k": k})).shapes.centres
        prior = posterior.empty_bin_prior
        log_p = [log_posterior(counts, shapes, empty_bin_prior=prior) for counts in (first, second)]
        stability = adjusted_rand_score(hard_labels(log_p[0]), hard_labels(log_p[1]))
        predicted = np.exp(log_p[0]) @ np.exp(log_shapes(shapes, empty_bin_prior=prior))  # (n_groups, n_bins)
        log_density = np.log(predicted) - np.log(np.r_[1.0, np.full(cut.n_inside, cut.width), 1.0])
        n_second = second.sum()  # none where every job ran once
        log_score = float((second * log_density).sum() / n_second) if n_second else np.nan
        rows.append((n_bins, float(stability), log_score, len(first)))
    return pd.DataFrame(rows, columns=["n_bins", "stability", "log_score", "n_groups"])


def _halves(x: Floats, groups: Labels, rng: np.random.Generator) -> tuple[Floats, Labels, NDArray[np.bool_]]:
    """Runs in an order of their own, and which of them fall in the first half of their group, at random."""
    order = np.lexsort((x, groups))  # the order of the rows must not matter
    order = order[np.lexsort((rng.random(len(x)), groups[order]))]
    x, groups = x[order], groups[order]
    return x, groups, np.arange(len(x)) % 2 == 0
