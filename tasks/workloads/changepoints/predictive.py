"""The Student-t predictive of a segment, level or line, tabulated by the number of samples that it has seen.

A segment is a level or a straight line with normal noise of autocorrelation r from one sample to the next (AR(1), from
its stationary distribution on); level, slope and variance have a normal-inverse-gamma prior. What is predicted is
z = y - r y_before, of the first sample √(1 - r²) y. After m samples z is predicted at f, with residual δ = z - f. With
a = alpha + m/2 and b as it stands,

    b' = b + δ² / (2 q),    log p(z) = c + a log b - (a + 1/2) log b'    (a Student t with 2a degrees of freedom)

where q, c, the weights of level and slope in f, and the gains by which they follow δ depend on m alone: they are
tabulated once per series length. c of the first sample holds the log of √(1 - r²), so that evidence is that of y.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import lgamma

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tasks.workloads.changepoints.params import PriorParams

Floats = NDArray[np.float64]
N_CACHED = 128  # tables kept: those that one series is tried with


@dataclass(frozen=True)
class Predictive:
    """Tables over m = 0 … n_samples - 1; each row belongs to one m.

    half: (n,) a = alpha + m/2. level: (n, 4) c, 1/(2q), gain, weight. line: (n, 6) c, 1/(2q), gains of level and slope,
    weights of level and slope. start: mean, b, log prior odds of a line (minus infinity: levels only)."""

    half: Floats
    level: Floats
    line: Floats
    start: Floats
    correlation: float

    def arrays(self) -> tuple[Floats, Floats, Floats, Floats, float]:
        """The tables as the compiled filter takes them."""
        return self.half, self.level, self.line, self.start, self.correlation


@lru_cache(maxsize=N_CACHED)
def predictive_tables(prior: PriorParams, n_samples: int, correlation: float = 0.0) -> Predictive:
    """The tables of a prior for a series of `n_samples` samples; time runs from 0 to 1 over the whole series.

    The prior speaks of the noise's stationary variance, whatever its correlation, 0 to less than 1."""
    half = prior.alpha + np.arange(n_samples) / 2
    student = _student(half)
    times = np.arange(n_samples) / max(n_samples, 1)
    of_level, of_time = np.full(n_samples, 1 - correlation), times.copy()
    of_time[1:] -= correlation * times[:-1]
    stationary = 1 / (1 - correlation**2)  # variance of the noise over that of its innovations
    of_level[:1] = stationary**-0.5
    student[:1] -= 0.5 * np.log(stationary)
    never = np.zeros(n_samples)
    gains, spread = line_gains(of_level, never, stationary / prior.kappa, 0.0)
    level = np.column_stack([student - 0.5 * np.log(spread), 0.5 / spread, gains[:, 0], of_level])
    gains, spread = line_gains(of_level, of_time, stationary / prior.kappa, stationary * prior.trend_span**2)
    line = np.column_stack([student - 0.5 * np.log(spread), 0.5 / spread, gains, of_level, of_time])
    odds = np.log(prior.trend_share) - np.log1p(-prior.trend_share) if prior.trend_share else -np.inf
    start = np.array([prior.mean, prior.alpha * prior.noise / stationary, odds])
    return Predictive(half, level, line, start, correlation)


@njit(cache=True)
def _student(half: Floats) -> Floats:
    """The log normalisation of Student's t with 2a degrees of freedom and unit scale, for each a."""
    logs = np.empty(len(half))
    for m in range(len(half)):
        logs[m] = lgamma(half[m] + 0.5) - lgamma(half[m]) - 0.5 * np.log(2 * np.pi)
    return logs


@njit(cache=True)
def line_gains(weights: Floats, times: Floats, of_level: float, of_slope: float) -> tuple[Floats, Floats]:
    """Gains (n, 2) and q (n,) of recursive least squares for level and slope, from their variances over the noise's."""
    gains, spread = np.empty((len(times), 2)), np.empty(len(times))
    shared = 0.0  # covariance of level and slope
    for m in range(len(times)):
        level = of_level * weights[m] + shared * times[m]
        slope = shared * weights[m] + of_slope * times[m]
        spread[m] = 1 + weights[m] * level + times[m] * slope
        gains[m, 0], gains[m, 1] = level / spread[m], slope / spread[m]
        of_level -= level * gains[m, 0]
        shared -= level * gains[m, 1]
        of_slope -= slope * gains[m, 1]
    return gains, spread
