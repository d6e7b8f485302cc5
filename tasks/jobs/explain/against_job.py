"""What sets a run apart from the usual runs of its job, in place of what sets its job apart from others."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import Contributions

MIN_RUNS = 3  # of a job: the median of two is no habit
CELLS = 4_000_000  # contributions sorted together


def against_usual(parts: Contributions, groups: Any, usual: Contributions, usual_groups: Any) -> Contributions:
    """Contributions less the median contributions of the usual runs of the same job; base plus the sum of those.

    groups: (n,), usual_groups: (m,) for the m runs of `usual`. Still additive: what a run's features add now leads
    from what is usual for its job to its own prediction. What is the same in all runs of a job adds nothing. Medians,
    not means: after one run with a huge input a usual input must not seem to make runs short.
    A job without usual runs is left as it is. One score only. Raises ValueError for other features or several."""
    _refuse_others(parts, usual)
    keys, number = np.unique(np.asarray(usual_groups), return_inverse=True)
    reference = np.zeros(parts.single.shape)
    for place, key in enumerate(keys):
        reference[np.asarray(groups) == key] = np.median(usual.single[number == place], axis=0)
    return _less(parts, reference)


def against_stretch(parts: Contributions, usual: Contributions, first: ArrayLike, n_usual: ArrayLike) -> Contributions:
    """The same where the usual runs of each run are a stretch of `usual`: rows first … first + n_usual - 1, (n,) each.

    So each run can be compared with the runs of its job before it. A run with fewer than MIN_RUNS is left as it is."""
    _refuse_others(parts, usual)
    start, n, values = np.asarray(first, dtype=np.int64), np.asarray(n_usual, dtype=np.int64), usual.single
    reference = np.zeros(parts.single.shape)
    for size in np.unique(n[n >= MIN_RUNS]):  # stretches of one length at a time: (rows, size, p)
        alike = np.flatnonzero(n == size)
        step = max(1, CELLS // (int(size) * values.shape[1]))
        for rows in np.array_split(alike, -(-len(alike) // step)):
            reference[rows] = np.median(values[start[rows][:, None] + np.arange(size)], axis=1)
    return _less(parts, reference)


def _refuse_others(parts: Contributions, usual: Contributions) -> None:
    if parts.features != usual.features:
        raise ValueError("usual runs: other features than the runs; expected the same model")


def _less(parts: Contributions, reference: Floats) -> Contributions:
    added = (parts.single - reference)[:, :, None]
    return Contributions(added, parts.base + reference.sum(axis=1, keepdims=True), parts.features)
