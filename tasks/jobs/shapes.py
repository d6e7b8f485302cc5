"""Typical distributions, the shapes: K-means over the PMFs of jobs, and how likely each is for a group of runs."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from tasks.jobs.normalisation import SMOOTHING_BINS, Bins, Counts, Floats, pmfs_of, quantiles, smooth
from tasks.jobs.params import ShapeParams

EMPTY_BIN_PRIOR = 0.001  # of each shape, spread evenly over all bins


def log_shapes(shapes: ArrayLike, *, empty_bin_prior: float = EMPTY_BIN_PRIOR) -> Floats:
    """log theta, with no bin impossible: (1 - a) theta + a / H, for a = empty_bin_prior and H bins.

    shapes: (K, H), rows are scaled to sum 1. Returns (K, H). One run in an empty bin would exclude a shape for good.
    Not in the paper."""
    theta = np.atleast_2d(np.asarray(shapes, dtype=float))
    theta = theta / theta.sum(axis=1, keepdims=True)
    return np.asarray(np.log((1 - empty_bin_prior) * theta + empty_bin_prior / theta.shape[1]))


def log_likelihood(counts: ArrayLike, shapes: ArrayLike, *, empty_bin_prior: float = EMPTY_BIN_PRIOR) -> Floats:
    """sum_h n_h log theta_h, the sum of equation 8, as one matrix product: (n_groups, K).

    counts: (n_groups, H) runs of each group in each bin; shapes: (K, H). These are the values of Figure 6."""
    n_h = np.atleast_2d(np.asarray(counts, dtype=float))
    return np.asarray(n_h @ log_shapes(shapes, empty_bin_prior=empty_bin_prior).T)  # (n_groups, H) @ (H, K)


def log_posterior(counts: ArrayLike, shapes: ArrayLike, *, empty_bin_prior: float = EMPTY_BIN_PRIOR) -> Floats:
    """log p(z | x_1 … x_N) = sum_h n_h log theta_h - constant, so that exp of a row sums to 1: shapes are as likely
    beforehand.

    counts: (n_groups, H); shapes: (K, H). Returns (n_groups, K); for a group without runs all are alike. Source: Zhu et
    al. 2023, equations 4, 7 and 8."""
    return posterior_of(log_likelihood(counts, shapes, empty_bin_prior=empty_bin_prior))


def posterior_of(log_likelihoods: ArrayLike) -> Floats:
    """log p(z | x_1 … x_N) from the log likelihoods of the shapes: both (n_groups, K)."""
    from scipy.special import logsumexp  # not above: pages import this module, and need none of it

    values = np.atleast_2d(np.asarray(log_likelihoods, dtype=float))
    return np.asarray(values - logsumexp(values, axis=1, keepdims=True))


def hard_labels(log_posteriors: ArrayLike) -> NDArray[np.intp]:
    """The most probable shape of each group, of equal ones the first: (n_groups,). Source: section 5.2."""
    return np.asarray(np.argmax(np.atleast_2d(np.asarray(log_posteriors)), axis=1))


Labels = NDArray[np.intp]
NO_LABEL = -1
STARTS, SEED = 10, 0  # of K-means, of which the best is kept
KS = range(1, 13)  # of the inertia curve
TABLE_COLUMNS = ["n_groups", "n_runs", "outlier_percent", "p25_p75", "p95", "std"]


@dataclass(frozen=True)
class ShapeSet:
    """K shapes, by rising 25th-75th gap. centres: (K, n_bins) rows sum to 1; n_groups: (K,) groups in each; inertia: of
    the clustering they come from."""

    bins: Bins
    centres: Floats
    n_groups: Counts
    inertia: float

    def to_json(self) -> str:
        """One JSON object; from_json gives the same bits back."""
        arrays = {name: getattr(self, name).tolist() for name in ("centres", "n_groups")}
        return json.dumps({"bins": self.bins.model_dump(), **arrays, "inertia": self.inertia})

    @classmethod
    def from_json(cls, text: str) -> "ShapeSet":
        """What to_json wrote. Raises ValueError, KeyError or TypeError for anything else."""
        content = json.loads(text)
        bins, k = Bins(**content["bins"]), len(content["n_groups"])
        centres = np.array(content["centres"], dtype=float)
        if centres.shape != (k, bins.n_bins) or not np.allclose(centres.sum(axis=1), 1):
            raise ValueError("shapes: sizes or sums do not agree")
        return cls(bins, centres, np.array(content["n_groups"], dtype=np.int64), float(content["inertia"]))


@dataclass(frozen=True)
class ShapeFit:
    """Shapes and the shape of each group: labels (n_groups,), -1 for a group without enough support."""

    shapes: ShapeSet
    labels: Labels


def fit_shapes(counts: Counts, bins: Bins, params: ShapeParams) -> ShapeFit:
    """K-means over the smoothed PMFs of the groups with enough runs, ranked by 25th-75th gap, smallest first.

    counts: (n_groups, n_bins), of which largest_k allows params.k shapes. The gap is read off the pooled runs of the
    members, to the resolution of a bin; rank_by_runs makes it exact. Source: Zhu et al. 2023, section 4.2."""
    counts = np.asarray(counts)
    is_used, pmfs = usable_pmfs(counts, bins, params)
    used_labels, centres, inertia = k_means(pmfs, params.k)
    labels = np.full(len(counts), NO_LABEL, dtype=np.intp)
    labels[is_used] = used_labels
    sizes = np.bincount(used_labels, minlength=params.k)
    pooled = np.stack([counts[labels == shape].sum(axis=0) for shape in range(params.k)])
    quartiles = quantiles(pmfs_of(pooled), bins, [0.25, 0.75])
    fit = ShapeFit(ShapeSet(bins, centres, sizes, inertia), labels)
    return in_order(fit, np.argsort(quartiles[:, 1] - quartiles[:, 0], kind="stable"))


def rank_by_runs(fit: ShapeFit, values: ArrayLike, groups: ArrayLike) -> tuple[ShapeFit, pd.DataFrame]:
    """The shapes by the exact 25th-75th gap of their members' runs, and Table 2 of them, one row a shape.

    values: (n_runs,) normalised; groups: (n_runs,) rows of fit.labels, or -1. Columns: n_groups, n_runs,
    outlier_percent, p25_p75, p95 and std (n - 1; ratio or seconds). An outlier lies in the open upper bin of the
    shapes; missing values are left out, outliers are in all figures. Source: section 4.2, Table 2."""
    x, numbers, bins = np.asarray(values, dtype=float), np.asarray(groups, dtype=np.intp), fit.shapes.bins
    labels = np.where((numbers >= 0) & np.isfinite(x), fit.labels[numbers], NO_LABEL)
    rows = []
    for shape in range(len(fit.shapes.n_groups)):
        runs = x[labels == shape]
        p25, p75, p95 = np.quantile(runs, [0.25, 0.75, 0.95]) if len(runs) else (np.nan,) * 3
        outlier_percent = 100 * np.mean(bins.index(runs) == bins.n_bins - 1) if len(runs) else np.nan
        std = np.std(runs, ddof=1) if len(runs) > 1 else np.nan
        rows.append([fit.shapes.n_groups[shape], len(runs), outlier_percent, p75 - p25, p95, std])
    table = pd.DataFrame(rows, columns=TABLE_COLUMNS).astype({"n_groups": np.int64, "n_runs": np.int64})
    order = table["p25_p75"].to_numpy().argsort(kind="stable")
    return in_order(fit, order), table.iloc[order].reset_index(drop=True)


def k_means(pmfs: Floats, k: int) -> tuple[Labels, Floats, float]:
    """Labels (n_groups,), centres (k, n_bins) and inertia, the sum of squared distances to the centres.

    k: at most the number of different PMFs. Equal ones are merged and weighted, in sorted order: the order of the
    groups changes nothing. One thread: sums of several end in any order."""
    from sklearn.cluster import KMeans  # type: ignore[import-untyped, unused-ignore]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

    distinct, member_of, weights = np.unique(pmfs, axis=0, return_inverse=True, return_counts=True)
    with threadpool_limits(1):
        model = KMeans(k, n_init=STARTS, random_state=SEED).fit(distinct, sample_weight=weights)
    centres = np.clip(model.cluster_centers_, 0, None)  # rounding below 0
    return (
        model.labels_.astype(np.intp)[member_of.ravel()],
        centres / centres.sum(axis=1, keepdims=True),
        float(model.inertia_),
    )


def largest_k(counts: Counts, bins: Bins, params: ShapeParams) -> int:
    """The most shapes that these histograms allow: one for each different PMF."""
    return len(np.unique(usable_pmfs(np.asarray(counts), bins, params)[1], axis=0))


def usable_pmfs(counts: Counts, bins: Bins, params: ShapeParams) -> tuple[NDArray[np.bool_], Floats]:
    """Which groups have enough support, (n_groups,), and their smoothed PMFs, (n_used, n_bins)."""
    is_used = counts.sum(axis=1) >= params.min_support
    return is_used, smooth(pmfs_of(counts[is_used]), bins, SMOOTHING_BINS)


def in_order(fit: ShapeFit, order: NDArray[np.intp]) -> ShapeFit:
    """The same shapes, numbered by `order`, which holds their old numbers: (k,)."""
    new_of_old = np.append(np.argsort(order), NO_LABEL)  # -1 stays -1
    shapes = replace(fit.shapes, centres=fit.shapes.centres[order], n_groups=fit.shapes.n_groups[order])
    return ShapeFit(shapes, new_of_old[fit.labels])


@dataclass(frozen=True)
class InertiaCurve:
    """Inertia by number of clusters: ks, inertias (n_ks,); elbow: a k of them, None where the curve shows none."""

    ks: list[int]
    inertias: list[float]
    elbow: int | None


def inertia_curve(counts: Counts, bins: Bins, params: ShapeParams) -> InertiaCurve:
    """Inertia for k from 1 to 12, as far as there are different PMFs, and its elbow. Source: section 4.2."""
    _, pmfs = usable_pmfs(np.asarray(counts), bins, params)
    last = min(KS[-1], len(np.unique(pmfs, axis=0)))
    ks = list(range(KS[0], last + 1))
    inertias = [k_means(pmfs, k)[2] for k in ks]
    return InertiaCurve(ks, inertias, elbow(ks, inertias))


def elbow(ks: list[int], inertias: list[float]) -> int | None:
    """The k whose point lies deepest below the chord from the first to the last, both axes scaled to [0, 1].

    None for fewer than three points, or a curve that nowhere lies below its chord. Source: the criterion of Kneedle
    (Satopää et al. 2011), without its smoothing and thresholds; the paper picks by eye."""
    if len(ks) < 3 or inertias[0] <= inertias[-1]:
        return None
    x = (np.array(ks) - ks[0]) / (ks[-1] - ks[0])
    y = (np.array(inertias) - inertias[-1]) / (inertias[0] - inertias[-1])
    depth = 1 - x - y  # the chord is y = 1 - x
    rounding = 1e-9
    return ks[int(depth.argmax())] if depth.max() > rounding else None
