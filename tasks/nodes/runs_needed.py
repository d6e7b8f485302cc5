"""How many runs it takes to tell two levels apart.

A two-sided test on the difference of two medians of n runs each, by the normal approximation: the median of n values
of a normal distribution has variance π σ² / (2 n), so the test finds a difference δ with the wanted power from

    n = (z_{1 - α/2} + z_power)² · (π/2) · (σ₁² + σ₂²) / δ²

runs each on, σ and δ of the logarithms of the values. (Lehmann 1999, 3.2 and example 2.4.9)"""

import numpy as np
from scipy.stats import norm

from tasks.nodes.type_tables import Floats

SIGNIFICANCE, POWER = 0.05, 0.8
LEAST = 2  # one run has no spread
VARIANCE_OF_MEDIAN = np.pi / 2  # of a normal distribution, times σ²/n


def runs_needed(apart: Floats, one_deviation: Floats, other_deviation: Floats) -> Floats:
    """Runs on each side until a difference is found: whole numbers from 2 on, infinite for no difference.

    apart: difference of the medians of the logarithms; deviations: of the logarithms, on either side; same shapes.
    NaN where anything is missing."""
    factor = (norm.ppf(1 - SIGNIFICANCE / 2) + norm.ppf(POWER)) ** 2 * VARIANCE_OF_MEDIAN
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = factor * (one_deviation**2 + other_deviation**2) / np.asarray(apart, dtype=np.float64) ** 2
    needed = np.where((apart == 0) & ~np.isnan(one_deviation + other_deviation), np.inf, needed)
    return np.maximum(np.ceil(needed), LEAST)


def runs_to_see_change(change: float, deviation: Floats) -> Floats:
    """Runs before and after until a change by this share, such as 0.05, is found."""
    return runs_needed(np.full(np.shape(deviation), np.log1p(change)), deviation, deviation)
