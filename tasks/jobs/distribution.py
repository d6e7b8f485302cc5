"""What every predicted runtime distribution answers, for many instances at once, and the two kinds there are.

`Empirical`: past runtimes of a group, with weights. `Binned`: probabilities of bins of normalised runtime, a shape,
stretched or shifted by a median."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Floats = NDArray[np.float64]
Rows = slice | NDArray[np.int64]

BLOCK = 4000  # instances worked on together: a matrix of 200 bins is then 6 MB


class Predicted(Protocol):
    """Distributions of runtime in seconds, one for each of `n` instances.

    x: runtimes in seconds, (n,) or (n, m): row i is asked of instance i; the answer has the shape of x.
    All methods raise ValueError for NaN, an infinite x or a wrong shape."""

    @property
    def n(self) -> int:
        """Number of instances."""
        ...

    def rows(self, which: Rows) -> Self:
        """The same for some of the instances."""
        ...

    def cdf(self, x: Any) -> Floats:
        """P(runtime <= x)."""
        ...

    def cdf_below(self, x: Any) -> Floats:
        """P(runtime < x); less than the cdf only where single values have a probability."""
        ...

    def quantile(self, q: Any) -> Floats:
        """Seconds: the smallest x with cdf(x) >= q. q: a level for all, (n,) or (n, m), between 0 and 1."""
        ...

    def log_density(self, x: Any) -> Floats:
        """Log of the density of log runtime, x f(x): free of units, so all kinds compare. -inf where there is none."""
        ...

    def crps(self, x: Any) -> Floats:
        """Seconds: the integral over t of (cdf(t) - 1{t >= x})²; 0 is perfect. Source: Gneiting & Raftery 2007, 4.2."""
        ...

    def atoms(self, most: int) -> tuple[Floats, Floats]:
        """At most `most` values in seconds that stand for each distribution, and their weights: (n, m) each.

        Rows of weights sum to 1. Exact for an empirical distribution of at most `most` values, otherwise the
        quantiles at (k + 1/2) / most."""
        ...


P = TypeVar("P", bound=Predicted)


def in_blocks(predicted: P, asked: Floats, answer: Callable[[P, Floats], Floats], *, block: int = BLOCK) -> Floats:
    """answer(part of predicted, the same rows of asked), joined: bounded memory. asked: (n, ...)."""
    n = predicted.n
    if n <= block:
        return answer(predicted, asked)
    starts = range(0, n, block)
    return np.concatenate([answer(predicted.rows(slice(i, i + block)), asked[i : i + block]) for i in starts])


def checked_times(name: str, values: Any, n: int) -> Floats:
    """values as float64 of shape (n,) or (n, m). Raises ValueError for another shape, NaN or infinite values."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim not in (1, 2) or found.shape[0] != n:
        raise ValueError(f"{name}: shape {found.shape}; expected ({n},) or ({n}, m), a row for each instance")
    refuse(name, found, ~np.isfinite(found), "a finite number of seconds")
    return found


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


def row_numbers(x: NDArray[Any]) -> NDArray[np.int64]:
    """0 ... n - 1 in a shape that goes with x: (n,) or (n, 1)."""
    numbers = np.arange(len(x))
    return numbers[:, None] if x.ndim == 2 else numbers


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
LEAST_KERNEL = 0.02  # width in log runtime: about 2 %
TAIL_DF = 3.0  # degrees of freedom of the Student kernel
MOST_KERNELS = 200  # of a group; longer histories stand as that many quantiles


@dataclass(frozen=True)
class Kernels:
    """centres: (n_kernels,) logs of runtimes, log_weights: the same, width: (n_groups,), starts: (n_groups + 1,).

    Runs of 0 s have no logarithm: they keep their weight in the steps and add no density."""

    centres: Floats
    log_weights: Floats
    width: Floats
    starts: Ints


def fit_kernels(history: History) -> Kernels:
    """One kernel for each past run, or for each of MOST_KERNELS quantiles of a longer history.

    The width is Silverman's, with 1 / sum p² for n, p the weights; at least LEAST_KERNEL, as for one run."""
    sizes = history.sizes
    group = np.repeat(np.arange(history.n_groups), sizes)
    values, weights = history.values_s, history.weights
    is_long = sizes > MOST_KERNELS
    if is_long.any():
        long = np.flatnonzero(is_long)
        levels = np.broadcast_to((np.arange(MOST_KERNELS) + 0.5) / MOST_KERNELS, (len(long), MOST_KERNELS))
        thinned = history.quantile(long[:, None], levels)
        is_kept = ~is_long[group]
        group = np.concatenate([group[is_kept], np.repeat(long, MOST_KERNELS)])
        values = np.concatenate([values[is_kept], thinned.ravel()])
        weights = np.concatenate([weights[is_kept], np.full(thinned.size, 1 / MOST_KERNELS)])
        order = np.argsort(group, kind="stable")
        group, values, weights = group[order], values[order], weights[order]
    with np.errstate(divide="ignore"):
        centres, log_weights = np.log(values), np.log(weights)
    starts = np.searchsorted(group, np.arange(history.n_groups + 1))
    return Kernels(centres, log_weights, _widths(history), starts.astype(np.int64))


def _widths(history: History) -> Floats:
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
    return np.maximum(SILVERMAN * scale * n_effective**-0.2, LEAST_KERNEL)


def kernel_log_density(kernels: Kernels, groups: Any, x: Floats) -> Floats:
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
            found[first:cut] = _block(kernels, group[first:cut], times[first:cut])
        first = max(first, int(cut))
    return found.reshape(x.shape)


def _block(kernels: Kernels, group: Ints, times: Floats) -> Floats:
    sizes = np.diff(kernels.starts)[group]
    row = np.repeat(np.arange(len(group)), sizes)
    into = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    where = kernels.starts[group][row] + into  # (n_pairs,)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (np.log(times)[row] - kernels.centres[where]) / kernels.width[group][row]
        each = kernels.log_weights[where] + _log_kernel(z)
    each = np.where(np.isfinite(each), each, -np.inf)
    starts = np.cumsum(sizes) - sizes
    largest = np.maximum.reduceat(each, starts)  # every group has a kernel
    base = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(
            base + np.log(np.add.reduceat(np.exp(each - base[row]), starts)) - np.log(kernels.width[group])
        )


def _log_kernel(z: Floats) -> Floats:
    log_scale = gammaln((TAIL_DF + 1) / 2) - gammaln(TAIL_DF / 2) - 0.5 * np.log(TAIL_DF * np.pi)
    return np.asarray(log_scale - (TAIL_DF + 1) / 2 * np.log1p(z * z / TAIL_DF))


@dataclass(frozen=True)
class Empirical:
    """For each instance the past runtimes of its group. group: (n,), numbers of groups in history.

    cdf, quantiles, CRPS and samples are those of the steps, exact; only the log density is of the smoothed history,
    with kernels over log runtime, since steps have none."""

    history: History
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
        kernels = fit_kernels(self.history)

        def answer(part: Empirical, times: Floats) -> Floats:
            return kernel_log_density(kernels, part._groups(times), times)

        return in_blocks(self, checked_times("x", x, self.n), answer)

    def crps(self, x: Any) -> Floats:
        """Seconds; equals sum_k p_k |v_k - x| - 1/2 sum_jk p_j p_k |v_j - v_k| of the past runtimes v of weight p."""
        times = checked_times("x", x, self.n)
        return self.history.crps(self._groups(times), times)

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


@dataclass(frozen=True)
class Pieces:
    """Densities that are constant in each bin; the last bin can be open, with an exponential tail.

    edges: (n_bins + 1,), where bins are looked up; lower, width: (n, n_bins), where each bin begins and how wide it is
    in this row (0: cut away); mass: (n, n_bins), rows sum to 1; tail: mean of the excess over the start of the last
    bin, None if that bin is closed. All in the same normalised unit, u. u: (n,) or (n, m)."""

    edges: Floats
    lower: Floats
    width: Floats
    mass: Floats
    tail: float | None

    @cached_property
    def _below(self) -> Floats:
        """Probability below each bin, and 1 at the end: (n, n_bins + 1)."""
        below = np.zeros((len(self.mass), self.mass.shape[1] + 1))
        np.cumsum(self.mass, axis=1, out=below[:, 1:])
        np.minimum(below, 1.0, out=below)
        below[:, -1] = 1.0
        return below

    @cached_property
    def _areas(self) -> tuple[Floats, Floats]:
        """The integral of F² from the start up to each edge, and of (1 - F)² from each edge on: (n, n_bins + 1) each.

        In a bin where F goes straight from f0 to f1 it is width (f0² + f0 f1 + f1²) / 3; beyond the start of an
        open bin of mass m, (1 - F)² = m² exp(-2 z / tail), and the integral is m² tail / 2."""
        f0, f1 = self._below[:, :-1], self._below[:, 1:]
        left, right = np.zeros(self._below.shape), np.zeros(self._below.shape)
        squares = self.width * (f0 * f0 + f0 * f1 + f1 * f1) / 3
        np.cumsum(squares, axis=1, out=left[:, 1:])
        s0, s1 = 1 - f0, 1 - f1
        squares = self.width * (s0 * s0 + s0 * s1 + s1 * s1) / 3
        if self.tail is not None:
            squares[:, -1] = s0[:, -1] ** 2 * self.tail / 2
        right[:, :-1] = np.cumsum(squares[:, ::-1], axis=1)[:, ::-1]
        return left, right

    def _at(self, u: Floats) -> tuple[Any, Any, Floats, Floats, Floats, Floats]:
        """Row, bin, distance into the bin, its width and the cdf at its start and at u."""
        rows = row_numbers(u)
        bins = np.clip(np.searchsorted(self.edges, u, side="right") - 1, 0, self.mass.shape[1] - 1)
        width, f0 = self.width[rows, bins], self._below[rows, bins]
        into = u - self.lower[rows, bins]
        share = np.clip(into / np.where(width > 0, width, 1.0), 0.0, 1.0)
        if self.tail is not None:
            share = np.where(bins == self.mass.shape[1] - 1, -np.expm1(-np.maximum(into, 0) / self.tail), share)
        return rows, bins, into, width, f0, np.minimum(f0 + share * self.mass[rows, bins], 1.0)

    def cdf(self, u: Floats) -> Floats:
        """P(value <= u)."""
        return self._at(u)[-1]

    def log_density(self, u: Floats) -> Floats:
        """Log of the density per normalised unit; -inf outside the bins and where there is no mass."""
        rows, bins, into, width, _, _ = self._at(u)
        mass = self.mass[rows, bins]
        is_inside = (into >= 0) & (into <= width)
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Floats = np.where(is_inside & (width > 0) & (mass > 0), np.log(mass / width), -np.inf)
            if self.tail is not None:
                in_tail = np.log(mass / self.tail) - into / self.tail
                found = np.where((bins == self.mass.shape[1] - 1) & (into >= 0), in_tail, found)
        return found

    def quantile(self, q: Floats) -> Floats:
        """The smallest u with cdf(u) >= q."""
        rows, n_bins = row_numbers(q), self.mass.shape[1]
        # rows are laid end to end, each 2 above the one before, so that one search serves all of them
        laid = (self._below[:, 1:] + 2.0 * np.arange(len(q))[:, None]).ravel()
        bins = np.clip(np.searchsorted(laid, q + 2.0 * rows) - rows * n_bins, 0, n_bins - 1)
        mass = self.mass[rows, bins]
        share = np.clip((q - self._below[rows, bins]) / np.where(mass > 0, mass, 1.0), 0.0, 1.0)
        found: Floats = self.lower[rows, bins] + share * self.width[rows, bins]
        if self.tail is not None:
            # in the tail 1 - q = mass exp(-z / tail)
            z = -self.tail * np.log(np.minimum((1 - q) / np.where(mass > 0, mass, 1.0), 1.0))
            found = np.where(bins == n_bins - 1, self.lower[rows, bins] + z, found)
        return found

    def crps(self, u: Floats) -> Floats:
        """The integral of F² below u plus that of (1 - F)² above it."""
        left, right = self._areas
        rows, bins, into, width, f0, f = self._at(u)
        to_u = np.clip(into, 0.0, width)
        s1, s = 1 - self._below[rows, bins + 1], 1 - f
        below = left[rows, bins] + to_u * (f0 * f0 + f0 * f + f * f) / 3
        above = right[rows, bins + 1] + (width - to_u) * (s * s + s * s1 + s1 * s1) / 3
        if self.tail is not None:
            is_tail, z, m = bins == self.mass.shape[1] - 1, np.maximum(into, 0), 1 - f0
            # F² = 1 - 2 m exp(-z / tail) + m² exp(-2 z / tail), from 0 to z
            squares = (
                z + 2 * m * self.tail * np.expm1(-z / self.tail) - m**2 * self.tail / 2 * np.expm1(-2 * z / self.tail)
            )
            below = np.where(is_tail, left[rows, bins] + squares, below)
            above = np.where(is_tail, s * s * self.tail / 2, above)
        outside = np.maximum(self.lower[:, 0][rows] - u, 0)
        if self.tail is None:
            outside = outside + np.maximum(u - (self.lower[:, -1] + self.width[:, -1])[rows], 0)
        return np.asarray(below + above + outside)


Normalisation = Literal["ratio", "delta"]


@dataclass(frozen=True)
class Tails:
    """How the two outer bins, which hold the outliers, are spread; means in normalised units, None: a bin like others.

    upper_mean: the last bin has no end; beyond its start the excess is exponential with this mean.
    lower_mean: the first bin is uniform over twice this mean below its upper edge, or down to 0 s if that is further:
    no runtime is below 0 s, so this side ends."""

    upper_mean: float | None = None
    lower_mean: float | None = None


def fit_tails(values: Any, edges: Any, normalisation: Normalisation) -> Tails:
    """Tails with the mean excess of the training values in the outer bins; values: (n,), normalised runtimes.

    Without a value there the mean is the width of the bin. A ratio has no lower tail. Raises ValueError for NaN."""
    found = checked_times("values", values, len(values))
    bounds = np.asarray(edges, dtype=np.float64)
    upper, lower = found[found >= bounds[-2]] - bounds[-2], bounds[1] - found[found < bounds[1]]
    upper_mean = float(upper.mean()) if upper.sum() > 0 else float(bounds[-1] - bounds[-2])
    if normalisation == "ratio":
        return Tails(upper_mean)
    return Tails(upper_mean, float(lower.mean()) if lower.size else float(bounds[1] - bounds[0]))


def outer_edges(low: float, high: float, n_bins: int, normalisation: Normalisation) -> Floats:
    """Edges for n_bins bins of which the first and last are open and the others cut [low, high] evenly: (n_bins + 1,).

    The outermost edges are one width further out, where only a bin without a tail ends; a ratio begins at 0 at the
    latest. A ratio whose low is 0 has runs of no length in its first bin: see `without_zero_bin`."""
    inner = np.linspace(low, high, n_bins - 1)
    width = inner[1] - inner[0]
    return np.concatenate([[0.0 if normalisation == "ratio" and low > 0 else low - width], inner, [high + width]])


def without_zero_bin(edges: Any, probabilities: Any) -> tuple[Floats, Floats]:
    """Edges and probabilities with the first bin, of runs of no length, put into the second, for a ratio from 0 on.

    edges: (n_bins + 1,); probabilities: (k, n_bins). Unchanged if the first bin does not end at 0."""
    bounds, mass = np.asarray(edges, dtype=np.float64), np.asarray(probabilities, dtype=np.float64)
    if bounds[1] != 0:
        return bounds, mass
    joined = mass[:, 1:].copy()
    joined[:, 0] += mass[:, 0]
    return bounds[1:], joined


ROUNDING = 1e-6  # how far a sum of probabilities may be from 1


@dataclass(frozen=True)
class Binned:
    """Runtime = median × u (ratio) or median + u (delta), u with a constant density inside each bin.

    edges: (n_bins + 1,), ascending. shapes: (k, n_bins), rows sum to 1. medians_s: (n,), above 0 for a ratio.
    weights: (n, k), rows sum to 1: the bins of instance i are weights[i] @ shapes, made block by block; None if k = n
    and row i of shapes is instance i. With delta, what would lie below 0 s is cut away and the rest scaled up.
    Raises ValueError for NaN, wrong shapes, sums other than 1, a ratio to a median of 0, or an instance that has
    nothing left above 0 s. Source: Zhu et al. 2023, 4.2; the tails are ours."""

    edges: Floats
    shapes: Floats
    medians_s: Floats
    normalisation: Normalisation
    tails: Tails = field(default_factory=Tails)
    weights: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("edges", "shapes", "medians_s", "weights"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        _check(self)

    @property
    def n(self) -> int:
        """Number of instances."""
        return len(self.medians_s)

    def rows(self, which: Rows) -> Self:
        """The same for some of the instances."""
        if self.weights is None:
            return _unchecked(self, shapes=self.shapes[which], medians_s=self.medians_s[which])
        return _unchecked(self, weights=self.weights[which], medians_s=self.medians_s[which])

    def mass(self) -> Floats:
        """Probability of each bin before anything is cut at 0 s: (n, n_bins)."""
        return self.shapes if self.weights is None else self.weights @ self.shapes

    @cached_property
    def _pieces(self) -> Pieces:
        """Only ever made for one block of instances."""
        edges, mass, tail = self.edges, self.mass(), self.tails.upper_mean
        if self.normalisation == "ratio":
            lower = np.broadcast_to(edges[:-1], mass.shape)
            return Pieces(edges, lower, np.broadcast_to(np.diff(edges), mass.shape), mass, tail)
        zero = -self.medians_s[:, None]  # where 0 s lies
        starts = np.repeat(edges[None, :-1], self.n, axis=0)
        if self.tails.lower_mean is not None:
            starts[:, :1] = np.minimum(edges[1] - 2 * self.tails.lower_mean, zero)
        lower, upper = np.maximum(starts, zero), np.maximum(edges[1:], zero)
        mass = mass * ((upper - lower) / (edges[1:] - starts))
        left = mass.sum(axis=1)
        refuse("medians_s", self.medians_s, left <= 0, "a median whose shape leaves some probability above 0 s")
        return Pieces(edges, lower, upper - lower, mass / left[:, None], tail)

    def _unit(self, x: Floats) -> Any:
        """Seconds of one normalised unit, in a shape that goes with x."""
        unit = self.medians_s if self.normalisation == "ratio" else np.ones(self.n)
        return unit[:, None] if x.ndim == 2 else unit

    def _normalised(self, x: Floats) -> Floats:
        medians_s = self.medians_s[:, None] if x.ndim == 2 else self.medians_s
        return x / medians_s if self.normalisation == "ratio" else x - medians_s

    def cdf(self, x: Any) -> Floats:
        """P(runtime <= x)."""
        times = checked_times("x", x, self.n)
        return in_blocks(self, times, lambda part, t: part._pieces.cdf(part._normalised(t)))

    def cdf_below(self, x: Any) -> Floats:
        """The cdf: no single value has a probability."""
        return self.cdf(x)

    def quantile(self, q: Any) -> Floats:
        """Seconds, the inverse of the cdf."""

        def answer(part: Binned, levels: Floats) -> Floats:
            u = part._pieces.quantile(levels)
            if part.normalisation == "ratio":
                return np.asarray(u * part._unit(levels))
            return np.asarray(u + (part.medians_s[:, None] if levels.ndim == 2 else part.medians_s))

        return in_blocks(self, checked_levels(q, self.n), answer)

    def log_density(self, x: Any) -> Floats:
        """Log of x f(x), the density of log runtime; -inf at 0 s and where a bin is empty."""

        def answer(part: Binned, t: Floats) -> Floats:
            with np.errstate(divide="ignore"):
                log_x = np.log(np.maximum(t, 0) / part._unit(t))
            return np.asarray(part._pieces.log_density(part._normalised(t)) + log_x)

        return in_blocks(self, checked_times("x", x, self.n), answer)

    def crps(self, x: Any) -> Floats:
        """Seconds, in closed form."""

        def answer(part: Binned, t: Floats) -> Floats:
            return np.asarray(part._pieces.crps(part._normalised(t)) * part._unit(t))

        return in_blocks(self, checked_times("x", x, self.n), answer)

    def atoms(self, most: int) -> tuple[Floats, Floats]:
        """Quantiles at (k + 1/2) / most, of equal weight."""
        levels = (np.arange(most) + 0.5) / most
        values = self.quantile(np.broadcast_to(levels, (self.n, most)))
        return values, np.full(values.shape, 1 / most)


B = TypeVar("B", bound=Binned)


def _unchecked(binned: B, **changes: Any) -> B:
    """A part of what was checked before: not checked again, and without the pieces of the whole."""
    part = object.__new__(type(binned))
    for name in binned.__dataclass_fields__:
        object.__setattr__(part, name, changes.get(name, getattr(binned, name)))
    return part


def _check(binned: Binned) -> None:
    edges, shapes, medians_s, weights = binned.edges, binned.shapes, binned.medians_s, binned.weights
    refuse("edges", edges, ~np.isfinite(edges), "finite edges; an outer bin is opened by tails")
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise ValueError(f"edges: shape {edges.shape}; expected at least two, each above the one before")
    if shapes.ndim != 2 or shapes.shape[1] != len(edges) - 1:
        raise ValueError(f"shapes: shape {shapes.shape}; expected (k, {len(edges) - 1}), a column for each bin")
    if medians_s.ndim != 1 or (shapes if weights is None else weights).shape[0] != len(medians_s):
        raise ValueError(f"medians_s: shape {medians_s.shape}; expected one for each row of shapes, or of weights")
    if weights is not None and weights.shape != (len(medians_s), len(shapes)):
        raise ValueError(f"weights: shape {weights.shape}; expected ({len(medians_s)}, {len(shapes)})")
    is_ratio = binned.normalisation == "ratio"
    refuse("medians_s", medians_s, ~np.isfinite(medians_s) | (medians_s < 0), "a finite median of 0 s or more")
    refuse("medians_s", medians_s, is_ratio & (medians_s == 0), "above 0 s, since a ratio to 0 is nothing; use delta")
    if is_ratio and (edges[0] < 0 or binned.tails.lower_mean is not None):
        raise ValueError("edges: a ratio is 0 or more and has no lower tail; expected edges from 0 on")
    if binned.tails.upper_mean is not None and edges[-2] < 0:
        raise ValueError(f"edges: the open bin begins at {edges[-2]:g}; expected 0 or more")
    for name, table in (("shapes", shapes), ("weights", weights)):
        if table is not None:
            refuse(name, table, ~(table >= 0) | np.isinf(table), "probabilities of 0 or more")
            sums = table.sum(axis=1)
            refuse(f"sums of {name}", sums, np.abs(sums - 1) > ROUNDING, "1 in each row")
