"""What is learned from the training side of a split: all that identifies runs, without the open-set score."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.evaluate.cohort import Cohort
from tasks.workloads.evaluate.distances import MEASURES, Measure, by_measure, phases_of
from tasks.workloads.fingerprints import Fingerprint
from tasks.workloads.identify.features import features_of, phases_to_tell
from tasks.workloads.identify.fingerprinting import FingerprintMaker, fingerprints_of, learn_fingerprinting
from tasks.workloads.identify.folds import clusters_of, folds_of
from tasks.workloads.identify.judge import Judge, TrainingTable, learn_judge
from tasks.workloads.identify.levels import LevelScale, filled, learn_levels, levels_of
from tasks.workloads.identify.neighbours import compared
from tasks.workloads.identify.params import IdentifyParams
from tasks.workloads.similarity.subsequence import distances_between, distances_of_pairs
from tasks.workloads.similarity.thresholds import Spread, spread_by_workload
from tasks.workloads.telemetry import FloatArray, Telemetry


@dataclass(frozen=True)
class Learned:
    """runs: those learned from, by workload and id; known: their fingerprints; spreads: between runs of each workload
    (Table IV), by measure; features: (n, p), what the trees read."""

    params: IdentifyParams
    runs: list[Telemetry]
    maker: FingerprintMaker
    scale: LevelScale
    known: list[Fingerprint]
    features: FloatArray
    n_phases: int
    judge: Judge
    spreads: dict[Measure, dict[str, Spread]]


@dataclass(frozen=True)
class Seen:
    """Tested runs. to_known: distances to the known runs by measure, (n, n_known). relative: (n, n_classes), distance
    to the nearest runs of each workload over what is usual there. features: (n, p). of_trees: (n, n_classes),
    probabilities of the trees alone; probabilities: of the model, trees and distances together."""

    fingerprints: list[Fingerprint]
    features: FloatArray
    to_known: dict[Measure, FloatArray]
    of_trees: FloatArray
    probabilities: FloatArray
    relative: FloatArray


def learn(cohort: Cohort, train: Sequence[int] | NDArray[np.int64], params: IdentifyParams) -> Learned:
    """Learn from these items as `fit_model` does; scales, trees and spreads know nothing of the others."""
    runs = sorted(cohort.runs(train), key=lambda run: (str(run.workload), run.run_id))
    maker = learn_fingerprinting(runs, params.fingerprint)
    known = fingerprints_of(runs, maker, cuts=cohort.cuts)
    scale = learn_levels(runs, maker.counters)
    levels = filled(levels_of(runs, scale), scale)
    n_phases = phases_to_tell(known, params.features.max_phases)
    features = features_of(known, n_phases, levels, params.features.parts)
    labels = tuple(str(run.workload) for run in runs)
    within = {one: distances_of_pairs(phases_of(known), by_measure(params.similarity, one)) for one in MEASURES}
    table = TrainingTable(
        features=features.values,
        views=features.views,
        points=compared(levels),
        fingerprint_distances=within["ed" if params.similarity.distance == "euclidean" else "dtw"],
        labels=labels,
        clusters=tuple(clusters_of(runs)),
        folds=folds_of(runs, params.open_set.folds),
    )
    return Learned(
        params=params,
        runs=runs,
        maker=maker,
        scale=scale,
        known=known,
        features=features.values,
        n_phases=n_phases,
        judge=learn_judge(table, params, params.trees),
        spreads={measure: spread_by_workload(found, labels) for measure, found in within.items()},
    )


def see(cohort: Cohort, tested: Sequence[int] | NDArray[np.int64], learned: Learned) -> Seen:
    """How these items look to what was learned."""
    params, runs = learned.params, cohort.runs(tested)
    fingerprints = fingerprints_of(runs, learned.maker, cuts=cohort.cuts)
    levels = levels_of(runs, learned.scale)
    complete = filled(levels, learned.scale)
    features = features_of(fingerprints, learned.n_phases, complete, params.features.parts).values
    to_known = {
        one: distances_between(phases_of(fingerprints), phases_of(learned.known), by_measure(params.similarity, one))
        for one in MEASURES
    }
    chosen = to_known["ed" if params.similarity.distance == "euclidean" else "dtw"]
    judgement = learned.judge.judge(features, compared(levels), chosen)
    of_trees = learned.judge.trees.probabilities(features)
    return Seen(fingerprints, features, to_known, of_trees, judgement.probabilities, judgement.relative)
