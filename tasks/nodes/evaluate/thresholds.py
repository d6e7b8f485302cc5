"""The score from which an execution is flagged, chosen on validation executions alone."""

import numpy as np

from tasks.nodes.type_tables import Bools, Floats

NEARBY = 0.02  # of the executions, on either side of a threshold, over which its F1 is averaged


def choose_threshold(scores: Floats, is_stressed: Bools, false_alarm_share: float) -> float:
    """The threshold with the best F1 on these executions, the highest of equals. Flagged: scores above it.

    scores: (n,) finite. It lies half way between two scores, so that it does not hang on one of them, and its F1 is the
    mean of its own and of those of the thresholds nearby, so that it stands on no lone peak. Without a stressed
    execution: the score that this share of them exceeds. Infinite without any: nothing is flagged."""
    if not len(scores):
        return np.inf
    if not is_stressed.any():
        return float(np.quantile(scores, 1 - false_alarm_share))
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(is_stressed[order])
    f1 = 2 * hits / (np.arange(1, len(scores) + 1) + is_stressed.sum())
    ends = np.flatnonzero(np.append(np.diff(ranked) != 0, True))  # equal scores are flagged together or not at all
    best = int(ends[mean_of_nearby(f1[ends], int(len(scores) * NEARBY)).argmax()])
    if best + 1 == len(ranked):
        return float(np.nextafter(ranked[best], -np.inf))
    return float((ranked[best] + ranked[best + 1]) / 2)


def mean_of_nearby(values: Floats, reach: int) -> Floats:
    """The mean of each value and of as many before and after it as `reach`, as far as there are so many: (n,)."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    at = np.arange(len(values))
    first, last = np.maximum(at - reach, 0), np.minimum(at + reach + 1, len(values))
    return np.asarray((sums[last] - sums[first]) / (last - first))
