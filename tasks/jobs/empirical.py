"""Runtimes predicted as those of past runs: the empirical distribution of a group's history, with weights."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat
from scipy.special import gammaln

from tasks.jobs.distribution import Floats, Rows, checked_levels, checked_times, in_blocks, refuse
from tasks.params import Params

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


SILVERMAN = 0.9  # Silverman 1986, eq. 3.31: 0.9 min(standard deviation, quartile range / 1.34) n^(-1/5)
NORMAL_QUARTILES = 1.34
PAIRS = 2_000_000  # instances times runs worked on together


class KernelParams(Params):
    """How past runs are smoothed, in log runtime, for the log-score alone."""

    min_width: PositiveFloat = Field(0.02, description="smallest kernel width in log runtime: 0.02 is about 2 %")
    tail_df: PositiveFloat = Field(3.0, description="degrees of freedom of the Student kernel; above 100: normal")
    most: int = Field(200, ge=2, description="most kernels for a group; longer histories stand as that many quantiles")


@dataclass(frozen=True)
class Kernels:
    """centres: (n_kernels,) logs of runtimes, log_weights: the same, width: (n_groups,), starts: (n_groups + 1,).

    Runs of 0 s have no logarithm: they keep their weight in the steps and add no density."""

    centres: Floats
    log_weights: Floats
    width: Floats
    starts: Ints


def fit_kernels(history: History, params: KernelParams) -> Kernels:
    """One kernel for each past run, or for each of params.most quantiles of a longer history.

    The width is Silverman's, with 1 / sum p² for n, p the weights; at least params.min_width, as for one run."""
    sizes = history.sizes
    group = np.repeat(np.arange(history.n_groups), sizes)
    values, weights = history.values_s, history.weights
    is_long = sizes > params.most
    if is_long.any():
        long = np.flatnonzero(is_long)
        levels = np.broadcast_to((np.arange(params.most) + 0.5) / params.most, (len(long), params.most))
        thinned = history.quantile(long[:, None], levels)
        is_kept = ~is_long[group]
        group = np.concatenate([group[is_kept], np.repeat(long, params.most)])
        values = np.concatenate([values[is_kept], thinned.ravel()])
        weights = np.concatenate([weights[is_kept], np.full(thinned.size, 1 / params.most)])
        order = np.argsort(group, kind="stable")
        group, values, weights = group[order], values[order], weights[order]
    with np.errstate(divide="ignore"):
        centres, log_weights = np.log(values), np.log(weights)
    starts = np.searchsorted(group, np.arange(history.n_groups + 1))
    return Kernels(centres, log_weights, _widths(history, params), starts.astype(np.int64))


def _widths(history: History, params: KernelParams) -> Floats:
    """The kernel width of each group, from its runs above 0 s: (n_groups,)."""
    n_groups, group = history.n_groups, np.repeat(np.arange(history.n_groups), history.sizes)
    weights = np.where(history.values_s > 0, history.weights, 0.0)
    logs = np.log(np.where(history.values_s > 0, history.values_s, 1.0))
    total = np.maximum(np.bincount(group, weights, n_groups), np.finfo(float).tiny)
    mean = np.bincount(group, weights * logs, n_groups) / total
    variance = np.bincount(group, weights * (logs - mean[group]) ** 2, n_groups) / total
    each = np.arange(n_groups)
    quartiles = [history.quantile(each, np.full(n_groups, level)) for level in (0.25, 0.75)]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.log(quartiles[1] / quartiles[0]) / NORMAL_QUARTILES
    deviation = np.sqrt(variance)
    scale = np.where(np.isfinite(spread) & (spread > 0), np.minimum(spread, deviation), deviation)
    n_effective = 1 / np.bincount(group, history.weights**2, n_groups)
    return np.maximum(SILVERMAN * scale * n_effective**-0.2, params.min_width)


def kernel_log_density(kernels: Kernels, params: KernelParams, groups: Any, x: Floats) -> Floats:
    """Log of sum_k p_k t((log x - c_k) / width) / width, t the Student density; -inf at 0 s. groups go with x."""
    groups, x = np.broadcast_arrays(groups, x)
    group, times = groups.ravel(), x.ravel()
    sizes = np.diff(kernels.starts)[group]
    found = np.full(times.size, -np.inf)
    if not times.size:
        return found.reshape(x.shape)
    ends = np.cumsum(sizes)
    cuts = np.unique(np.searchsorted(ends, np.arange(PAIRS, max(ends[-1], 1) + PAIRS, PAIRS), side="left") + 1)
    first = 0
    for cut in np.minimum(cuts, times.size):
        if cut > first:
            found[first:cut] = _block(kernels, params, group[first:cut], times[first:cut])
        first = max(first, int(cut))
    return found.reshape(x.shape)


def _block(kernels: Kernels, params: KernelParams, group: Ints, times: Floats) -> Floats:
    sizes = np.diff(kernels.starts)[group]
    row = np.repeat(np.arange(len(group)), sizes)
    into = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    where = kernels.starts[group][row] + into  # (n_pairs,)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (np.log(times)[row] - kernels.centres[where]) / kernels.width[group][row]
        each = kernels.log_weights[where] + _log_kernel(z, params.tail_df)
    each = np.where(np.isfinite(each), each, -np.inf)
    starts = np.cumsum(sizes) - sizes
    largest = np.maximum.reduceat(each, starts)  # every group has a kernel
    base = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(
            base + np.log(np.add.reduceat(np.exp(each - base[row]), starts)) - np.log(kernels.width[group])
        )


def _log_kernel(z: Floats, df: float) -> Floats:
    is_normal = 100
    if df > is_normal:
        return np.asarray(-0.5 * z * z - 0.5 * np.log(2 * np.pi))
    log_scale = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(df * np.pi)
    return np.asarray(log_scale - (df + 1) / 2 * np.log1p(z * z / df))


@dataclass(frozen=True)
class Empirical:
    """For each instance the past runtimes of its group. group: (n,), numbers of groups in history.

    cdf, quantiles, CRPS and samples are those of the steps, exact; only the log density is of the smoothed history,
    with kernels over log runtime (`kernels.py`), since steps have none."""

    history: History
    group: Any
    kernel: KernelParams = field(default_factory=KernelParams)

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
        """P(runtime <= x): the weight of the past runs of at most x."""
        times = checked_times("x", x, self.n)
        return self.history.below(self._groups(times), self.history.count(self._groups(times), times, is_closed=True))

    def cdf_below(self, x: Any) -> Floats:
        """P(runtime < x)."""
        times = checked_times("x", x, self.n)
        return self.history.below(self._groups(times), self.history.count(self._groups(times), times, is_closed=False))

    def quantile(self, q: Any) -> Floats:
        """Seconds: the smallest past runtime with cdf >= q."""
        levels = checked_levels(q, self.n)
        return self.history.quantile(self._groups(levels), levels)

    def log_density(self, x: Any) -> Floats:
        """Log of the density of log runtime, of the smoothed history; -inf at 0 s."""
        kernels = fit_kernels(self.history, self.kernel)

        def answer(part: Empirical, times: Floats) -> Floats:
            return kernel_log_density(kernels, part.kernel, part._groups(times), times)

        return in_blocks(self, checked_times("x", x, self.n), answer)

    def crps(self, x: Any) -> Floats:
        """Seconds; equals sum_k p_k |v_k - x| - 1/2 sum_jk p_j p_k |v_j - v_k| of the past runtimes v of weight p."""
        times = checked_times("x", x, self.n)
        return self.history.crps(self._groups(times), times)

    def sample(self, rng: np.random.Generator, n_draws: int) -> Floats:
        """Past runtimes drawn with replacement by weight: (n, n_draws)."""
        return self.quantile(rng.uniform(np.finfo(float).tiny, 1.0, (self.n, n_draws)))

    def atoms(self, most: int) -> tuple[Floats, Floats]:
        """The past runtimes and their weights; above `most` of them, quantiles at (k + 1/2) / most."""
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
