"""Dynamic time warping between sequences of phases, from one of three libraries behind one call (CWD, III-C, V-D)."""

from collections.abc import Callable, Sequence

import numpy as np

from tasks.errors import BadSetting
from tasks.workloads.similarity.kernels import COSTS, all_pairs, between
from tasks.workloads.similarity.params import Backend, Cost
from tasks.workloads.similarity.sequences import Packed, pack
from tasks.workloads.telemetry import FloatArray


def dtw(one: FloatArray, other: FloatArray, cost: Cost = "manhattan", backend: Backend = "own") -> float:
    """Least total local cost over all warping paths between (n, d) and (m, d).

    manhattan: sum of |p_i − q_j| over dimensions (V-D); squared: sum of (p_i − q_j)², no root (eq. 6)."""
    return float(distances([one], [other], cost, backend)[0, 0])


def distances(
    sequences: Sequence[FloatArray], others: Sequence[FloatArray], cost: Cost = "manhattan", backend: Backend = "own"
) -> FloatArray:
    """DTW from each sequence to each of the others: (n, m).

    Raises BadSetting for a cost that the library does not have, ValueError for sequences that have no distance."""
    return _BACKENDS[backend](pack(sequences), pack(others), cost)


def pairwise(sequences: Sequence[FloatArray], cost: Cost = "manhattan", backend: Backend = "own") -> FloatArray:
    """DTW between all pairs: (n, n), symmetric, 0 on the diagonal; each pair is computed once."""
    packed = pack(sequences)
    if backend == "own":
        return np.asarray(all_pairs(packed.points, packed.starts, COSTS[cost]))
    return _BACKENDS[backend](packed, packed, cost)


def _own(one: Packed, other: Packed, cost: Cost) -> FloatArray:
    return np.asarray(between(one.points, one.starts, other.points, other.starts, COSTS[cost]))


def _tslearn(one: Packed, other: Packed, cost: Cost) -> FloatArray:
    from tslearn.metrics import dtw_path_from_metric

    metric = "cityblock" if cost == "manhattan" else "sqeuclidean"
    return _each_pair(one, other, lambda a, b: dtw_path_from_metric(a, b, metric=metric)[1])


def _dtaidistance(one: Packed, other: Packed, cost: Cost) -> FloatArray:
    if cost != "squared":
        raise BadSetting(
            "workloads.similarity.backend: dtaidistance has no Manhattan cost; expected own or tslearn; "
            "or set workloads.similarity.cost to squared"
        )
    from dtaidistance import dtw_ndim

    return _each_pair(one, other, lambda a, b: dtw_ndim.distance(a, b, use_c=True) ** 2)


def _each_pair(one: Packed, other: Packed, distance: Callable[[FloatArray, FloatArray], float]) -> FloatArray:
    return np.array([[distance(one[a], other[b]) for b in range(len(other))] for a in range(len(one))]).reshape(
        len(one), len(other)
    )


_BACKENDS: dict[str, Callable[[Packed, Packed, Cost], FloatArray]] = {
    "own": _own,
    "tslearn": _tslearn,
    "dtaidistance": _dtaidistance,
}
