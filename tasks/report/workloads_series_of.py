"""Figure 2 for a run in memory: its change points, and the counters that moved most."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tasks.report.workloads_moved import movement, pick_counters
from tasks.report.workloads_series import CounterSeries, RunSeries
from tasks.report.workloads_units import unit_words
from tasks.workloads.changepoints.found import ChangePoints
from tasks.workloads.giveaways import giveaway_of
from tasks.workloads.normalisation import zscore
from tasks.workloads.phases import bounds_of
from tasks.workloads.telemetry import FloatArray, Telemetry

N_COUNTERS = 5


def series_of(
    run: Telemetry, found: Sequence[ChangePoints], n: int = N_COUNTERS, names: Sequence[str] = ()
) -> RunSeries:
    """Counters of a run with their change points, one result a counter in the order of its columns.

    names: which counters; by default the n that moved most, each against its own deviation, one of each family,
    without those that give the session away.
    Raises KeyError for a name that the run does not have."""
    place = {name: at for at, name in enumerate(run.names)}
    chosen = [place[name] for name in names] or _moved_most(run, found, n)
    counters = [
        CounterSeries(
            run.names[at],
            unit_words(run.counters[at].unit, is_rate=run.counters[at].is_rate),
            run.values[:, at],
            found[at].indices,
            found[at].probabilities,
        )
        for at in chosen
    ]
    said = " · ".join(part for part in (run.workload, run.input) if part)
    return RunSeries(f"{said} ({run.run_id})" if said else run.run_id, run.at_s, counters, len(run.counters))


def _moved_most(run: Telemetry, found: Sequence[ChangePoints], n: int) -> list[int]:
    values = zscore(run.values)
    bounds = [bounds_of(one.indices, run.n_samples) for one in found]
    levels = [_levels(values[:, at], edges) for at, edges in enumerate(bounds)]
    moved = movement(levels, bounds)
    moved[[bool(giveaway_of(counter)) for counter in run.counters]] = 0.0
    return pick_counters(run.names, moved, n) or list(range(min(n, len(run.counters))))


def _levels(series: FloatArray, edges: np.ndarray) -> FloatArray:
    """Mean of each phase, NaN for one without a value."""
    pieces = [series[start:end] for start, end in pairwise(edges)]
    return np.array([float(np.nanmean(piece)) if np.isfinite(piece).any() else np.nan for piece in pieces])
