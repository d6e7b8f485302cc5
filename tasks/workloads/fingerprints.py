"""Fingerprints: the summary of all phases of all counters of a run, and the table that classifiers read (CWD, V-C)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.workloads.normalisation import Scale, columns_of, normalise_both
from tasks.workloads.normalisation_params import NormalisationParams
from tasks.workloads.phase_params import PhaseParams
from tasks.workloads.phases import ADF, STATISTICS, UNDETERMINED, Bounds, bounds_of, shared_bounds, summarise_phases
from tasks.workloads.telemetry import FloatArray, Telemetry

FindChanges = Callable[[FloatArray], Sequence[int]]  # (n_samples, n_counters) or (n_samples, 1) -> change points


@dataclass(frozen=True)
class Fingerprint:
    """What is kept of a run.

    counters: names, sorted. bounds: of each counter where its phases begin, and the end. summaries: of each counter
    (n_phases, k), k = len(STATISTICS). workload_bounds: phases of the workload (V-D). workload_phases:
    (n_phases, n_counters · k), every counter summarised over the workload's phases."""

    run_id: str
    workload: str | None
    counters: tuple[str, ...]
    bounds: tuple[Bounds, ...]
    summaries: tuple[FloatArray, ...]
    workload_bounds: Bounds
    workload_phases: FloatArray

    @property
    def most_phases(self) -> int:
        """q: the most phases that a counter of the run has."""
        return max(len(one) for one in self.summaries)

    @property
    def adf_determined_share(self) -> float:
        """Share of the phases whose Dickey–Fuller statistic is determined."""
        statistics = np.concatenate([one[:, ADF] for one in self.summaries])
        return float(np.mean(statistics != UNDETERMINED))


@dataclass(frozen=True)
class Fingerprinting:
    """How runs become fingerprints: the counters, their scale, and what finds change points.

    find_changes: called with one counter (n_samples, 1) or, for shared phases, with all (n_samples, n_counters)."""

    counters: tuple[str, ...]
    normalisation: NormalisationParams
    phases: PhaseParams
    find_changes: FindChanges
    scale: Scale | None = None


def fingerprint(run: Telemetry, how: Fingerprinting) -> Fingerprint:
    """The fingerprint of a run on the counters of `how`; a counter that the run lacks has one phase of zeros.

    Raises ValueError for a run without samples."""
    values, compared = normalise_both(columns_of(run, how.counters), how.normalisation, how.scale)
    bounds, workload_bounds = _phases(values, how)
    summaries = tuple(summarise_phases(values[:, c], one, how.phases) for c, one in enumerate(bounds))
    over_workload = [summarise_phases(column, workload_bounds, how.phases) for column in compared.T]
    return Fingerprint(
        run.run_id,
        run.workload,
        how.counters,
        bounds,
        summaries,
        workload_bounds,
        np.concatenate(over_workload, axis=1),
    )


def _phases(values: FloatArray, how: Fingerprinting) -> tuple[tuple[Bounds, ...], Bounds]:
    """Bounds of each counter, and of the workload."""
    n_samples, n_counters = values.shape
    if how.phases.mode == "shared":
        shared = bounds_of(list(how.find_changes(values)), n_samples)
        return (shared,) * n_counters, shared
    bounds = tuple(bounds_of(list(how.find_changes(column[:, None])), n_samples) for column in values.T)
    return bounds, shared_bounds(bounds, how.phases)


def padded(fingerprint: Fingerprint, n_phases: int) -> FloatArray:
    """The fingerprint as the table n × q × k, flat: (n_counters · n_phases · n_statistics,).

    Fewer phases are padded with zeros (V-C). A counter with more keeps its first n_phases − 1, and the mean of the
    rest, weighted by their lengths, as the last: a run longer than those of the training loses detail and no sample."""
    table = np.zeros((len(fingerprint.counters), n_phases, len(STATISTICS)))
    for row, bounds, summaries in zip(table, fingerprint.bounds, fingerprint.summaries, strict=True):
        if len(summaries) <= n_phases:
            row[: len(summaries)] = summaries
            continue
        row[: n_phases - 1] = summaries[: n_phases - 1]
        row[-1] = np.average(summaries[n_phases - 1 :], axis=0, weights=np.diff(bounds)[n_phases - 1 :])
    return table.ravel()


def feature_names(counters: Sequence[str], n_phases: int) -> list[str]:
    """Names of the columns of `padded`: counter, phase (from 1), statistic."""
    return [
        f"{counter} · phase {phase} · {statistic}"
        for counter in counters
        for phase in range(1, n_phases + 1)
        for statistic in STATISTICS
    ]
