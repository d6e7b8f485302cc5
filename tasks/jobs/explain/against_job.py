"""What sets a run apart from the usual runs of its job, in place of what sets its job apart from others."""

from typing import Any

import numpy as np

from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import Contributions


def against_usual(parts: Contributions, groups: Any, usual: Contributions, usual_groups: Any) -> Contributions:
    """Contributions less the mean contributions of the usual runs of the same job; base plus that mean prediction.

    groups: (n,), usual_groups: (m,) for the m runs of `usual`. Still additive: what a run's features add now leads
    from the mean prediction of its job's usual runs to its own. What is the same in all runs of a job adds nothing.
    A job without usual runs is left as it is. One score only. Raises ValueError for other features or several."""
    if parts.features != usual.features:
        raise ValueError("usual runs: other features than the runs; expected the same model")
    keys, means = _group_means(usual.single, np.asarray(usual_groups))
    at = np.searchsorted(keys, np.asarray(groups)) if len(keys) else np.zeros(len(parts.base), dtype=np.int64)
    at = np.minimum(at, max(len(keys) - 1, 0))
    is_known = keys[at] == np.asarray(groups) if len(keys) else np.zeros(len(parts.base), dtype=bool)
    mean = np.where(is_known[:, None], means[at], 0.0) if len(keys) else np.zeros(parts.single.shape)
    return Contributions(
        (parts.single - mean)[:, :, None], parts.base + mean.sum(axis=1, keepdims=True), parts.features
    )


def _group_means(values: Floats, groups: Any) -> tuple[Any, Floats]:
    """Distinct groups, sorted, and the means of their rows: (n_groups, p)."""
    keys, numbers = np.unique(groups, return_inverse=True)
    order = np.argsort(numbers, kind="stable")
    if not len(keys):
        return keys, np.zeros((0, values.shape[1]))
    starts = np.searchsorted(numbers[order], np.arange(len(keys)))
    sums = np.add.reduceat(values[order], starts, axis=0)
    return keys, sums / np.bincount(numbers)[:, None]
