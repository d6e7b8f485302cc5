"""What judges runs: trees, distances to known runs, and thresholds, learned from one set of training runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.identify.evidence import beyond_threshold, evidence_of
from tasks.workloads.identify.features import Views
from tasks.workloads.identify.neighbours import Metric, distances, learn_metric, nearest_mean, usual_distances
from tasks.workloads.identify.params import IdentifyParams, TreeParams
from tasks.workloads.identify.trees import Trees, fit_trees
from tasks.workloads.similarity.thresholds import Spread, spread_by_workload
from tasks.workloads.telemetry import FloatArray

LEAST_PROBABILITY = 1e-3  # of a workload that the trees rule out


@dataclass(frozen=True)
class TrainingTable:
    """Training runs as numbers, row by row.

    features: (n, p), for the trees; views: columns of it that they learn from apart. points: (n, f), what distances
    compare. fingerprint_distances: (n, n) (V-D).
    labels, clusters: workload of each run, and what its repetitions share. folds: (n,), the block of each."""

    features: FloatArray
    views: Views
    points: FloatArray
    fingerprint_distances: FloatArray
    labels: tuple[str, ...]
    clusters: tuple[str, ...]
    folds: NDArray[np.int64]

    def rows(self, chosen: NDArray[np.bool_]) -> "TrainingTable":
        """Some of the runs. chosen: (n,)."""
        at = np.flatnonzero(chosen)
        return TrainingTable(
            self.features[at],
            self.views,
            self.points[at],
            self.fingerprint_distances[np.ix_(at, at)],
            tuple(self.labels[place] for place in at),
            tuple(self.clusters[place] for place in at),
            self.folds[at],
        )


@dataclass(frozen=True)
class Judgement:
    """probabilities: (n, n_classes), of trees and distances together. gaps: (n, n_known), distances to known runs.

    relative: (n, n_classes), mean gap to the nearest runs of each workload in multiples of what is usual there.
    evidence: (n, n_evidence)."""

    probabilities: FloatArray
    gaps: FloatArray
    relative: FloatArray
    evidence: FloatArray


@dataclass(frozen=True)
class Judge:
    """points: (n_known, f), labels: of the known runs. usual: (n_classes,), distance between a workload's own runs.
    spreads: of fingerprint distances, by workload (Table IV). neighbours, deviations, distance_weight: parameters."""

    trees: Trees
    metric: Metric
    points: FloatArray
    labels: tuple[str, ...]
    usual: FloatArray
    spreads: dict[str, Spread]
    neighbours: int
    deviations: float
    distance_weight: float

    @property
    def classes(self) -> tuple[str, ...]:
        """The known workloads, sorted."""
        return self.trees.classes

    def judge(self, features: FloatArray, points: FloatArray, fingerprint_distances: FloatArray) -> Judgement:
        """Judge runs. features: (n, p); points: (n, f), NaN: missing; fingerprint_distances: (n, n_known)."""
        gaps = distances(points, self.points, self.metric)
        means = nearest_mean(gaps, self.labels, self.classes, self.neighbours)
        probabilities = self.trees.probabilities(features)
        beyond = beyond_threshold(fingerprint_distances, self.labels, self.spreads, self.deviations)
        evidence = evidence_of(probabilities, means, self.usual, beyond)
        together = weighed(probabilities, means / np.median(self.usual), self.distance_weight)
        return Judgement(together, gaps, means / self.usual, evidence)


def learn_judge(table: TrainingTable, params: IdentifyParams, trees: TreeParams) -> Judge:
    """Learn trees and distances from training runs. trees: given apart, as many judges need fewer boosters each."""
    return judge_with(fit_trees(table.features, table.labels, trees, params.seed, table.views), table, params)


def judge_with(trees: Trees, table: TrainingTable, params: IdentifyParams) -> Judge:
    """Learn distances from training runs. trees: fitted on them, or on more runs of the same workloads."""
    asked = params.open_set
    metric = learn_metric(table.points, table.clusters, asked)
    gaps = distances(table.points, table.points, metric)
    return Judge(
        trees=trees,
        metric=metric,
        points=table.points,
        labels=table.labels,
        usual=usual_distances(gaps, table.labels, trees.classes, table.folds, asked.neighbours),
        spreads=spread_by_workload(table.fingerprint_distances, table.labels),
        neighbours=asked.neighbours,
        deviations=params.similarity.deviations,
        distance_weight=params.trees.distance_weight,
    )


def weighed(probabilities: FloatArray, far: FloatArray, weight: float) -> FloatArray:
    """Trees and distances together: p · e^(−weight · far), rows sum to 1: (n, n_classes).

    far: (n, n_classes), distance to each workload in multiples of what is usual within workloads. Trees see single
    counters move, distances all of them at once; they err on different runs."""
    logs = np.log(probabilities + LEAST_PROBABILITY) - weight * (far - far.min(axis=1, keepdims=True))
    found = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def chosen_classes(classes: Sequence[str], most: int) -> list[str]:
    """At most so many of the workloads, evenly over their order."""
    if len(classes) <= most:
        return list(classes)
    return [classes[at] for at in np.linspace(0, len(classes) - 1, most).round().astype(int)]
