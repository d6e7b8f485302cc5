"""The distance classifier of V-D: candidates by number of phases, the nearest of them, and its workload's threshold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.similarity.params import SimilarityParams
from tasks.workloads.similarity.thresholds import Spread, confirmed
from tasks.workloads.telemetry import FloatArray


@dataclass(frozen=True)
class Verdicts:
    """For each run: the nearest known workload, its distance, position of the nearest run, and whether it is confirmed.

    A run that is not confirmed is unknown, with the nearest workload named."""

    workloads: tuple[str, ...]
    distances: FloatArray
    positions: NDArray[np.int64]
    is_known: NDArray[np.bool_]


def candidates(n_phases: int, known_phases: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The known runs with as many phases; if there are none, those whose number is nearest."""
    gaps = np.abs(known_phases - n_phases)
    return np.asarray(gaps == gaps.min())


def nearest_workloads(
    distances: FloatArray,
    n_phases: Sequence[int],
    known_phases: Sequence[int],
    known_workloads: Sequence[str],
    spreads: Mapping[str, Spread],
    params: SimilarityParams,
) -> Verdicts:
    """Classify runs by their distances (n_runs, n_known) to known ones. Raises ValueError without a known run."""
    if distances.shape[1] == 0:
        raise ValueError("no known run to compare with; expected at least one")
    phases = np.asarray(known_phases)
    allowed = np.array([candidates(one, phases) for one in n_phases]).reshape(distances.shape)
    positions = np.where(allowed, distances, np.inf).argmin(axis=1)
    nearest = distances[np.arange(len(positions)), positions]
    workloads = tuple(known_workloads[position] for position in positions)
    return Verdicts(workloads, nearest, positions, confirmed(nearest, workloads, spreads, params))
