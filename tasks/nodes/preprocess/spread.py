"""How the values of one metric lie: what selection, orientation and scaling decide by."""

import numpy as np

from tasks.nodes.preprocess.recorded import Floats
from tasks.params import Params

TAILS = (0.05, 0.95)
NORMAL_WIDTH = 3.2897072539  # of a normal distribution between these, in standard deviations
SAME = 1e-9  # values closer than this, as a share, are one: the rest is rounding of units


class Spread(Params):
    """Of the training values of a metric, in base units. n_distinct counts values that differ by more than rounding.

    low, high: 5 % and 95 % quantiles. deviation: sample standard deviation, 0 for one value."""

    n_values: int
    n_distinct: int
    least: float
    low: float
    median: float
    high: float
    greatest: float
    mean: float
    deviation: float

    @property
    def robust_deviation(self) -> float:
        """Width between the tails, as the standard deviation of a normal distribution of that width."""
        return (self.high - self.low) / NORMAL_WIDTH

    @property
    def dispersion(self) -> float:
        """Robust coefficient of variation: robust deviation over |median|; the same in every unit.

        Up to 5 % of outliers on either side do not count. Where the median is 0 the larger tail takes its place."""
        levels = (abs(self.median), max(abs(self.low), abs(self.high)))
        level = next((one for one in levels if one > 0), 0.0)
        return self.robust_deviation / level if level else 0.0


def spread_of(values: Floats) -> Spread | None:
    """The spread of values (n,), in any order; None without any."""
    if not len(values):
        return None
    ordered = np.sort(values)  # sums in one order: the same for any order of the executions
    low, median, high = np.quantile(ordered, [TAILS[0], 0.5, TAILS[1]])
    return Spread(
        n_values=len(ordered),
        n_distinct=count_distinct(ordered),
        least=float(ordered[0]),
        low=float(low),
        median=float(median),
        high=float(high),
        greatest=float(ordered[-1]),
        mean=float(ordered.mean()),
        deviation=float(ordered.std(ddof=1)) if len(ordered) > 1 else 0.0,
    )


def count_distinct(ordered: Floats) -> int:
    """Number of distinct values among rising ones (n,), n at least 1; those as close as rounding are one."""
    limits = SAME * np.maximum(np.abs(ordered[1:]), np.abs(ordered[:-1]))
    return 1 + int(np.count_nonzero(np.diff(ordered) > limits))
