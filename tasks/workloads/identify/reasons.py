"""Why a run was taken for a workload, or for none: the counters and phases that matched best and worst, in words.

The run is held against one known run, phase by phase at the offset at which they fit best (V-D). A gap is measured in
deviations between runs of the same workload. What matched best is chosen among counters that set the workload apart
from the others: that both make no page faults says little if nobody makes any."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.workloads.fingerprints import Fingerprint
from tasks.workloads.identify.model import KnownRun, Model, phase_means
from tasks.workloads.identify.neighbours import COMPARED
from tasks.workloads.identify.reason_words import name_in_words, value_in_words
from tasks.workloads.similarity.subsequence import match_phases
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry

N_REASONS = 3  # of each kind
LEAST_GAP = 3.0  # deviations from which on a counter differs
LEAST_APART = 3.0  # deviations from other workloads from which on a counter says something
LEAST_CHANGE = 0.02  # relative difference of two values below which words would show the same number twice


@dataclass(frozen=True)
class Reason:
    """One counter in one phase (from 1) of the run. value, expected: raw, of the run and of the known run.

    gap: between them, in deviations between runs of a workload. apart: from the other workloads, the same unit."""

    counter: Counter
    phase: int
    value: float
    expected: float
    gap: float
    apart: float


def why(run: Telemetry, seen: Fingerprint, model: Model, known_id: str, *, is_known: bool) -> tuple[str, ...]:
    """What matched and what did not against a known run, one line each; for an unknown run what did not comes first.

    seen: the run's fingerprint."""
    known = next(one for one in model.known if one.run_id == known_id)
    found = compare(run, seen, known, model)
    matched = [_matched(one, known) for one in best_matches(found)]
    differed = [_differed(one, known) for one in worst_matches(found)]
    if not differed:
        differed = [f"no counter differs from {known.workload} by more than its own runs do"]
    return tuple(matched + differed if is_known else differed + matched)


def compare(run: Telemetry, seen: Fingerprint, known: KnownRun, model: Model) -> list[Reason]:
    """Every counter in every phase that the two runs share at their best offset; without those that lack a value."""
    match = match_phases(seen.workload_phases, known.workload_phases, model.params.similarity)
    means = phase_means(run, model.maker, seen.workload_bounds)
    n_phases, is_longer = len(match.phases), len(means) >= len(known.phase_means)
    first = match.offset if is_longer else 0
    own = means[first : first + n_phases]
    theirs = known.phase_means if is_longer else known.phase_means[match.offset : match.offset + n_phases]
    deviations = _deviations(model)
    scaled = np.arcsinh(own / model.levels.units)
    gaps = np.abs(scaled - np.arcsinh(theirs / model.levels.units)) / deviations
    apart = _apart(scaled, known.workload, model) / deviations
    return [
        Reason(
            counter,
            first + phase + 1,
            float(own[phase, at]),
            float(theirs[phase, at]),
            float(gaps[phase, at]),
            float(apart[phase, at]),
        )
        for phase in range(n_phases)
        for at, counter in enumerate(model.maker.counters)
        if np.isfinite(gaps[phase, at])
    ]


def best_matches(found: Sequence[Reason]) -> list[Reason]:
    """Those that lie near the known run and far from other workloads, one a counter."""
    telling = [one for one in found if one.gap < LEAST_GAP and one.apart >= LEAST_APART]
    return _first_of_each(sorted(telling, key=lambda one: (-one.apart / (1 + one.gap), one.counter.name, one.phase)))


def worst_matches(found: Sequence[Reason]) -> list[Reason]:
    """Those that lie farthest from the known run, one a counter."""
    far = [one for one in found if one.gap >= LEAST_GAP and _shows(one)]
    return _first_of_each(sorted(far, key=lambda one: (-one.gap, one.counter.name, one.phase)))


def _first_of_each(ordered: Sequence[Reason]) -> list[Reason]:
    found: dict[str, Reason] = {}
    for one in ordered:
        found.setdefault(one.counter.name, one)
    return list(found.values())[:N_REASONS]


def _shows(one: Reason) -> bool:
    return abs(one.value - one.expected) > LEAST_CHANGE * max(abs(one.value), abs(one.expected))


def _deviations(model: Model) -> FloatArray:
    """Of each counter's mean between runs of the same workload: (n_counters,)."""
    table = model.judge.metric.deviations.reshape(-1, len(COMPARED))
    return np.asarray(table[:, COMPARED.index("mean")])


def _apart(scaled: FloatArray, workload: str, model: Model) -> FloatArray:
    """Median distance of each value to the runs of the other workloads: (n_phases, n_counters), 0 without others."""
    others = np.array(model.judge.labels) != workload
    if not others.any():
        return np.zeros_like(scaled)
    n_known, n_compared = len(model.judge.points), len(COMPARED)
    levels = model.judge.points.reshape(n_known, -1, n_compared)[others, :, COMPARED.index("mean")]
    return np.asarray(np.median(np.abs(levels[None, :, :] - scaled[:, None, :]), axis=1))


def _matched(one: Reason, known: KnownRun) -> str:
    value, expected = value_in_words(one.value, one.counter), value_in_words(one.expected, one.counter)
    return f"{name_in_words(one.counter)} in phase {one.phase}: {value}, as in {known.workload} ({expected})"


def _differed(one: Reason, known: KnownRun) -> str:
    value, expected = value_in_words(one.value, one.counter), value_in_words(one.expected, one.counter)
    return f"{name_in_words(one.counter)} in phase {one.phase}: {value} against {expected} of {known.workload}"
