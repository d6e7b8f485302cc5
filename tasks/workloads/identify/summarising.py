"""Summaries of all phases of all counters of a run at once: what `phases.summarise_phases` gives, one by one."""

from collections.abc import Sequence

import numpy as np

from tasks.workloads.identify.stationarity import dickey_fuller_each
from tasks.workloads.phase_params import PhaseParams
from tasks.workloads.phases import QUANTILES, STATISTICS, UNDETERMINED, Bounds
from tasks.workloads.telemetry import FloatArray


def summarise_all(values: FloatArray, bounds: Sequence[Bounds], params: PhaseParams) -> list[FloatArray]:
    """The summaries of each counter, (n_phases, n_statistics) each, in the order of STATISTICS.

    values: (n_samples, n_counters), normalised; NaN does not count, and a phase of nothing else has only zeros.
    bounds: of each counter where its phases begin, and the end."""
    n_phases = [len(one) - 1 for one in bounds]
    ends = np.cumsum(n_phases)
    lengths = np.concatenate([np.diff(one) for one in bounds])
    phase_of = np.repeat(np.arange(len(lengths)), lengths)
    flat = values.T.ravel()  # counter after counter: (n_counters · n_samples,)
    is_there = np.isfinite(flat)
    table = _summaries(flat[is_there], phase_of[is_there], len(lengths), params)
    return np.split(table, ends[:-1])


def _summaries(values: FloatArray, phase_of: Bounds, n_phases: int, params: PhaseParams) -> FloatArray:
    counts = np.bincount(phase_of, minlength=n_phases)
    safe = np.maximum(counts, 1)
    mean = np.bincount(phase_of, values, n_phases) / safe
    variance = np.bincount(phase_of, (values - mean[phase_of]) ** 2, n_phases) / safe
    adf = np.nan_to_num(dickey_fuller_each(values, phase_of, n_phases, params), nan=UNDETERMINED)
    median, *quantiles = _quantiles(values, phase_of, counts, (0.5, *QUANTILES))
    of_phase = {"mean": mean, "median": median, "variance": variance, "adf": adf}
    of_phase |= {f"q{round(100 * share)}": one for share, one in zip(QUANTILES, quantiles, strict=True)}
    table = np.column_stack([of_phase[name] for name in STATISTICS])
    table[counts == 0] = 0.0
    return table


def _quantiles(values: FloatArray, phase_of: Bounds, counts: Bounds, shares: Sequence[float]) -> list[FloatArray]:
    """Quantiles of each phase, with straight lines between samples; 0 for a phase without any: (n_phases,) each."""
    if not len(values):
        return [np.zeros(len(counts)) for _ in shares]
    rising = values[np.lexsort((values, phase_of))]
    first = np.minimum(np.cumsum(counts) - counts, len(values) - 1)
    last = np.maximum(counts - 1, 0)
    found = []
    for share in shares:
        place = last * share
        below = np.floor(place).astype(np.int64)
        low, high = rising[first + below], rising[first + np.minimum(below + 1, last)]
        found.append(low + (place - below) * (high - low))
    return found
