"""Past runtimes of many groups, end to end in one array: steps, quantiles and the CRPS of their distributions."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.jobs.distribution import Floats, refuse

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class History:
    """values_s: (n_runs,) in seconds, ascending within each group; weights: (n_runs,), sum to 1 within each group.

    starts: (n_groups + 1,), where each group begins, and the end. Made by `gather_history`. In the methods groups and
    x, q, or counts go together by broadcasting."""

    values_s: Floats
    weights: Floats
    starts: Ints

    @property
    def n_groups(self) -> int:
        """Number of groups, each with at least one run."""
        return len(self.starts) - 1

    @cached_property
    def sizes(self) -> Ints:
        """Runs of each group: (n_groups,)."""
        return np.diff(self.starts)

    @cached_property
    def _upto(self) -> Floats:
        """Cumulative weight of each run within its group, exactly 1 at its last: (n_runs,)."""
        cumulative = np.cumsum(self.weights) - np.repeat(np.arange(self.n_groups), self.sizes)
        cumulative[self.starts[1:] - 1] = 1.0
        return np.clip(cumulative, 0.0, 1.0)

    @cached_property
    def _areas(self) -> tuple[Floats, Floats]:
        """The integral of F² from the first run of the group to each run, and of (1 - F)² from each run to its last."""
        gaps = np.diff(self.values_s, append=0.0)
        gaps[self.starts[1:] - 1] = 0.0  # from the last run of a group to the first of the next
        left = np.concatenate([[0.0], np.cumsum(self._upto**2 * gaps)])
        right = np.concatenate([[0.0], np.cumsum((1 - self._upto) ** 2 * gaps)])
        first, last = np.repeat(self.starts[:-1], self.sizes), np.repeat(self.starts[1:] - 1, self.sizes)
        place = np.arange(len(self.values_s))
        return left[place] - left[first], right[last] - right[place]

    def count(self, groups: Any, x: Floats, *, is_closed: bool) -> Ints:
        """Runs of the group of at most x (is_closed) or below x: a binary search in all groups at once."""
        return _search(self.values_s, self.starts, groups, x, is_closed)

    def below(self, groups: Any, counts: Ints) -> Floats:
        """Weight of the first `counts` runs of the group."""
        at = self._upto[np.maximum(self.starts[groups] + counts - 1, 0)]
        return np.where(counts > 0, at, 0.0)

    def quantile(self, groups: Any, q: Floats) -> Floats:
        """The smallest run with a cumulative weight of at least q."""
        rounding = 1e-9  # so that q = 1/3 finds the first of three, also after the sums of many groups
        counts = _search(self._upto, self.starts, groups, q - rounding, False)
        return np.asarray(self.values_s[np.minimum(self.starts[groups] + counts, self.starts[groups + 1] - 1)])

    def crps(self, groups: Any, x: Floats) -> Floats:
        """The integral of F² below x plus that of (1 - F)² above it, F the steps of the group."""
        left, right = self._areas
        counts, start = self.count(groups, x, is_closed=True), self.starts[groups]
        before = start + np.maximum(counts - 1, 0)  # the last run at or below x, or the first
        after = np.minimum(start + counts, self.starts[groups + 1] - 1)  # the first run above x, or the last
        at = self.below(groups, counts)
        below = np.where(counts > 0, left[before] + at**2 * (x - self.values_s[before]), 0.0)
        is_last = counts == self.sizes[groups]
        above = np.where(is_last, 0.0, right[after] + (1 - at) ** 2 * (self.values_s[after] - x))
        return np.asarray(below + above)


def gather_history(values_s: Any, groups: Any, weights: Any = None) -> History:
    """The history of groups 0 ... n_groups - 1 from rows in any order; values_s, groups, weights: (n_runs,).

    values_s in seconds, 0 or more; without weights runs count the same. Raises ValueError for NaN, negative or
    infinite values, shapes that differ, a group without runs, or without weight."""
    values = np.asarray(values_s, dtype=np.float64)
    weight = np.ones(values.shape) if weights is None else np.asarray(weights, dtype=np.float64)
    group = np.asarray(groups, dtype=np.int64)
    if values.ndim != 1 or not values.shape == weight.shape == group.shape:
        raise ValueError(f"history: shapes {values.shape}, {group.shape}, {weight.shape}; expected (n_runs,) for all")
    refuse("values_s", values, ~(np.isfinite(values) & (values >= 0)), "a finite number of seconds, 0 or more")
    refuse("weights", weight, ~(np.isfinite(weight) & (weight >= 0)), "finite weights of 0 or more")
    refuse("groups", group.astype(float), group < 0, "numbers of groups from 0 on")
    group, values, weight = group[weight > 0], values[weight > 0], weight[weight > 0]
    sizes = np.bincount(group)
    if not sizes.size or (sizes == 0).any():
        raise ValueError(f"groups: {int((sizes == 0).sum())} of {sizes.size} have no run of weight; expected one each")
    order = np.lexsort((values, group))
    sums = np.bincount(group, weights=weight)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return History(values[order], (weight / sums[group])[order], starts)


def _search(sorted_values: Floats, starts: Ints, groups: Any, x: Floats, is_closed: bool) -> Ints:
    """How many of the group's values are at most x (is_closed) or below x."""
    groups, x = np.broadcast_arrays(groups, x)
    low, high = starts[groups], starts[groups + 1]
    last = len(sorted_values) - 1
    for _ in range(int(np.diff(starts).max(initial=1)).bit_length()):
        middle = (low + high) // 2
        found = sorted_values[np.minimum(middle, last)]
        is_right = (found <= x if is_closed else found < x) & (middle < high)
        low, high = np.where(is_right, middle + 1, low), np.where(is_right, high, middle)
    return np.asarray(low - starts[groups])
