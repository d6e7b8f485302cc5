"""Distances between runs of unequal numbers of phases, each pair at its best offset, compiled by numba (CWD, V-D)."""

import numpy as np
from numba import njit

from tasks.workloads.similarity.kernels import Indices, warp
from tasks.workloads.telemetry import FloatArray

EUCLIDEAN = -1  # beside the costs of DTW


@njit(cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, boundscheck=False)
def _straight(one: FloatArray, other: FloatArray) -> float:
    """Euclidean distance of two runs of equal shape (p, d)."""
    total = 0.0
    for i in range(one.shape[0]):
        for k in range(one.shape[1]):
            total += (one[i, k] - other[i, k]) ** 2
    return float(np.sqrt(total))


@njit(cache=True, boundscheck=False)
def _at_best_offset(one: FloatArray, other: FloatArray, cost: int) -> float:
    """Smallest distance of the shorter run to any part of the longer one that has as many phases."""
    longer, shorter = (one, other) if one.shape[0] >= other.shape[0] else (other, one)
    n = shorter.shape[0]
    turned = np.ascontiguousarray(shorter.T)
    best = np.inf
    for offset in range(longer.shape[0] - n + 1):
        window = longer[offset : offset + n]
        best = min(best, _straight(window, shorter) if cost < 0 else warp(window, turned, cost, best))
    return best


@njit(cache=True, boundscheck=False)
def matched_pairs(points: FloatArray, starts: Indices, cost: int) -> FloatArray:
    """Distance of every pair of runs, each at its best offset: (n, n), symmetric.

    points: (sum of phases, d); starts: (n + 1,). cost: EUCLIDEAN, or the local cost of DTW."""
    n = starts.shape[0] - 1
    found = np.zeros((n, n))
    for a in range(n):
        for b in range(a + 1, n):
            one, other = points[starts[a] : starts[a + 1]], points[starts[b] : starts[b + 1]]
            found[a, b] = found[b, a] = _at_best_offset(one, other, cost)
    return found


@njit(cache=True, boundscheck=False)
def matched_between(
    points: FloatArray, starts: Indices, others: FloatArray, other_starts: Indices, cost: int
) -> FloatArray:
    """Distance of every run of one set to every run of another, each at its best offset: (n, m)."""
    n, m = starts.shape[0] - 1, other_starts.shape[0] - 1
    found = np.zeros((n, m))
    for a in range(n):
        for b in range(m):
            one, other = points[starts[a] : starts[a + 1]], others[other_starts[b] : other_starts[b + 1]]
            found[a, b] = _at_best_offset(one, other, cost)
    return found
