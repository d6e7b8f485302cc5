"""How far runs lie apart, in deviations between runs of the same workload.

Each statistic of each counter is divided by its deviation within workloads (and inputs, where they are told), so that
what a workload does the same way every time counts most: that is what tells kin apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.identify.levels import LEVELS
from tasks.workloads.identify.params import OpenSetParams
from tasks.workloads.identify.whitening import Whitening, learn_whitening
from tasks.workloads.telemetry import FloatArray

COMPARED = ("mean", "deviation", "early", "late")
PLACES = [LEVELS.index(name) for name in COMPARED]
PRIOR_RUNS = 3.0  # runs that the usual spread of workloads is worth beside a workload's own
LEAST_SPREAD = 1e-3  # of the distance unit, so that runs that are all the same leave a ratio
LEAST_DEVIATION = 0.02  # of asinh(x / u): a level that changes by 2 % is never more than a deviation off


@dataclass(frozen=True)
class Metric:
    """deviations: (f,), within workloads; clip: in deviations; whitening: None for plain deviations."""

    deviations: FloatArray
    clip: float
    whitening: Whitening | None


def compared(levels: FloatArray) -> FloatArray:
    """The statistics of COMPARED out of levels (n_runs, n_counters · n_levels): (n_runs, f)."""
    table = levels.reshape(len(levels), -1, len(LEVELS))
    return np.asarray(table[:, :, PLACES].reshape(len(levels), -1))


def learn_metric(points: FloatArray, clusters: Sequence[str], params: OpenSetParams) -> Metric:
    """From training runs, points (n_runs, f) and what repetitions of each other share.

    A deviation is at least floor_share of that over all runs; one run of everything leaves that alone."""
    residuals = _residuals(points, clusters)
    freedom = max(1, len(residuals) - len(set(clusters)))
    within = np.sqrt(np.sum(residuals**2, axis=0) / freedom)
    overall = points.std(axis=0)
    deviations = np.sqrt(within**2 + (params.floor_share * overall) ** 2)
    deviations = np.maximum(deviations, LEAST_DEVIATION)
    is_white = params.metric == "whitened"
    return Metric(deviations, params.clip, learn_whitening(residuals / deviations) if is_white else None)


def _residuals(points: FloatArray, clusters: Sequence[str]) -> FloatArray:
    labels = np.asarray(clusters)
    found = np.zeros_like(points)
    for cluster in set(clusters):
        own = labels == cluster
        found[own] = points[own] - points[own].mean(axis=0)
    return found


def distances(points: FloatArray, others: FloatArray, metric: Metric) -> FloatArray:
    """Root mean square over statistics of the gap in deviations, each cut at the clip: (n, m).

    NaN in a point (a counter that a run lacks): the statistics that there are count."""
    one, other = points / metric.deviations, others / metric.deviations
    found = np.empty((len(one), len(other)))
    for at, row in enumerate(one):
        gaps = np.clip(other - row, -metric.clip, metric.clip)
        is_there = np.isfinite(gaps)
        gaps = np.where(is_there, gaps, 0.0)
        if metric.whitening is not None:
            gaps = metric.whitening.apply(gaps)
        found[at] = np.sqrt(np.sum(gaps**2, axis=1) / np.maximum(is_there.sum(axis=1), 1))
    return found


def nearest_mean(found: FloatArray, labels: Sequence[str], classes: Sequence[str], k: int) -> FloatArray:
    """Mean distance to the k nearest runs of each workload, fewer where it has fewer: (n, n_classes).

    found: (n, n_known), infinite for a run that must not count; a workload without a run left: infinite."""
    known = np.asarray(labels)
    table = np.full((len(found), len(classes)), np.inf)
    for column, workload in enumerate(classes):
        own = np.sort(found[:, known == workload], axis=1)[:, :k]
        is_there = np.isfinite(own)
        count = is_there.sum(axis=1)
        total = np.where(is_there, own, 0.0).sum(axis=1)
        table[:, column] = np.where(count > 0, total / np.maximum(count, 1), np.inf)
    return table


def usual_distances(
    found: FloatArray, labels: Sequence[str], classes: Sequence[str], folds: NDArray[np.int64], k: int
) -> FloatArray:
    """How far a run of each workload usually is from the others of it that are of other blocks: (n_classes,).

    found: (n, n) between training runs. The median over its runs; workloads with few runs lean on the others."""
    known, is_self = np.asarray(labels), np.eye(len(found), dtype=bool)
    apart = nearest_mean(np.where(folds[:, None] == folds[None, :], np.inf, found), labels, classes, k)
    alone = nearest_mean(np.where(is_self, np.inf, found), labels, classes, k)  # where all are of one block
    either = np.where(np.isfinite(apart), apart, alone)
    own = [either[known == workload, column] for column, workload in enumerate(classes)]
    own = [one[np.isfinite(one)] for one in own]
    pooled = np.concatenate(own) if own else np.zeros(0)
    usual = float(np.median(pooled)) if len(pooled) else 1.0
    spreads = [
        (len(one) * float(np.median(one)) + PRIOR_RUNS * usual) / (len(one) + PRIOR_RUNS) if len(one) else usual
        for one in own
    ]
    return np.asarray(np.maximum(np.array(spreads), LEAST_SPREAD))
