"""The shapes of one kind from the histograms of a log, with what is asked lowered where the log has too little."""

import logging
from dataclasses import dataclass

import numpy as np

from tasks.jobs.group_counts import GroupCounts, Ints
from tasks.jobs.shape_params import (
    Kind,
    ShapeParams,
)
from tasks.jobs.shapes import (
    NO_LABEL,
    Clustering,
    InertiaCurve,
    ShapeFit,
    fit_shapes,
    inertia_curve,
    largest_k,
    rival_clusterings,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FoundShapes:
    """fit: labels (n_groups,) of all jobs of the log; params: as they were used; groups: (n,) jobs that took part."""

    fit: ShapeFit
    params: ShapeParams
    groups: Ints
    curve: InertiaCurve
    rivals: list[Clustering]


def find_shapes(counts: GroupCounts, kind: Kind, params: ShapeParams, *, label_support: int) -> FoundShapes | None:
    """Shapes, inertia curve and rival clusterings of one kind; None, with a line in the log, if no run is normalised.

    Without a job of params.min_support runs in D1 it is lowered to what the k-th job has, or the first; with fewer
    different distributions than params.k, there are as many shapes. The log says so."""
    support, bins = counts.support(kind), counts.bins[kind]
    if not support.any():
        logger.warning("no %s shapes: no run in the history has a median above 0", kind)
        return None
    used = lowered(support, params, label_support=label_support)
    groups = np.flatnonzero(support >= used.min_support)
    history = counts.dense(kind, groups)
    k = min(used.k, largest_k(history, bins, used))
    if used.min_support < params.min_support:
        told = (kind, params.min_support, used.min_support, len(groups))
        logger.warning("%s shapes: no job has %d runs in the history; min_support %d, which %d jobs have", *told)
    if k < params.k:
        told = (kind, params.k, len(groups), k)
        logger.warning("%s shapes: k %d for %d jobs with %d different distributions; as many shapes", *told)
    used = used.model_copy(update={"k": k})
    fit = fit_shapes(history, bins, used)
    labels = np.full(counts.n_groups, NO_LABEL, dtype=np.intp)
    labels[groups] = fit.labels
    curve, rivals = inertia_curve(history, bins, used), rival_clusterings(history, bins, used)
    return FoundShapes(ShapeFit(fit.shapes, labels), used, groups, curve, rivals)


def lowered(support: Ints, params: ShapeParams, *, label_support: int) -> ShapeParams:
    """The same, with a min_support that some job has: that of the k-th job by runs, but at least label_support.

    support: (n_groups,) runs in D1, not all 0."""
    most = int(support.max())
    if most >= params.min_support:
        return params
    kth = int(np.sort(support)[::-1][: params.k][-1])
    return params.model_copy(update={"min_support": min(most, max(kth, label_support))})
