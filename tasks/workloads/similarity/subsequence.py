"""Workloads with unequal numbers of phases: is the shorter one a part of the longer one, and where (CWD, V-D)?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.workloads.similarity.dtw import dtw
from tasks.workloads.similarity.kernels import COSTS
from tasks.workloads.similarity.matched_kernels import EUCLIDEAN, matched_between, matched_pairs
from tasks.workloads.similarity.params import SimilarityParams
from tasks.workloads.similarity.sequences import pack
from tasks.workloads.telemetry import FloatArray


@dataclass(frozen=True)
class Match:
    """How two runs compare.

    distance: of the runs, over the phases compared; offset: phases of the longer run before the shorter one begins;
    phases: (n_compared,), distance of each pair of phases at that offset."""

    distance: float
    offset: int
    phases: FloatArray


def euclidean(one: FloatArray, other: FloatArray) -> float:
    """d = √(Σ (x_i − x_j)²), over all phases of two runs of equal shape (p, d) (eq. 5).

    Raises ValueError for unequal shapes: the distance is not defined for them."""
    if one.shape != other.shape:
        raise ValueError(f"shapes {one.shape} and {other.shape}: Euclidean distance needs equal ones; use match_phases")
    return float(np.sqrt(np.sum((one - other) ** 2)))


def phase_distances(one: FloatArray, other: FloatArray, params: SimilarityParams) -> FloatArray:
    """Distance of phase i of one to phase i of the other, both (p, d): (p,).

    A phase is one vector, so warping has nothing to warp: with `dtw` this is its local cost."""
    gaps = one - other
    if params.distance == "euclidean":
        return np.asarray(np.sqrt(np.sum(gaps**2, axis=1)))
    return np.asarray(np.sum(np.abs(gaps), axis=1) if params.cost == "manhattan" else np.sum(gaps**2, axis=1))


def match_phases(one: FloatArray, other: FloatArray, params: SimilarityParams) -> Match:
    """Compare two runs, phases (m, d) and (n, d); with m ≠ n the shorter one at its best offset in the longer one.

    V-D: ∃ j ∈ ℕ with t_i ≈ t'_(i+j) for all i; every offset from 0 to |m − n| is tried, the smallest distance
    counts, and of equal ones the smallest offset. m = n leaves offset 0 alone."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    windows = [longer[offset : offset + len(shorter)] for offset in range(len(longer) - len(shorter) + 1)]
    found = [run_distance(window, shorter, params) for window in windows]
    offset = int(np.argmin(found))
    return Match(found[offset], offset, phase_distances(windows[offset], shorter, params))


def run_distance(one: FloatArray, other: FloatArray, params: SimilarityParams) -> float:
    """Distance of two runs with equally many phases, by the chosen measure."""
    if params.distance == "euclidean":
        return euclidean(one, other)
    return dtw(one, other, params.cost, params.backend)


def distances_between(runs: Sequence[FloatArray], known: Sequence[FloatArray], params: SimilarityParams) -> FloatArray:
    """Distance of every run, phases (m, d), to every known one, each at its best offset: (n_runs, n_known)."""
    if params.distance == "dtw" and params.backend != "own":
        return np.array([[match_phases(run, one, params).distance for one in known] for run in runs])
    one, other = pack(runs), pack(known)
    return np.asarray(matched_between(one.points, one.starts, other.points, other.starts, _kind(params)))


def distances_of_pairs(runs: Sequence[FloatArray], params: SimilarityParams) -> FloatArray:
    """Distance of every pair of runs, each at its best offset: (n, n), symmetric; each pair is computed once."""
    if params.distance == "dtw" and params.backend != "own":
        return distances_between(runs, runs, params)
    packed = pack(runs)
    return np.asarray(matched_pairs(packed.points, packed.starts, _kind(params)))


def _kind(params: SimilarityParams) -> int:
    return EUCLIDEAN if params.distance == "euclidean" else COSTS[params.cost]
