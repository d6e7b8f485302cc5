"""Statistics of each counter over a whole run, on a scale that keeps how much there was of it.

Phases describe how a run moves; these describe how much of everything it does, and hold for a window of it too. A
statistic x is kept as asinh(x / u) with u learned from the training runs: near zero it is linear, far beyond it is a
logarithm, so that counters which span orders of magnitude, gauges included, can be compared. A counter in another unit
gives the same figures, as u changes with it."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.workloads.normalisation import columns_of
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry

LEVELS = ("mean", "deviation", "median", "low", "high", "early", "late")
LOW, HIGH = 0.1, 0.9  # quantiles
UNIT_QUANTILE = 0.1  # of the means that are not 0: the scale on which small levels still differ
THIRDS = 3  # early and late: the means of the first and the last third


@dataclass(frozen=True)
class LevelScale:
    """counters: names. units: (n_counters,), u of each. typical: (n_counters · n_levels,), medians over training."""

    counters: tuple[str, ...]
    units: FloatArray
    typical: FloatArray


def learn_levels(runs: Sequence[Telemetry], counters: Sequence[Counter]) -> LevelScale:
    """The scale of levels from training runs. A counter that is 0 in all of them has unit 1.

    Raises ValueError without runs."""
    if not runs:
        raise ValueError("no run to learn levels from; expected at least one")
    names = tuple(one.name for one in counters)
    raw = np.array([_raw(columns_of(run, names)) for run in runs])  # (n_runs, n_counters, n_levels)
    units = np.array([_unit(column) for column in np.abs(raw[:, :, 0]).T])
    scaled = np.arcsinh(raw / units[:, None]).reshape(len(runs), -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a counter without a single value
        typical = np.nan_to_num(np.nanmedian(scaled, axis=0))
    return LevelScale(names, units, typical)


def _unit(means: FloatArray) -> float:
    present = means[np.isfinite(means) & (means > 0)]
    return float(np.quantile(present, UNIT_QUANTILE)) if len(present) else 1.0


def levels_of(runs: Sequence[Telemetry], scale: LevelScale) -> FloatArray:
    """(n_runs, n_counters · n_levels), counter after counter; NaN for a counter that a run lacks."""
    raw = [_raw(columns_of(run, scale.counters)) for run in runs]
    table = np.array(raw).reshape(len(runs), len(scale.counters), len(LEVELS))
    return np.asarray(np.arcsinh(table / scale.units[:, None]).reshape(len(runs), len(scale.counters) * len(LEVELS)))


def filled(levels: FloatArray, scale: LevelScale) -> FloatArray:
    """Levels with what is typical of the training runs where a counter is missing."""
    return np.where(np.isfinite(levels), levels, scale.typical)


def level_names(counters: Sequence[str]) -> list[str]:
    """Names of the columns of `levels_of`."""
    return [f"{counter} · run · {level}" for counter in counters for level in LEVELS]


def _raw(values: FloatArray) -> FloatArray:
    """LEVELS of each counter in its own unit: (n_counters, n_levels). values: (n_samples, n_counters)."""
    third = max(1, len(values) // THIRDS)
    has_gap = bool(np.isnan(values).any())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a counter without a value has no statistic
        quantile = np.nanquantile if has_gap else np.quantile
        median, low, high = quantile(values, [0.5, LOW, HIGH], axis=0)
        rows = [
            np.nanmean(values, axis=0),
            np.nanstd(values, axis=0),
            median,
            low,
            high,
            np.nanmean(values[:third], axis=0),
            np.nanmean(values[-third:], axis=0),
        ]
    return np.stack(rows, axis=1)
