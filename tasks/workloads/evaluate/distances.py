"""Distances between fingerprints by ED and by DTW (V-D)."""

from collections.abc import Sequence
from typing import Literal, get_args

from tasks.workloads.fingerprints import Fingerprint
from tasks.workloads.similarity.params import SimilarityParams
from tasks.workloads.telemetry import FloatArray

Measure = Literal["ed", "dtw"]
MEASURES: tuple[Measure, ...] = get_args(Measure)


def by_measure(params: SimilarityParams, measure: Measure) -> SimilarityParams:
    """The parameters with this distance."""
    return params.model_copy(update={"distance": "euclidean" if measure == "ed" else "dtw"})


def phases_of(fingerprints: Sequence[Fingerprint]) -> list[FloatArray]:
    """The sequence of phases of each run: (n_phases, n_counters · n_statistics)."""
    return [one.workload_phases for one in fingerprints]
