"""Counters of unlike magnitude on one scale (CWD, V-A, eq. 7, and two alternatives).

Equation 7 compares a run with itself: what remains of a counter is when it moved, not how much there was of it. The
scale learned over training runs keeps levels."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.workloads.normalisation_params import NormalisationParams
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry


@dataclass(frozen=True)
class Scale:
    """Centre and spread of each counter over the samples of the training runs, (n_counters,) each.

    logged: whether the counter is a rate, scaled by sign(x) · log(1 + |x|). A counter that never varied: spread 0."""

    counters: tuple[str, ...]
    logged: tuple[bool, ...]
    centre: FloatArray
    spread: FloatArray


def zscore(values: FloatArray) -> FloatArray:
    """(x − μ) / σ for each column of (n_samples, n_counters), μ and σ over the run; 0 where it is constant.

    NaN stays NaN and does not count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a counter without a single value
        centre, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    return _scaled(values, centre, spread)


def equation_7(values: FloatArray) -> FloatArray:
    """y = |x − μ| / σ, as printed; 0 where the counter is constant."""
    return np.abs(zscore(values))


def learn_scale(runs: Sequence[Telemetry], counters: Sequence[Counter]) -> Scale:
    """Centre and spread of the named counters over all samples of the runs, each run with the same weight.

    A counter that a run lacks is learned from others; one that no run has gets NaN. Raises ValueError without runs."""
    if not runs:
        raise ValueError("no run to learn a scale from; expected at least one")
    logged = tuple(counter.is_rate for counter in counters)
    names = tuple(counter.name for counter in counters)
    moments = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for run in runs:
            values = logarithm_of_rates(columns_of(run, names), logged)
            moments.append([np.nanmean(values, axis=0), np.nanmean(values**2, axis=0)])
        mean, mean_square = np.nanmean(np.array(moments), axis=0)
    variance = np.maximum(mean_square - mean**2, 0)
    is_constant = variance <= (1e-9 * np.maximum(np.abs(mean), 1)) ** 2  # rounding of the squares
    return Scale(names, logged, mean, np.where(is_constant, 0, np.sqrt(variance)))


def columns_of(run: Telemetry, names: Sequence[str]) -> FloatArray:
    """The named counters of a run in this order, (n_samples, n_names); NaN for those that it lacks."""
    place = {name: column for column, name in enumerate(run.names)}
    found = np.full((run.n_samples, len(names)), np.nan)
    for column, name in enumerate(names):
        if name in place:
            found[:, column] = run.values[:, place[name]]
    return found


def logarithm_of_rates(values: FloatArray, logged: Sequence[bool]) -> FloatArray:
    """sign(x) · log(1 + |x|) for the columns that are rates: they span orders of magnitude."""
    return np.where(np.asarray(logged), np.sign(values) * np.log1p(np.abs(values)), values)


def normalise(values: FloatArray, params: NormalisationParams, scale: Scale | None = None) -> FloatArray:
    """Values (n_samples, n_counters) by the chosen normalisation.

    scale: what learn_scale gave, with the columns in this order; only `training` needs it, and raises ValueError
    without it."""
    if params.normalisation == "absolute":
        return equation_7(values)
    if params.normalisation == "zscore":
        return zscore(values)
    if scale is None:
        raise ValueError("normalisation 'training' needs a scale; learn it from the training runs")
    found = _scaled(logarithm_of_rates(values, scale.logged), scale.centre, scale.spread)
    return np.clip(found, -params.clip, params.clip)


def normalise_both(
    values: FloatArray, params: NormalisationParams, scale: Scale | None = None
) -> tuple[FloatArray, FloatArray]:
    """Values (n_samples, n_counters) as the phases of counters are summarised, and as runs are held against each other.

    Where no scale was learned the second are as the first. Raises as `normalise` does."""
    own = normalise(values, params, scale)
    if params.distances == params.normalisation or (params.distances == "training" and scale is None):
        return own, own
    return own, normalise(values, params.model_copy(update={"normalisation": params.distances}), scale)


def _scaled(values: FloatArray, centre: FloatArray, spread: FloatArray) -> FloatArray:
    """(values − centre) / spread; 0 for a present value where the spread is 0 or only rounding."""
    is_constant = ~(spread > 1e-12 * np.maximum(np.abs(centre), 1e-300))
    found = (values - centre) / np.where(is_constant, 1, spread)
    return np.where(is_constant & np.isfinite(values), 0, found)
