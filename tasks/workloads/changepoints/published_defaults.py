"""The methods of van den Burg and Williams 2020 in their default setting, to be held against on the same series.

BOCPD in its default setting is `plain.PLAIN`. Binary segmentation is that of R's package changepoint (cpt.mean): means
of a series scaled to deviation 1, at most five changes, penalty MBIC (Zhang and Siegmund 2007)."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_CHANGES = 5
MBIC_LOGS = 3  # penalty of a change, in logs of the number of samples


def binary_segmentation(values: Floats) -> list[int]:
    """The changes of mean that R's default binary segmentation finds. values: (n,), none missing."""
    scaled = (values - values.mean()) / values.std(ddof=1)
    sums = np.concatenate([[0.0], np.cumsum(scaled)])
    squares = np.concatenate([[0.0], np.cumsum(scaled**2)])
    edges, gains = [0, len(values)], []
    found: list[int] = []
    for _ in range(MOST_CHANGES):
        best = max(
            (_best_split(sums, squares, start, end) for start, end in itertools.pairwise(edges)),
            key=lambda split: split[0],
        )
        if not np.isfinite(best[0]):
            break
        gains.append(best[0])
        found.append(best[1])
        edges = sorted([*edges, best[1]])
    # R keeps all up to the last one that pays: a change that does not may stand before one that does
    paying = [i + 1 for i, gain in enumerate(gains) if gain >= MBIC_LOGS * np.log(len(values))]
    return sorted(found[: max(paying, default=0)])


def _best_split(sums: Floats, squares: Floats, start: int, end: int) -> tuple[float, int]:
    inner = np.arange(start + 1, end)
    if not len(inner):
        return -np.inf, start
    gain = (
        _cost(sums, squares, np.array([start]), np.array([end]))
        - _cost(sums, squares, np.full_like(inner, start), inner)
        - _cost(sums, squares, inner, np.full_like(inner, end))
    )
    return float(gain.max()), int(inner[gain.argmax()])


def _cost(sums: Floats, squares: Floats, start: NDArray[np.int64], end: NDArray[np.int64]) -> Floats:
    n = end - start
    cost: Floats = squares[end] - squares[start] - (sums[end] - sums[start]) ** 2 / n + np.log(n)
    return cost
