"""From the run-length posterior of all samples to change points and their probabilities.

The filter looks back only; whether and where a series changed is better known once later samples are in. The best
segmentation follows from the filter's maxima (Viterbi), the probability of a change at each sample from one pass
backwards, both over the run lengths that the filter kept."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEGLIGIBLE = 1e-10  # a change less probable than this is not spread over what came before it


@njit(cache=True)
def best_changes(before: Ints, last: int) -> Ints:
    """The samples, rising, at which segments of the most probable segmentation start, the first segment left out."""
    n_changes, at = 0, last
    while at > 0:
        n_changes += 1
        at = before[at]
    changes = np.empty(n_changes, np.int64)
    at = last
    for i in range(n_changes - 1, -1, -1):
        changes[i] = at
        at = before[at]
    return changes


@njit(cache=True)
def change_probabilities(offsets: Ints, starts: Ints, filtered: Floats, min_segment: int) -> Floats:
    """The probability, given all samples, that a segment starts at each sample: (n,); 0 for the first.

    Backwards: a segment that starts at t follows one whose start is distributed as the filter had it after t - 1,
    because the hazard does not depend on the run length (once a segment may end)."""
    n = len(offsets) - 1
    mass = np.zeros(n)
    low, high = offsets[n - 1], offsets[n]
    total = filtered[low:high].sum()
    for i in range(low, high):
        mass[starts[i]] += filtered[i] / total
    for t in range(n - 1, 0, -1):
        if mass[t] < NEGLIGIBLE:
            continue
        total = 0.0
        for i in range(offsets[t - 1], offsets[t]):
            if t - starts[i] >= min_segment:
                total += filtered[i]
        if total == 0:
            continue
        for i in range(offsets[t - 1], offsets[t]):
            if t - starts[i] >= min_segment:
                mass[starts[i]] += mass[t] * filtered[i] / total
    mass[0] = 0.0
    return mass


def probability_near(changes: Ints, probabilities: Floats, near: int) -> Floats:
    """For each change, how probable a change within `near` samples of it is, at most 1."""
    sums = np.concatenate([[0.0], np.cumsum(probabilities)])
    low, high = np.maximum(changes - near, 0), np.minimum(changes + near + 1, len(probabilities))
    near_mass: Floats = np.clip(sums[high] - sums[low], 0.0, 1.0)
    return near_mass
