"""What each feature adds to the log-odds of a set of shapes, such as the variable ones, from parts for each shape."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import Contributions

STEPS = 16  # Gauss-Legendre points: scores of ±10 are then added up to within 1e-4
BLOCK = 4000  # runs worked on together


def log_odds(raw: Floats, shapes: Collection[int]) -> Floats:
    """log(P(shapes) / P(others)) from raw scores (n, k): (n,)."""
    is_asked = _asked(raw.shape[1], shapes)
    difference: Floats = np.logaddexp.reduce(raw[:, is_asked], axis=1) - np.logaddexp.reduce(raw[:, ~is_asked], axis=1)
    return difference


def towards(parts: Contributions, shapes: Collection[int]) -> Contributions:
    """Contributions to the log-odds of `shapes` against the others, one score: values (n, p, 1), base (n, 1).

    Log-odds are no sum of raw scores, so the change from the base s0 to the scores s of a run is followed on the
    straight line between them, and each feature given its part of each step:

        value_j = sum_c phi_jc * integral over t in [0, 1] of d log_odds(s0 + t (s - s0)) / d s_c,

    which adds up to log_odds(s) - log_odds(s0); for two shapes it is phi_j1 - phi_j0. Nothing is added where the
    model knows only shapes of one side. Raises ValueError for no shape, all of them, or one that is none of the k.
    Source: Aumann & Shapley 1974; Sundararajan et al. 2017, proposition 1."""
    n, p, k = parts.values.shape
    is_asked = _asked(k, shapes)
    values = np.zeros((n, p, 1))
    known = parts.knows
    if (known & is_asked).any() and (known & ~is_asked).any():
        for first in range(0, n, BLOCK):
            block = slice(first, first + BLOCK)
            slopes = _mean_slopes(parts.base[block][:, known], parts.raw[block][:, known], is_asked[known])
            values[block, :, 0] = np.einsum("npk,nk->np", parts.values[block][:, :, known], slopes)
    return Contributions(values, log_odds(parts.base, shapes)[:, None], parts.features)


def _mean_slopes(start: Floats, end: Floats, is_asked: NDArray[np.bool_]) -> Floats:
    """d log_odds / d scores averaged on the line from start to end, (n, k): softmax within each side, its sign."""
    points, weights = np.polynomial.legendre.leggauss(STEPS)
    slopes = np.zeros(start.shape)
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        scores = start + point * (end - start)
        slopes[:, is_asked] += weight * softmax(scores[:, is_asked], axis=1)
        slopes[:, ~is_asked] -= weight * softmax(scores[:, ~is_asked], axis=1)
    return slopes


def _asked(k: int, shapes: Collection[int]) -> NDArray[np.bool_]:
    wrong = [shape for shape in shapes if not 0 <= shape < k]
    if wrong or not 0 < len(set(shapes)) < k:
        raise ValueError(f"shapes: {sorted(shapes)} of {k}; expected some, but not all, of 0 to {k - 1}")
    is_asked = np.zeros(k, dtype=bool)
    is_asked[list(shapes)] = True
    return is_asked
