"""How many shapes there are: the inertia of the clustering by their number, and where that curve bends."""

from dataclasses import dataclass

import numpy as np

from tasks.jobs.pmf import Bins, Counts
from tasks.jobs.shape_params import ShapeParams
from tasks.jobs.shapes import k_means, usable_pmfs


@dataclass(frozen=True)
class InertiaCurve:
    """Inertia by number of clusters: ks, inertias (n_ks,); elbow: a k of them, None where the curve shows none."""

    ks: list[int]
    inertias: list[float]
    elbow: int | None


def inertia_curve(counts: Counts, bins: Bins, params: ShapeParams) -> InertiaCurve:
    """Inertia for k from min_k to max_k, as far as there are different PMFs, and its elbow. Source: section 4.2."""
    _, pmfs = usable_pmfs(np.asarray(counts), bins, params)
    last = min(params.max_k, len(np.unique(pmfs, axis=0)))
    ks = list(range(min(params.min_k, last), last + 1))
    inertias = [k_means(pmfs, k, params)[2] for k in ks]
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
