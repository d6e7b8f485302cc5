"""Levels of background load on the SKUs over the time of a campaign."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tasks.jobs.record.params import LoadLevel, RecordParams

LOAD_STREAM = 1_000_000  # apart from every job's stream


@dataclass(frozen=True)
class LoadPhase:
    """A stretch with one level of background load on one SKU; start_s in seconds."""

    start_s: float
    sku: str
    level: LoadLevel


@dataclass(frozen=True)
class LoadPlan:
    """Phases that change with real time and begin anew after span_s; then, by the schedule's clock, a steady level.

    Real time, because the schedule stands still while too many runs wait: a heavy phase that waited with it would
    prolong itself. Every SKU has a phase from 0 on."""

    phases: tuple[LoadPhase, ...]
    span_s: float
    steady: LoadLevel | None = None
    steady_from_s: float = float("inf")

    @cached_property
    def _by_sku(self) -> dict[str, tuple[list[float], list[LoadLevel]]]:
        found: dict[str, tuple[list[float], list[LoadLevel]]] = {}
        for phase in sorted(self.phases, key=lambda phase: phase.start_s):
            starts, levels = found.setdefault(phase.sku, ([], []))
            starts.append(phase.start_s)
            levels.append(phase.level)
        return found

    def levels(self, real_s: float, schedule_s: float) -> dict[str, LoadLevel]:
        """The level of each SKU, real_s seconds after the start, when the schedule is at schedule_s seconds."""
        if self.steady is not None and schedule_s >= self.steady_from_s:
            return dict.fromkeys(self._by_sku, self.steady)
        at = real_s % self.span_s
        return {sku: levels[bisect_right(starts, at) - 1] for sku, (starts, levels) in self._by_sku.items()}


def load_phases(params: RecordParams, seconds: float) -> tuple[LoadPhase, ...]:
    """Levels of background load for each SKU, each with phases of its own, from 0 to `seconds`."""
    phases: list[LoadPhase] = []
    ladder: Sequence[LoadLevel] = params.load_ladder
    for place, sku in enumerate(params.skus):
        rng, at = np.random.default_rng([params.seed, LOAD_STREAM, place]), 0.0
        while at < seconds:
            phases.append(LoadPhase(at, sku.name, ladder[int(rng.integers(len(ladder)))]))
            at += float(rng.exponential(params.load_phase_s))
    return tuple(sorted(phases, key=lambda phase: phase.start_s))
