"""Runtime distributions of many instances at once: past runtimes, or quantiles that stand for a prediction."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = slice | NDArray[np.int64]
ROUNDING = 1e-9  # of levels, so that 1/3 finds the first of three


def checked_times(name: str, values: Any, n: int) -> Floats:
    """values as float64 of shape (n,) or (n, m). Raises ValueError for another shape, NaN or infinite values."""
    times = np.asarray(values, dtype=np.float64)
    if times.ndim not in (1, 2) or times.shape[0] != n:
        raise ValueError(f"{name}: shape {times.shape}; expected ({n},) or ({n}, m), a row for each instance")
    refuse(name, times, ~np.isfinite(times), "a finite number of seconds")
    return times


def checked_levels(q: Any, n: int) -> Floats:
    """q as levels of shape (n,) or (n, m); one level counts for all. Raises ValueError outside (0, 1)."""
    levels = np.asarray(q, dtype=np.float64)
    if levels.ndim == 0:
        levels = np.full(n, levels)
    if levels.ndim > 2 or levels.shape[0] != n:
        raise ValueError(f"q: shape {levels.shape}; expected one level, ({n},) or ({n}, m)")
    refuse("q", levels, ~((levels > 0) & (levels < 1)), "a level between 0 and 1")
    return levels


def refuse(name: str, values: Floats, is_wrong: NDArray[np.bool_], expected: str) -> None:
    """Raise ValueError if any value is wrong, with how many, the first of them and what was expected."""
    if is_wrong.any():
        place = tuple(int(i) for i in np.argwhere(is_wrong)[0])
        where = ", ".join(map(str, place))
        raise ValueError(
            f"{name}: {int(is_wrong.sum())} of {values.size} values cannot be used, the first at row {where} "
            f"({values[place]:g}); expected {expected}"
        )


Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PastRuntimes:
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
        # within each group: a sum over all would leave a group its rounding, and other quantiles than it has alone
        of_groups = pd.Series(self.weights).groupby(np.repeat(np.arange(self.n_groups), self.sizes), sort=False)
        cumulative = of_groups.cumsum().to_numpy(copy=True)
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
        counts = _search(self._upto, self.starts, groups, q - ROUNDING, False)
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


class EvenHistory(PastRuntimes):
    """The same of groups with as many runs each, all of the same weight: where a run stands says its cumulative one."""

    @cached_property
    def _upto(self) -> Floats:
        size = len(self.values_s) // max(self.n_groups, 1)
        return np.tile(np.arange(1, size + 1) / max(size, 1), self.n_groups)

    def quantile(self, groups: Any, q: Floats) -> Floats:
        """The smallest run with a cumulative weight of at least q."""
        size = len(self.values_s) // max(self.n_groups, 1)
        place = np.ceil((q - ROUNDING) * size).astype(np.int64) - 1
        return np.asarray(self.values_s[self.starts[groups] + np.maximum(place, 0)])


def gather_history(values_s: Any, groups: Any, weights: Any = None) -> PastRuntimes:
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
    return PastRuntimes(values[order], (weight / sums[group])[order], starts)


def _search(sorted_values: Floats, starts: Ints, groups: Any, x: Floats, is_closed: bool) -> Ints:
    """How many of the group's values are at most x (is_closed) or below x."""
    groups, x = np.broadcast_arrays(groups, x)
    low, high = starts[groups], starts[groups + 1]
    last = len(sorted_values) - 1
    for _ in range(int(np.diff(starts).max(initial=1)).bit_length()):
        middle = (low + high) // 2
        value = sorted_values[np.minimum(middle, last)]
        is_right = (value <= x if is_closed else value < x) & (middle < high)
        low, high = np.where(is_right, middle + 1, low), np.where(is_right, high, middle)
    return np.asarray(low - starts[groups])


@dataclass(frozen=True)
class Empirical:
    """Distributions of runtime in seconds, one for each of n instances: the steps of the values of its group.

    group: (n,), numbers of groups in history. x: runtimes in seconds, (n,) or (n, m): row i is asked of instance i; the
    answer has the shape of x. All methods raise ValueError for NaN, an infinite x or a wrong shape."""

    history: PastRuntimes
    group: Any

    def __post_init__(self) -> None:
        group = np.asarray(self.group)
        if group.ndim != 1 or (group.size and not np.issubdtype(group.dtype, np.integer)):
            raise ValueError(f"group: shape {group.shape}, {group.dtype}; expected (n,) whole numbers of groups")
        if group.size and not (group.min() >= 0 and group.max() < self.history.n_groups):
            raise ValueError(f"group: from {group.min()} to {group.max()}; expected 0 to {self.history.n_groups - 1}")
        object.__setattr__(self, "group", group.astype(np.int64))

    @property
    def n(self) -> int:
        """Number of instances."""
        return len(self.group)

    def rows(self, which: Rows) -> Self:
        """The same for some of the instances; the history is shared."""
        return replace(self, group=self.group[which])

    def _groups(self, x: Floats) -> Any:
        return self.group[:, None] if x.ndim == 2 else self.group

    def cdf(self, x: Any) -> Floats:
        """P(runtime <= x)."""
        times = checked_times("x", x, self.n)
        return self.history.below(self._groups(times), self.history.count(self._groups(times), times, is_closed=True))

    def cdf_below(self, x: Any) -> Floats:
        """P(runtime < x)."""
        times = checked_times("x", x, self.n)
        return self.history.below(self._groups(times), self.history.count(self._groups(times), times, is_closed=False))

    def quantile(self, q: Any) -> Floats:
        """Seconds: the smallest x with cdf(x) >= q. q: a level for all, (n,) or (n, m), between 0 and 1."""
        levels = checked_levels(q, self.n)
        return self.history.quantile(self._groups(levels), levels)

    def crps(self, x: Any) -> Floats:
        """Seconds: the integral over t of (cdf(t) - 1{t >= x})²; 0 is perfect.

        It is sum_k p_k |v_k - x| - 1/2 sum_jk p_j p_k |v_j - v_k|, values v of weight p (Gneiting & Raftery 2007)."""
        times = checked_times("x", x, self.n)
        return self.history.crps(self._groups(times), times)

    def atoms(self, most: int) -> tuple[Floats, Floats]:
        """Values in seconds and their weights, (n, m) each; above `most` values, quantiles at (k + 1/2) / most."""
        sizes = self.history.sizes[self.group]
        width = int(min(sizes.max(initial=1), most))
        place = np.arange(width)
        is_there = place < sizes[:, None]
        where = self.history.starts[self.group][:, None] + np.where(is_there, place, 0)
        values, weights = self.history.values_s[where], np.where(is_there, self.history.weights[where], 0.0)
        is_long = sizes > most
        if is_long.any():
            levels = np.broadcast_to((np.arange(most) + 0.5) / most, (int(is_long.sum()), most))
            values[is_long], weights[is_long] = self.rows(np.flatnonzero(is_long)).quantile(levels), 1 / most
        return values, weights


def even_steps(values_s: Floats) -> Empirical:
    """One distribution a row, of its values in seconds, all of the same weight: (n, m), 0 or more, ascending."""
    n, m = values_s.shape
    starts = np.arange(n + 1, dtype=np.int64) * m
    return Empirical(EvenHistory(np.ravel(values_s), np.broadcast_to(1 / m, n * m), starts), np.arange(n))
