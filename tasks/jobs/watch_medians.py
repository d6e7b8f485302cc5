"""Exact medians of many stretches of one array that may overlap, such as all that came before each run."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def medians_between(values: Floats, lows: Ints, highs: Ints) -> Floats:
    """The median of values[low:high] for each pair: (n,). values: (m,), none missing; lows < highs: (n,)."""
    sizes = highs - lows
    ranks = np.concatenate([(sizes - 1) // 2, sizes // 2])
    low, high = np.split(ranked_between(values, np.tile(lows, 2), np.tile(highs, 2), ranks), 2)
    return np.asarray(low + (high - low) / 2)


def ranked_between(values: Floats, lows: Ints, highs: Ints, ranks: Ints) -> Floats:
    """The value that `rank` others come before in values[low:high], for each of n questions: (n,).

    A wavelet matrix: bit by bit of the values' own ranks, from the highest, values are parted into those with a 0 and
    those with a 1, in their order; counting the former tells on which side each answer is. So the cost is that of
    (m + n) log m steps, however long the stretches are. Source: The wavelet matrix,
    Information Systems 47, 2015."""
    distinct, codes = np.unique(values, return_inverse=True)
    found = np.zeros(len(ranks), dtype=np.int64)
    for bit in reversed(range((len(distinct) - 1).bit_length())):
        is_one = (codes >> bit & 1).astype(bool)
        zeros = np.concatenate([[0], np.cumsum(~is_one)])  # before each place
        zeros_low, zeros_high = zeros[lows], zeros[highs]
        n_zeros = zeros_high - zeros_low
        is_right = ranks >= n_zeros
        lows = np.where(is_right, zeros[-1] + lows - zeros_low, zeros_low)
        highs = np.where(is_right, zeros[-1] + highs - zeros_high, zeros_high)
        ranks = ranks - np.where(is_right, n_zeros, 0)
        found |= is_right.astype(np.int64) << bit
        codes = np.concatenate([codes[~is_one], codes[is_one]])
    return np.asarray(distinct[found])
