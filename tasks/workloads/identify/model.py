"""What is learned from labelled runs: everything that identifies others later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.workloads.fingerprints import Fingerprint
from tasks.workloads.identify.cutting import Cut
from tasks.workloads.identify.features import features_of, phases_to_tell
from tasks.workloads.identify.fingerprinting import FingerprintMaker, fingerprints_of, learn_fingerprinting
from tasks.workloads.identify.folds import clusters_of, folds_of
from tasks.workloads.identify.judge import Judge, TrainingTable, judge_with
from tasks.workloads.identify.levels import LevelScale, filled, learn_levels, levels_of
from tasks.workloads.identify.neighbours import compared
from tasks.workloads.identify.open_set import OpenSet, learn_open_set
from tasks.workloads.identify.params import IdentifyParams
from tasks.workloads.identify.trees import fit_trees
from tasks.workloads.normalisation import columns_of
from tasks.workloads.phases import Bounds
from tasks.workloads.similarity.subsequence import distances_of_pairs
from tasks.workloads.telemetry import FloatArray, Telemetry


@dataclass(frozen=True)
class KnownRun:
    """A training run that others are compared with. workload_phases: (n_phases, n_counters · k) (V-D).

    phase_means: (n_phases, n_counters), raw values, for words about what matched."""

    run_id: str
    workload: str
    input: str | None
    workload_phases: FloatArray
    phase_means: FloatArray


@dataclass(frozen=True)
class Model:
    """n_phases: q of the padded fingerprint. known: training runs, in the order of the judge's; of many runs of a
    workload a sample. learned_ids: all training runs. judge and open_set: what decides."""

    params: IdentifyParams
    maker: FingerprintMaker
    levels: LevelScale
    n_phases: int
    known: tuple[KnownRun, ...]
    learned_ids: tuple[str, ...]
    judge: Judge
    open_set: OpenSet

    @property
    def workloads(self) -> tuple[str, ...]:
        """The known workloads, sorted."""
        return self.judge.classes


@dataclass(frozen=True)
class Described:
    """Runs as a model sees them. features: (n, p), finite; points: (n, f), NaN: a counter that a run lacks."""

    fingerprints: list[Fingerprint]
    features: FloatArray
    points: FloatArray


def fit_model(runs: Sequence[Telemetry], params: IdentifyParams, *, cuts: Mapping[str, Cut] | None = None) -> Model:
    """Learn from labelled runs; their order, and that of their counters, changes nothing.

    cuts: phases found before, by run id. Raises BadInput without a run, for one without a label, and if the runs have
    no counter in common."""
    ordered = sorted(runs, key=lambda run: (str(run.workload), run.run_id))
    for run in ordered:
        if run.workload is None:
            raise BadInput(f"run {run.run_id}", "has no workload", "labelled runs to learn from", "name what ran")
    maker = learn_fingerprinting(ordered, params.fingerprint)
    fingerprints = fingerprints_of(ordered, maker, cuts=cuts)
    scale = learn_levels(ordered, maker.counters)
    n_phases = phases_to_tell(fingerprints, params.features.max_phases)
    levels = filled(levels_of(ordered, scale), scale)
    features = features_of(fingerprints, n_phases, levels, params.features.parts)
    labels = [str(run.workload) for run in ordered]
    kept = _sample(labels, params.open_set.most_runs)
    known = tuple(_known(ordered[at], fingerprints[at], maker) for at in kept)
    table = TrainingTable(
        features=features.values[kept],
        views=features.views,
        points=compared(levels[kept]),
        fingerprint_distances=distances_of_pairs([one.workload_phases for one in known], params.similarity),
        labels=tuple(one.workload for one in known),
        clusters=tuple(clusters_of([ordered[at] for at in kept])),
        folds=folds_of(ordered, params.open_set.folds)[kept],
    )
    trees = fit_trees(features.values, labels, params.trees, params.seed, features.views)
    judge = judge_with(trees, table, params)
    learned_ids = tuple(run.run_id for run in ordered)
    return Model(params, maker, scale, n_phases, known, learned_ids, judge, learn_open_set(table, params))


def describe(runs: Sequence[Telemetry], model: Model, *, cuts: Mapping[str, Cut] | None = None) -> Described:
    """Runs as the trees and the distances of a model read them. Raises ValueError for a run without samples."""
    fingerprints = fingerprints_of(runs, model.maker, cuts=cuts)
    levels = levels_of(runs, model.levels)
    table = features_of(fingerprints, model.n_phases, filled(levels, model.levels), model.params.features.parts)
    return Described(fingerprints, table.values, compared(levels))


def phase_means(run: Telemetry, maker: FingerprintMaker, bounds: Bounds) -> FloatArray:
    """Mean of each counter in each phase of the workload, in its own unit: (n_phases, n_counters); NaN: no value."""
    values = columns_of(run, maker.names)
    is_there = np.isfinite(values)
    known = np.where(is_there, values, 0.0)
    rows = []
    for start, end in pairwise(bounds):
        count = is_there[start:end].sum(axis=0)
        rows.append(np.where(count > 0, known[start:end].sum(axis=0) / np.maximum(count, 1), np.nan))
    return np.array(rows)


def _known(run: Telemetry, seen: Fingerprint, maker: FingerprintMaker) -> KnownRun:
    means = phase_means(run, maker, seen.workload_bounds)
    return KnownRun(run.run_id, str(run.workload), run.input, seen.workload_phases, means)


def _sample(labels: Sequence[str], most: int) -> NDArray[np.int64]:
    """Places of at most so many runs of each workload, evenly over their order, rising."""
    names = np.asarray(labels)
    kept = []
    for workload in sorted(set(labels)):
        own = np.flatnonzero(names == workload)
        at = np.unique(np.linspace(0, len(own) - 1, min(len(own), most)).round().astype(np.int64))
        kept.append(own[at])
    return np.sort(np.concatenate(kept))
