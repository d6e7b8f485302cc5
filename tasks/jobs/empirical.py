"""Runtimes predicted as those of past runs: the empirical distribution of a group's history, with weights."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from tasks.jobs.distribution import Floats, Rows, checked_levels, checked_times, in_blocks
from tasks.jobs.history import History
from tasks.jobs.kernels import KernelParams, Kernels, fit_kernels, kernel_log_density


@dataclass(frozen=True)
class Empirical:
    """For each instance the past runtimes of its group. group: (n,), numbers of groups in history.

    cdf, quantiles, CRPS and samples are those of the steps, exact; only the log density is of the smoothed history,
    with kernels over log runtime (`kernels.py`), since steps have none."""

    history: History
    group: Any
    kernel: KernelParams = field(default_factory=KernelParams)
    kernels: Kernels | None = None

    def __post_init__(self) -> None:
        group = np.asarray(self.group)
        if group.ndim != 1 or (group.size and not np.issubdtype(group.dtype, np.integer)):
            raise ValueError(f"group: shape {group.shape}, {group.dtype}; expected (n,) whole numbers of groups")
        if group.size and not (group.min() >= 0 and group.max() < self.history.n_groups):
            raise ValueError(f"group: from {group.min()} to {group.max()}; expected 0 to {self.history.n_groups - 1}")
        object.__setattr__(self, "group", group.astype(np.int64))
        if self.kernels is None:
            object.__setattr__(self, "kernels", fit_kernels(self.history, self.kernel))

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

        def answer(part: Empirical, times: Floats) -> Floats:
            assert part.kernels is not None
            return kernel_log_density(part.kernels, part.kernel, part._groups(times), times)

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
