"""Groupings to compare with: Tarema's as it was published, k-means by silhouette, and a tree cut at the known noise."""

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.stats import chi2

from tasks.advice.groups import SMALLEST, quartile_levels
from tasks.advice.machines import Floats, Ints
from tasks.errors import BadInput

TAREMA_GROUPS = 3  # the smallest k that the original tries, and the one that it always takes
K_MEANS_STARTS = 10


@dataclass(frozen=True)
class DistinctGroups:
    """Numbers of the groups from a plain method, for comparison: groups (n,), levels (k, d) where it gives labels."""

    groups: Ints
    levels: Ints


def tarema_groups(scores: Floats, rng: np.random.Generator) -> DistinctGroups:
    """The original's variant: k-means++ with k = 3 on unscaled scores, labels by quartiles of the centres.

    scores: (n, d), n >= 3. The published code means to choose k by silhouette and takes 3 always. Source: Bader et al.
    (2021) and its published client. Raises BadInput for fewer than 3 machines."""
    from sklearn.cluster import KMeans  # type: ignore[import-untyped, unused-ignore]

    if len(scores) < TAREMA_GROUPS:
        raise BadInput("scores", f"{len(scores)} machines", f"at least {TAREMA_GROUPS}, as the original needs")
    model = KMeans(TAREMA_GROUPS, n_init=1, random_state=int(rng.integers(2**31))).fit(scores)
    levels = np.stack([quartile_levels(centres) for centres in model.cluster_centers_.T], axis=1)
    return DistinctGroups(model.labels_.astype(np.int64), levels)


def silhouette_groups(log_scores: Floats, rng: np.random.Generator, max_groups: int = 10) -> Ints:
    """k-means on log scores scaled to deviation 1, with the k from 2 that has the best mean silhouette: (n,)."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score  # type: ignore[import-untyped, unused-ignore]

    x = (log_scores - log_scores.mean(axis=0)) / np.maximum(log_scores.std(axis=0), SMALLEST)
    seeds = rng.integers(2**31, size=max_groups + 1)
    candidates = [
        KMeans(k, n_init=K_MEANS_STARTS, random_state=int(seeds[k])).fit(x).labels_.astype(np.int64)
        for k in range(2, min(len(x) - 1, max_groups) + 1)
    ]
    return max(candidates, key=lambda groups: float(silhouette_score(x, groups)))


def noise_cut_groups(log_scores: Floats, deviations: Floats, confidence: float = 0.95) -> Ints:
    """Complete linkage cut where no two of n machines of one kind would be further apart by noise: (n,).

    deviations: (d,) of a log score, known. Bonferroni over the pairs."""
    n, d = log_scores.shape
    distance = np.sqrt(2 * chi2.ppf(1 - (1 - confidence) / (n * (n - 1) / 2), d))
    tree = linkage(log_scores / deviations, "complete")
    return np.asarray(fcluster(tree, distance, "distance") - 1, dtype=np.int64)
