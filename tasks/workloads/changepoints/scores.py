"""How change points are scored against several annotators: F1 with a margin, and covering of segments.

Source: van den Burg and Williams 2020, section 4.3. The start of the series counts as a change point of everybody."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

MARGIN = 5  # samples


def f1_of(annotations: Sequence[Iterable[int]], found: Iterable[int], *, margin: int = MARGIN) -> float:
    """F1 of precision (against the changes that any annotator marked) and recall (mean over annotators).

    annotations: for each annotator the rows of the first sample of each new segment; found: those of a method."""
    ours = set(found) | {0}
    theirs = [set(marked) | {0} for marked in annotations]
    precision = n_hits(set().union(*theirs), ours, margin=margin) / len(ours)
    recall = sum(n_hits(marked, ours, margin=margin) / len(marked) for marked in theirs) / len(theirs)
    return 2 * precision * recall / (precision + recall)


def n_hits(marked: Iterable[int], found: Iterable[int], *, margin: int = MARGIN) -> int:
    """How many marked points have a found one within the margin, each found point taken once, the nearest first."""
    left, hits = set(found), 0
    for point in sorted(marked):
        near = [other for other in left if abs(other - point) <= margin]
        if near:
            left.remove(min(near, key=lambda other: (abs(other - point), other)))
            hits += 1
    return hits


def covering_of(annotations: Sequence[Iterable[int]], found: Iterable[int], n_samples: int) -> float:
    """How well the best segment of a method covers each annotated one (Jaccard), by length; mean over annotators."""
    ours = _segments(found, n_samples)
    total = 0.0
    for marked in annotations:
        for start, end in _segments(marked, n_samples):
            best = max(_jaccard((start, end), other) for other in ours)
            total += (end - start) * best
    return total / n_samples / len(annotations)


def _segments(changes: Iterable[int], n_samples: int) -> list[tuple[int, int]]:
    edges = [0, *sorted({change for change in changes if 0 < change < n_samples}), n_samples]
    return list(itertools.pairwise(edges))


def _jaccard(one: tuple[int, int], other: tuple[int, int]) -> float:
    common = min(one[1], other[1]) - max(one[0], other[0])
    return max(common, 0) / (max(one[1], other[1]) - min(one[0], other[0]))
