"""Imputation and scaling: every kept metric on one scale, the larger the better.

    z = s · ln(x / median) / spread      log_ratio: an equal share is an equal step on a slow node and on a fast one
    z = s · (x - median) / spread        robust; also for metrics that reach 0 or below
    z = (x - min) / (max - min)          min_max, the paper's; mirrored, (max - x) / (max - min), where less is better

with s = 1 where more is better and -1 where less is, and spread = interquartile range / 1.349. The first two are then
drawn in smoothly beyond clip_from: bounded, so that an outlier moves nothing else, and still rising, so that a machine
faster than all that was seen stays ahead of them."""

import numpy as np

from tasks.nodes.preprocess.orientation import Sign
from tasks.nodes.preprocess.params import Imputation, Scaling
from tasks.nodes.preprocess.recorded import Bools, Floats
from tasks.nodes.preprocess.spread import NORMAL_WIDTH, TAILS, Spread
from tasks.params import Params

NORMAL_QUARTILES = 1.3489795003  # interquartile range of a normal distribution, in standard deviations


class Scale(Params):
    """Of one metric. centre: what becomes 0, in base units. fill: what stands for a missing value, in base units."""

    is_logarithmic: bool
    centre: float
    spread: float
    fill: float


def learn_scale(values: Floats, spread: Spread, sign: Sign, scaling: Scaling, imputation: Imputation) -> Scale:
    """The scale of a metric from its training values (n,), of which two at least differ, and their spread.

    Values of a logarithmic scale are never negative and at most 5 % are 0; where that does not hold it is `robust`."""
    fill = spread.mean if imputation == "mean" else spread.median
    if scaling == "min_max":
        centre = spread.least if sign > 0 else spread.greatest
        return Scale(is_logarithmic=False, centre=centre, spread=spread.greatest - spread.least, fill=fill)
    if scaling == "log_ratio" and spread.least >= 0 and spread.low > 0:
        width = robust_width(np.log(values[values > 0]))
        if width > 0:
            return Scale(is_logarithmic=True, centre=spread.median, spread=width, fill=fill)
    return Scale(is_logarithmic=False, centre=spread.median, spread=robust_width(values), fill=fill)


def robust_width(values: Floats) -> float:
    """Interquartile range as a standard deviation; where it is 0 the width between the tails, then the deviation."""
    ordered = np.sort(values)
    low, first, third, high = np.quantile(ordered, [TAILS[0], 0.25, 0.75, TAILS[1]])
    widths = ((third - first) / NORMAL_QUARTILES, (high - low) / NORMAL_WIDTH, ordered.std())
    return float(next((width for width in widths if width > 0), 0.0))


def scaled(values: Floats, sign: Floats, is_logarithmic: Bools, centre: Floats, spread: Floats) -> Floats:
    """z of each value by the scale beside it, all (n,), before it is drawn in; a logarithm of 0 is -inf · s."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm = np.log(np.where(values > 0, values, 0) / np.where(is_logarithmic, centre, 1))
    return np.asarray(sign * np.where(is_logarithmic, logarithm, values - centre) / spread)


def softly_clipped(z: Floats, start: float, limit: float) -> Floats:
    """z as it is up to `start`, beyond it drawn in: start + (limit - start) · u / (1 + u), u = (|z| - start) / (limit -
    start). Continuous with its slope, strictly rising, within ± limit."""
    beyond = np.maximum(np.abs(z) - start, 0) / (limit - start)
    drawn_in = start + (limit - start) * (1 - 1 / (1 + beyond))
    return np.asarray(np.where(np.abs(z) <= start, z, np.sign(z) * drawn_in))
