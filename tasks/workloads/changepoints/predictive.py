"""The Student-t predictive of a segment, level or line, tabulated by the number of samples that it has seen.

A segment is a level or a straight line with normal noise; level, slope and variance have a normal-inverse-gamma prior.
After m samples the next one, y, is predicted at f with residual δ = y - f. With a = alpha + m/2 and b as it stands,

    b' = b + δ² / (2 q),    log p(y) = c + a log b - (a + 1/2) log b'    (a Student t with 2a degrees of freedom)

where q, c and the gains by which level and slope follow δ depend on m alone: they are tabulated once per series length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import gammaln

from tasks.workloads.changepoints.params import PriorParams

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Predictive:
    """Tables over m = 0 … n_samples - 1; each row belongs to one m.

    half: (n,) a = alpha + m/2. level: (n, 3) c, 1/(2q), gain. line: (n, 5) c, 1/(2q), gain of the level, gain of the
    slope, and the time of the sample. start: mean, b, log prior odds of a line (minus infinity: levels only)."""

    half: Floats
    level: Floats
    line: Floats
    start: Floats

    def arrays(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The tables as the compiled filter takes them."""
        return self.half, self.level, self.line, self.start


@lru_cache(maxsize=64)
def predictive_tables(prior: PriorParams, n_samples: int) -> Predictive:
    """The tables of a prior for a series of `n_samples` samples; time runs from 0 to 1 over the whole series."""
    seen = np.arange(n_samples, dtype=np.float64)
    half = prior.alpha + seen / 2
    student = gammaln(half + 0.5) - gammaln(half) - 0.5 * np.log(2 * np.pi)
    kappa = prior.kappa + seen
    spread = 1 + 1 / kappa  # q of a level
    level = np.column_stack([student - 0.5 * np.log(spread), 0.5 / spread, 1 / (kappa + 1)])
    times = seen / max(n_samples, 1)
    gains, spread = line_gains(times, 1 / prior.kappa, prior.trend_span**2)
    line = np.column_stack([student - 0.5 * np.log(spread), 0.5 / spread, gains, times])
    odds = np.log(prior.trend_share) - np.log1p(-prior.trend_share) if prior.trend_share else -np.inf
    start = np.array([prior.mean, prior.alpha * prior.noise, odds])
    return Predictive(half, level, line, start)


@njit(cache=True)
def line_gains(times: Floats, of_level: float, of_slope: float) -> tuple[Floats, Floats]:
    """Gains (n, 2) and q (n,) of recursive least squares for level and slope, from their variances over the noise's."""
    gains, spread = np.empty((len(times), 2)), np.empty(len(times))
    shared = 0.0  # covariance of level and slope
    for m in range(len(times)):
        level, slope = of_level + shared * times[m], shared + of_slope * times[m]
        spread[m] = 1 + level + slope * times[m]
        gains[m, 0], gains[m, 1] = level / spread[m], slope / spread[m]
        of_level -= level * gains[m, 0]
        shared -= level * gains[m, 1]
        of_slope -= slope * gains[m, 1]
    return gains, spread
