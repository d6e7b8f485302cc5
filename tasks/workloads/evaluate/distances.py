"""Distances between runs by their phases, and the threshold on them that says what is known (CWD, V-D and VI-C)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tasks.workloads.telemetry import FloatArray

Measure = Literal["ed", "dtw"]  # ed: eq. 5; dtw: local cost |p − q| summed over dimensions (V-D)
DISTANCES: tuple[Measure, ...] = get_args(Measure)
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Match:
    """How two runs compare.

    distance: of the runs, over the phases compared; offset: phases of the longer run before the shorter one begins;
    phases: (n_compared,), distance of each pair of phases at that offset."""

    distance: float
    offset: int
    phases: FloatArray


def match_phases(first: FloatArray, second: FloatArray, measure: Measure = "dtw") -> Match:
    """Compare two runs, phases (m, d) and (n, d); with m ≠ n the shorter one at its best offset in the longer one.

    V-D: ∃ j ∈ ℕ with t_i ≈ t'_(i+j) for all i; every offset from 0 to |m − n| is tried, the smallest distance
    counts, and of equal ones the smallest offset. m = n leaves offset 0 alone."""
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    windows = [longer[offset : offset + len(shorter)] for offset in range(len(longer) - len(shorter) + 1)]
    distances = [float(distances_between([window], [shorter], measure)[0, 0]) for window in windows]
    offset = int(np.argmin(distances))
    gaps = windows[offset] - shorter
    # a phase is one vector, so warping has nothing to warp: with DTW this is its local cost
    phases = np.abs(gaps).sum(axis=1) if measure == "dtw" else np.linalg.norm(gaps, axis=1)
    return Match(distances[offset], offset, np.asarray(phases))


def distances_between(runs: Sequence[FloatArray], known: Sequence[FloatArray], measure: Measure = "dtw") -> FloatArray:
    """Distance of every run, phases (m, d), to every known one, each at its best offset: (n_runs, n_known).

    Raises ValueError for an empty run, unequal d, or a value that is not finite."""
    return np.asarray(_matched(*_packed(runs), *_packed(known), measure == "dtw", are_pairs=False))


def distances_of_pairs(runs: Sequence[FloatArray], measure: Measure = "dtw") -> FloatArray:
    """Distance of every pair of runs, each at its best offset: (n, n), symmetric; each pair is computed once."""
    packed = _packed(runs)
    above = np.asarray(_matched(*packed, *packed, measure == "dtw", are_pairs=True))
    return above + above.T


def _packed(sequences: Sequence[FloatArray]) -> tuple[FloatArray, Indices]:
    """Sequences one after another, (sum of lengths, d), C-contiguous, and where each begins, (n + 1,)."""
    shaped = [np.asarray(sequence, dtype=np.float64) for sequence in sequences]
    for position, sequence in enumerate(shaped):
        if sequence.shape[0] == 0:
            raise ValueError(f"sequence {position} is empty; a distance needs at least one phase")
        if sequence.shape[1] != shaped[0].shape[1]:
            raise ValueError(f"sequence {position} has {sequence.shape[1]} dimensions, the first {shaped[0].shape[1]}")
        if not np.isfinite(sequence).all():
            raise ValueError(f"sequence {position} holds a value that is not finite")
    points = np.concatenate(shaped) if shaped else np.empty((0, 0))
    starts = np.cumsum([0, *(len(sequence) for sequence in shaped)])
    return np.ascontiguousarray(points), starts.astype(np.int64)


@njit(cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, boundscheck=False)
def _row_of_costs(point: FloatArray, turned: FloatArray, costs: FloatArray) -> None:
    """costs[j] = sum over k of |point[k] − turned[k, j]|."""
    for j in range(costs.shape[0]):
        costs[j] = 0.0
    for k in range(point.shape[0]):
        value = point[k]
        for j in range(costs.shape[0]):
            costs[j] += abs(value - turned[k, j])


@njit(cache=True, fastmath={"nnan"}, boundscheck=False)
def _warp(points: FloatArray, turned: FloatArray, ceiling: float) -> float:
    """Least total cost over all warping paths of points: (n, d) and turned: (d, m), both C-contiguous.

    w_k = (i, j) moves to (i+1, j), (i, j+1) or (i+1, j+1). Gives up with infinity as soon as no path can stay at or
    below `ceiling`: every path crosses every row."""
    n, m = points.shape[0], turned.shape[1]
    row, costs, reached = np.full(m + 1, np.inf), np.empty(m), np.empty(m)
    row[0] = 0.0
    for i in range(n):
        _row_of_costs(points[i], turned, costs)
        for j in range(m):
            reached[j] = min(row[j], row[j + 1]) + costs[j]
        row[0] = left = least = np.inf
        for j in range(m):
            left = min(reached[j], left + costs[j])
            row[j + 1] = left
            least = min(least, left)
        if least > ceiling:
            return np.inf
    return float(row[m])


@njit(cache=True, boundscheck=False)
def _at_best_offset(first: FloatArray, second: FloatArray, is_warped: bool) -> float:
    """Smallest distance of the shorter run to any part of the longer one that has as many phases."""
    longer, shorter = (first, second) if first.shape[0] >= second.shape[0] else (second, first)
    n = shorter.shape[0]
    turned = np.ascontiguousarray(shorter.T)
    best = np.inf
    for offset in range(longer.shape[0] - n + 1):
        window = longer[offset : offset + n]
        # eq. 5: over all phases
        best = min(best, _warp(window, turned, best) if is_warped else np.sqrt(((window - shorter) ** 2).sum()))
    return best


@njit(cache=True, boundscheck=False)
def _matched(
    points: FloatArray,
    starts: Indices,
    others: FloatArray,
    other_starts: Indices,
    is_warped: bool,
    are_pairs: bool,
) -> FloatArray:
    """(n, m) distances; of the pairs of one set of runs those above the diagonal alone."""
    n, m = starts.shape[0] - 1, other_starts.shape[0] - 1
    distances = np.zeros((n, m))
    for a in range(n):
        for b in range(a + 1 if are_pairs else 0, m):
            first, second = points[starts[a] : starts[a + 1]], others[other_starts[b] : other_starts[b + 1]]
            distances[a, b] = _at_best_offset(first, second, is_warped)
    return distances


def radii_of(distances: FloatArray, workloads: Sequence[str]) -> dict[str, float]:
    """The radius of each workload (VI-C): the mean distance over all pairs of its runs. distances: (n, n). One run:
    absent."""
    labels, radii = np.asarray(workloads), {}
    for workload in dict.fromkeys(workloads):
        inner = distances[np.ix_(labels == workload, labels == workload)]
        if len(inner) > 1:
            radii[workload] = float(np.mean(inner[np.triu_indices(len(inner), k=1)]))
    return radii


def nearest_workloads(
    distances: FloatArray,
    n_phases: Sequence[int],
    known_phases: Sequence[int],
    known_workloads: Sequence[str],
    radii: Mapping[str, float],
) -> tuple[list[str], NDArray[np.bool_]]:
    """Classify runs by their distances (n_runs, n_known) to known ones (V-D): candidates are the known runs with as
    many phases, or the nearest number of them; the nearest candidate names, and its workload's threshold confirms: a
    distance that runs of it have among each other in the mean (the radius of VI-C). The
    workload of each run, and whether it is confirmed: one that is not is unknown.

    A workload that was seen once has no radius, and confirms nothing but itself: distance 0.
    Raises ValueError without a known run."""
    if distances.shape[1] == 0:
        raise ValueError("no known run to compare with; expected at least one")
    gaps = np.abs(np.asarray(known_phases)[None, :] - np.asarray(n_phases)[:, None])
    is_candidate = gaps == gaps.min(axis=1, keepdims=True)
    positions = np.where(is_candidate, distances, np.inf).argmin(axis=1)
    nearest = distances[np.arange(len(positions)), positions]
    workloads = [known_workloads[position] for position in positions]
    return workloads, nearest <= np.array([radii.get(workload, 0.0) for workload in workloads])
