"""Runtime distributions of many instances at once: past runtimes, or quantiles that stand for a prediction."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = slice | NDArray[np.int64]
ROUNDING = 1e-9  # of levels, so that 1/3 finds the first of three


def _for_each(values: Any, n: int) -> Floats:
    """values as float64, (n,) or (n, m); one value counts for all n."""
    numbers = np.asarray(values, dtype=np.float64)
    return np.full(n, numbers) if numbers.ndim == 0 else numbers


@dataclass(frozen=True)
class Empirical:
    """Distributions of runtime in seconds, one for each of n instances: the steps of its values, all of equal weight.

    values_s: (n_values,), of several instances one after the other, ascending within each; starts, sizes: (n,), where
    the values of each instance begin, and how many it has, at least one. x: finite seconds, one for all, (n,) or
    (n, m): row i is asked of instance i; the answer has the shape of x, (n,) for one."""

    values_s: Floats
    starts: Ints
    sizes: Ints

    @property
    def n(self) -> int:
        """Number of instances."""
        return len(self.starts)

    def rows(self, which: Rows) -> Self:
        """The same for some of the instances; the values are shared."""
        return replace(self, starts=self.starts[which], sizes=self.sizes[which])

    def cdf(self, x: Any) -> Floats:
        """P(runtime <= x)."""
        return self._share(x, is_closed=True)

    def cdf_below(self, x: Any) -> Floats:
        """P(runtime < x)."""
        return self._share(x, is_closed=False)

    def _share(self, x: Any, *, is_closed: bool) -> Floats:
        """The share of the values of at most x (is_closed) or below x: a binary search in all instances at once."""
        times = _for_each(x, self.n)
        starts, sizes = self._beside(times)
        low, high = np.broadcast_arrays(starts, times)[0], np.broadcast_arrays(starts + sizes, times)[0]
        for _ in range(int(self.sizes.max(initial=1)).bit_length()):
            middle = (low + high) // 2
            value = self.values_s[np.minimum(middle, len(self.values_s) - 1)]
            is_right = (value <= times if is_closed else value < times) & (middle < high)
            low, high = np.where(is_right, middle + 1, low), np.where(is_right, high, middle)
        return np.asarray((low - starts) / sizes)

    def quantile(self, q: Any) -> Floats:
        """Seconds: the smallest x with cdf(x) >= q. q: a level for all, (n,) or (n, m), between 0 and 1."""
        levels = _for_each(q, self.n)
        starts, sizes = self._beside(levels)
        place = np.ceil((levels - ROUNDING) * sizes).astype(np.int64) - 1
        return np.asarray(self.values_s[starts + np.maximum(place, 0)])

    def quantiles(self, levels: Any) -> Floats:
        """The same at several levels, (m,), of all instances: (n, m)."""
        return self.quantile(np.broadcast_to(levels, (self.n, len(levels))))

    def crps(self, x: Any) -> Floats:
        """Seconds: the integral over t of (cdf(t) - 1{t >= x})²; 0 is perfect. x: one for all, or (n,).

        It is sum_k p_k |v_k - x| - 1/2 sum_jk p_j p_k |v_j - v_k|, values v of weight p (Gneiting & Raftery 2007)."""
        times = _for_each(x, self.n)
        instance, place, value = self._flat()
        upto, at, is_last = (place + 1) / self.sizes[instance], times[instance], place + 1 == self.sizes[instance]
        below, above = np.minimum(value, at), np.maximum(value, at)
        # F² from a value to the next, as far as it is below x; (1 - F)² as far as it is above
        to_x = np.where(is_last, at, np.roll(below, -1)) - below
        from_x = np.where(is_last, 0.0, np.roll(above, -1) - above)
        within = np.bincount(instance, upto**2 * to_x + (1 - upto) ** 2 * from_x, minlength=self.n)
        return np.asarray(within + np.maximum(self.values_s[self.starts] - times, 0.0))

    def mean_above(self, x: Any) -> Floats:
        """E[(T - x)+] in seconds, the integral of P(T > t) over t > x; x: one for all, or (n,)."""
        times = _for_each(x, self.n)
        instance, _, value = self._flat()
        return np.asarray(
            np.bincount(instance, np.maximum(value - times[instance], 0.0), minlength=self.n) / self.sizes
        )

    def atoms(self, most: int) -> tuple[Floats, Floats]:
        """Values in seconds and their weights, (n, m) each; above `most` values, quantiles at (k + 1/2) / most."""
        width = int(min(self.sizes.max(initial=1), most))
        is_there = np.arange(width) < self.sizes[:, None]
        values = self.values_s[self.starts[:, None] + np.where(is_there, np.arange(width), 0)]
        weights = is_there / np.minimum(self.sizes, most)[:, None]
        is_long = np.flatnonzero(self.sizes > most)
        if len(is_long):
            values[is_long] = self.rows(is_long).quantiles((np.arange(most) + 0.5) / most)
        return values, weights

    def _flat(self) -> tuple[Ints, Ints, Floats]:
        """Of each value of every instance: the instance, its place there, and the value in seconds."""
        instance = np.repeat(np.arange(self.n), self.sizes)
        place = np.arange(len(instance)) - np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)
        return instance, place, self.values_s[self.starts[instance] + place]

    def _beside(self, x: Floats) -> tuple[Ints, Ints]:
        """starts and sizes in a shape that goes with x."""
        return (self.starts[:, None], self.sizes[:, None]) if x.ndim == 2 else (self.starts, self.sizes)


def gather_history(values_s: Any, groups: Any) -> Empirical:
    """One distribution a group: of runs in any order, (n_runs,) seconds, and their groups, all of 0 … n_groups - 1."""
    values, group = np.asarray(values_s, dtype=np.float64), np.asarray(groups, dtype=np.int64)
    sizes = np.bincount(group)
    return Empirical(values[np.lexsort((values, group))], np.cumsum(sizes) - sizes, sizes)


def even_steps(values_s: Floats) -> Empirical:
    """One distribution a row, of its values in seconds: (n, m), 0 or more, ascending."""
    n, m = values_s.shape
    return Empirical(np.ravel(values_s), np.arange(n, dtype=np.int64) * m, np.full(n, m, dtype=np.int64))
