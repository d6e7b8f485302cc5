"""Other clusterings of the same distributions, and how lopsided they are."""

from dataclasses import dataclass

import numpy as np

from tasks.jobs.pmf import Bins, Counts
from tasks.jobs.shape_params import ShapeParams
from tasks.jobs.shapes import NO_LABEL, Labels, k_means, usable_pmfs


@dataclass(frozen=True)
class Clustering:
    """labels: (n_groups,), -1 outside the sample; largest_share: of the labelled groups, in the largest cluster."""

    method: str
    labels: Labels
    largest_share: float


def rival_clusterings(counts: Counts, bins: Bins, params: ShapeParams) -> list[Clustering]:
    """K-means, agglomerative and hierarchical clustering (a dendrogram cut at k), with their imbalance.

    All see the same smoothed PMFs, of at most max_linked_groups groups drawn by params.seed. Source: section 4.2,
    where the last two put over 90 % of the data into one cluster."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from sklearn.cluster import AgglomerativeClustering  # type: ignore[import-untyped, unused-ignore]

    is_used, pmfs = usable_pmfs(np.asarray(counts), bins, params)
    rng, at = np.random.default_rng(params.seed), np.flatnonzero(is_used)
    chosen = np.sort(rng.permutation(len(at))[: params.max_linked_groups])
    pmfs, at, k = pmfs[chosen], at[chosen], params.k
    found = {"k-means": k_means(pmfs, k, params)[0]}  # also refuses a k that is too large
    agglomerative, hierarchical = params.agglomerative_linkage, params.hierarchical_linkage
    model = AgglomerativeClustering(k, linkage=agglomerative)
    found[f"agglomerative ({agglomerative})"] = model.fit_predict(pmfs) if len(pmfs) > 1 else np.zeros(1, np.intp)
    tree = linkage(pmfs, hierarchical) if len(pmfs) > 1 else None
    cut = np.zeros(1, np.intp) if tree is None else fcluster(tree, k, criterion="maxclust") - 1
    found[f"hierarchical ({hierarchical})"] = cut
    clusterings = []
    for method, members in found.items():
        labels = np.full(len(is_used), NO_LABEL, dtype=np.intp)
        labels[at] = members
        clusterings.append(Clustering(method, labels, float(np.bincount(members).max() / len(members))))
    return clusterings
