"""Figures 2 and 4 for an evaluation: of two kin, or else of the two workloads that are most alike, a typical run each.

Two kin show what there is to tell apart; that any run differs from one of another kind needs no figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tasks.report.workloads_alignment import Alignment, align
from tasks.report.workloads_moved import movement, pick_counters
from tasks.report.workloads_phases import PhasesOfRuns, phases_of_runs
from tasks.report.workloads_run_phases import RunPhases, phases_of_fingerprint
from tasks.report.workloads_series import CounterSeries, RunSeries
from tasks.report.workloads_units import unit_words
from tasks.workloads.evaluate.items import cut, sampled
from tasks.workloads.evaluate.params import EvaluateParams
from tasks.workloads.fingerprint_steps import probabilities_of
from tasks.workloads.identify.counters import common_counters
from tasks.workloads.identify.params import FingerprintParams, IdentifyParams
from tasks.workloads.identify.phases import Scale, columns_of, fingerprints_of, learn_scale, on_scale
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry

N_COUNTERS = 5  # over time
MOST_RUNS = 600  # that the typical ones are chosen among; of more, an even sample


@dataclass(frozen=True)
class Examples:
    """A run of each of two workloads, in the order of their names: over time, side by side, and one on the other."""

    series: tuple[RunSeries, ...]
    phases: PhasesOfRuns
    alignment: Alignment | None


def examples_of(
    runs: Sequence[Telemetry], params: EvaluateParams, identify: IdentifyParams, n_counters: int = N_COUNTERS
) -> Examples | None:
    """The examples among labelled runs, long traces in windows; None where there is one workload alone.

    Raises BadInput if the runs have no counter in common."""
    labelled = [run for run in runs if run.workload is not None]
    kept = [item.run for item in sampled(cut(labelled, params.windows).items, MOST_RUNS, params.seed)]
    if len({run.workload for run in kept}) < 2:
        return None
    counters = tuple(one for view in ("own", "machine") for one in common_counters(kept, view))
    scale = learn_scale(kept, counters)
    names = sorted({str(run.workload) for run in kept})
    pairs = kin_among(names) or list(combinations(names, 2))
    chosen = typical_of_the_most_alike(kept, levels_of(kept, scale), pairs)
    fingerprints = fingerprints_of(chosen, counters, identify.fingerprint, scale)
    one, other = (
        phases_of_fingerprint(found, run.interval_s, input_name=run.input)
        for found, run in zip(fingerprints, chosen, strict=True)
    )
    series = tuple(
        _series(run, cut_run, counters, identify.fingerprint, n_counters)
        for run, cut_run in zip(chosen, (one, other), strict=True)
    )
    return Examples(series, phases_of_runs([one, other]), align(one, other))


def levels_of(runs: Sequence[Telemetry], scale: Scale) -> FloatArray:
    """Mean of each counter over each run, on a learned scale: (n_runs, n_counters).

    A counter without a value has the level 0: that of the mean."""
    samples = (on_scale(columns_of(run, scale.counters), scale) for run in runs)
    return np.array([np.nanmean(_with_a_value(values), axis=0) for values in samples])


def _with_a_value(values: FloatArray) -> FloatArray:
    """The samples, with 0 for a counter that has none."""
    return np.where(np.isnan(values).all(axis=0), 0.0, values)


def kin_among(names: Sequence[str]) -> list[tuple[str, str]]:
    """Those pairs of the workloads that whorl records as kin: each resembles the other by design."""
    from tasks.workloads.record.programs import PROGRAMS

    kin = {(name, PROGRAMS[name].kin) for name in names if name in PROGRAMS}
    return [(one, other) for one, other in combinations(names, 2) if (one, other) in kin or (other, one) in kin]


def typical_of_the_most_alike(
    runs: Sequence[Telemetry], levels: FloatArray, pairs: Sequence[tuple[str, str]]
) -> list[Telemetry]:
    """Of that pair of workloads whose typical levels lie nearest, each one's run that is nearest to these levels.

    levels: (n_runs, n_counters). Typical: the medians over the runs of a workload. Ties go to the first pair or run."""
    labels = np.array([str(run.workload) for run in runs])
    centres = {str(name): np.median(levels[labels == name], axis=0) for name in np.unique(labels)}
    pair = min(pairs, key=lambda two: float(np.abs(centres[two[0]] - centres[two[1]]).sum()))
    found = []
    for name in pair:
        own = np.flatnonzero(labels == name)
        found.append(runs[own[np.abs(levels[own] - centres[name]).sum(axis=1).argmin()]])
    return found


def _series(
    run: Telemetry, phases: RunPhases, counters: Sequence[Counter], params: FingerprintParams, n_counters: int
) -> RunSeries:
    """The counters of a run that moved most, with their change points."""
    moved = pick_counters(phases.counters, movement(phases.levels, phases.bounds), n_counters)
    probabilities = probabilities_of(run, counters, phases.bounds, params)
    values = columns_of(run, phases.counters)
    shown = [
        CounterSeries(
            counters[at].name,
            unit_words(counters[at].unit, is_rate=counters[at].is_rate),
            values[:, at],
            phases.bounds[at][1:-1],
            np.array(probabilities[at][1:], dtype=float),
        )
        for at in moved or range(min(n_counters, len(counters)))
    ]
    title = f"{phases.name} ({run.run_id})" if phases.name != run.run_id else run.run_id
    return RunSeries(title, run.at_s, shown, len(run.counters))
