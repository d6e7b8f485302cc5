"""Readings of the kernel's files as rates and gauges: differences over the real time between, never filled in."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tasks.workloads.record.measures import Source
from tasks.workloads.telemetry import FloatArray


@dataclass
class Readings:
    """What a sampler read. taken_s: for each sample when each file was read, seconds on the samples' clock; raw: what
    it said. The first sample is the base of the rates and no sample of the run."""

    taken_s: list[list[float]] = field(default_factory=list)
    raw: list[list[bytes | None]] = field(default_factory=list)

    @property
    def at_s(self) -> FloatArray:
        """Shape (n,): when the samples after the base were taken, in seconds after it."""
        first = np.array([row[0] for row in self.taken_s])
        return first[1:] - first[0] if len(first) else first


def values_of(sources: Sequence[Source], readings: Readings) -> FloatArray:
    """Shape (n, counters): a rate is the growth over the seconds since the reading before, a gauge the reading.

    A counter that shrank was reset or has wrapped: NaN for that interval, as where a reading is missing."""
    blocks = []
    for place, source in enumerate(sources):
        totals = np.array([source.values(row[place]) for row in readings.raw], dtype=float)
        lasted_s = np.diff(np.array([row[place] for row in readings.taken_s]))[:, None]
        grown = np.diff(totals, axis=0)
        grown[grown < 0] = np.nan
        is_rate = np.array([measure.counter.is_rate for measure in source.measures])
        blocks.append(np.where(is_rate, grown / lasted_s, totals[1:]))
    return np.concatenate(blocks, axis=1) if blocks else np.empty((len(readings.at_s), 0))
