"""The nearest of many sequences by DTW, skipping with lower bounds those that cannot be nearest.

Bounds on the Manhattan and the squared cost, any warping path, any lengths:
- every point of one must be matched, at the least with the nearest face of the box around the other (LB_Keogh with an
  unlimited band), and the other way round;
- the first points are matched with each other, and the last ones (LB_Kim)."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from tasks.workloads.similarity.kernels import COSTS, Indices, warp
from tasks.workloads.similarity.params import Cost
from tasks.workloads.similarity.sequences import Packed
from tasks.workloads.telemetry import FloatArray


@dataclass(frozen=True)
class Nearest:
    """positions, distances: (n, k), nearest first; n_computed: distances of n × m that no bound had spared."""

    positions: Indices
    distances: FloatArray
    n_computed: int


def find_nearest(
    sequences: Packed, others: Packed, k: int = 1, cost: Cost = "manhattan", *, skip_same: bool = False
) -> Nearest:
    """The k others nearest to each sequence; ties go to the one that stands first.

    skip_same: position i of both is the same sequence and does not count (all pairs of one set).
    Raises ValueError if there are fewer than k others."""
    if k < 1 or k > len(others) - skip_same:
        raise ValueError(f"{k} nearest of {len(others) - skip_same} sequences: expected 1 to that many")
    low, high = _boxes(others)
    own_low, own_high = _boxes(sequences)
    bounds = _bounds(
        sequences.points, sequences.starts, own_low, own_high, others.points, others.starts, low, high, COSTS[cost]
    )
    if skip_same:
        np.fill_diagonal(bounds, np.inf)
    order = np.argsort(bounds, axis=1, kind="stable")
    positions, found, n_computed = _search(
        sequences.points, sequences.starts, others.points, others.starts, bounds, order, k, COSTS[cost]
    )
    return Nearest(positions, found, int(n_computed))


def _boxes(packed: Packed) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest value of each sequence in each dimension: (n, d) twice."""
    starts = packed.starts[:-1]
    return np.minimum.reduceat(packed.points, starts), np.maximum.reduceat(packed.points, starts)


@njit(cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, boundscheck=False)
def _outside(points: FloatArray, low: FloatArray, high: FloatArray, cost: int) -> float:
    """Cost of bringing every point (n, d) to the box between low and high (d,)."""
    total = 0.0
    for i in range(points.shape[0]):
        for k in range(points.shape[1]):
            gap = max(0.0, points[i, k] - high[k], low[k] - points[i, k])
            total += gap if cost == 0 else gap * gap
    return total


@njit(cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, boundscheck=False)
def _ends(one: FloatArray, other: FloatArray, cost: int) -> float:
    """Cost of the first match and, unless it is the same one, of the last."""
    total = 0.0
    has_two = one.shape[0] > 1 or other.shape[0] > 1
    for k in range(one.shape[1]):
        first, last = one[0, k] - other[0, k], one[-1, k] - other[-1, k]
        total += abs(first) if cost == 0 else first * first
        if has_two:
            total += abs(last) if cost == 0 else last * last
    return total


@njit(cache=True, boundscheck=False)
def _bounds(
    points: FloatArray,
    starts: Indices,
    low: FloatArray,
    high: FloatArray,
    others: FloatArray,
    other_starts: Indices,
    other_low: FloatArray,
    other_high: FloatArray,
    cost: int,
) -> FloatArray:
    """A lower bound of every distance: (n, m). low, high: boxes of the sequences (n, d), then of the others (m, d)."""
    n, m = starts.shape[0] - 1, other_starts.shape[0] - 1
    found = np.zeros((n, m))
    for a in range(n):
        one = points[starts[a] : starts[a + 1]]
        for b in range(m):
            other = others[other_starts[b] : other_starts[b + 1]]
            found[a, b] = max(
                _ends(one, other, cost),
                _outside(one, other_low[b], other_high[b], cost),
                _outside(other, low[a], high[a], cost),
            )
    return found


@njit(cache=True, boundscheck=False)
def _search(
    points: FloatArray,
    starts: Indices,
    others: FloatArray,
    other_starts: Indices,
    bounds: FloatArray,
    order: Indices,
    k: int,
    cost: int,
) -> tuple[Indices, FloatArray, int]:
    """The k nearest by distance, others taken in the order of their bounds until no bound is below the k-th."""
    n = starts.shape[0] - 1
    positions = np.full((n, k), -1, dtype=np.int64)
    found = np.full((n, k), np.inf)
    n_computed = 0
    for a in range(n):
        one = points[starts[a] : starts[a + 1]]
        for b in order[a]:
            if bounds[a, b] > found[a, k - 1] or bounds[a, b] == np.inf:
                break
            n_computed += 1
            turned = np.ascontiguousarray(others[other_starts[b] : other_starts[b + 1]].T)
            distance = warp(one, turned, cost, found[a, k - 1])
            place = k
            while place > 0 and (
                distance < found[a, place - 1] or (distance == found[a, place - 1] and b < positions[a, place - 1])
            ):
                place -= 1
            if place < k and distance < np.inf:
                for later in range(k - 1, place, -1):
                    found[a, later], positions[a, later] = found[a, later - 1], positions[a, later - 1]
                found[a, place], positions[a, place] = distance, b
    return positions, found, n_computed
