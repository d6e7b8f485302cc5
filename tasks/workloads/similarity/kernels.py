"""Dynamic time warping compiled by numba: sequences of vectors, Manhattan or squared local cost (CWD, eq. 6 and V-D).

The other sequence is read dimension by dimension, (d, m), so that the local costs of a whole row are made at once by
vector instructions; what remains for each cell is two minima and a sum."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tasks.workloads.telemetry import FloatArray

Indices = NDArray[np.int64]
COSTS = {"manhattan": 0, "squared": 1}


@njit(cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, boundscheck=False)
def _row_of_costs(point: FloatArray, turned: FloatArray, cost: int, costs: FloatArray) -> None:
    """costs[j] = sum over k of |point[k] − turned[k, j]|, or of its square."""
    for j in range(costs.shape[0]):
        costs[j] = 0.0
    for k in range(point.shape[0]):
        value = point[k]
        if cost == 0:
            for j in range(costs.shape[0]):
                costs[j] += abs(value - turned[k, j])
        else:
            for j in range(costs.shape[0]):
                costs[j] += (value - turned[k, j]) * (value - turned[k, j])


@njit(cache=True, fastmath={"nnan"}, boundscheck=False)
def warp(one: FloatArray, turned: FloatArray, cost: int, ceiling: float) -> float:
    """Least total cost over all warping paths of one: (n, d) and turned: (d, m), both C-contiguous.

    w_k = (i, j) moves to (i+1, j), (i, j+1) or (i+1, j+1). Gives up with infinity as soon as no path can stay at or
    below `ceiling`: every path crosses every row."""
    n, m = one.shape[0], turned.shape[1]
    row, costs, reached = np.full(m + 1, np.inf), np.empty(m), np.empty(m)
    row[0] = 0.0
    for i in range(n):
        _row_of_costs(one[i], turned, cost, costs)
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
def all_pairs(points: FloatArray, starts: Indices, cost: int) -> FloatArray:
    """Distances between all pairs of sequences: (n, n), symmetric.

    points: (sum of lengths, d), the sequences one after another; starts: (n + 1,), where each begins."""
    n = starts.shape[0] - 1
    found = np.zeros((n, n))
    for b in range(1, n):
        turned = np.ascontiguousarray(points[starts[b] : starts[b + 1]].T)
        for a in range(b):
            found[a, b] = found[b, a] = warp(points[starts[a] : starts[a + 1]], turned, cost, np.inf)
    return found


@njit(cache=True, boundscheck=False)
def between(points: FloatArray, starts: Indices, others: FloatArray, other_starts: Indices, cost: int) -> FloatArray:
    """Distances from each sequence of one set to each of another: (n, m)."""
    n, m = starts.shape[0] - 1, other_starts.shape[0] - 1
    found = np.zeros((n, m))
    for b in range(m):
        turned = np.ascontiguousarray(others[other_starts[b] : other_starts[b + 1]].T)
        for a in range(n):
            found[a, b] = warp(points[starts[a] : starts[a + 1]], turned, cost, np.inf)
    return found
