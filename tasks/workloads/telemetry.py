"""One run of a workload in memory: its counters, sampled over time, and what it was a run of.

A run is a table of samples (rows, rising in time) by counters (columns). A value that was not measured is NaN and stays
NaN: nothing in this word fills one in. Counters of the workload's own control group stand beside those of the machine,
in the same run, named ``own.<name>`` with scope "workload".
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["hardware", "software", "unknown"]
Scope = Literal["machine", "workload"]
FloatArray = NDArray[np.float64]

OWN_PREFIX = "own."


@dataclass(frozen=True)
class Counter:
    """What one column of a run holds.

    Attributes:
        name: Lower case, words joined with ``_``, group before a dot, unit at the end where it has one:
            ``cpu.user_cores``, ``disk.read_bytes``, ``perf.sched_switch``.
        unit: Unit of the value, "" where the file does not say.
        kind: Counted by the processor, by the kernel or a program, or not known.
        is_rate: True when values are events (bytes, seconds, …) per second over the interval that ended at the
            sample; False for a gauge, read at the sample.
        scope: The whole machine, or the workload's own control group.
    """

    name: str
    unit: str = ""
    kind: Kind = "unknown"
    is_rate: bool = False
    scope: Scope = "machine"


@dataclass(frozen=True)
class Telemetry:
    """The samples of one run.

    Attributes:
        run_id: Name of the run within its source.
        counters: What each column holds, in the order of the columns of ``values``.
        at_s: Shape (n_samples,), seconds after the start of the run, rising.
        values: Shape (n_samples, n_counters), float64; NaN is missing.
        workload: Label: what ran. None: unknown.
        input: Label: what it ran on.
        round: Label: which repetition it was.
        machine: Label: where it ran.
        started_at: UTC, without a zone.
        interval_s: Nominal seconds between samples, None when a single sample does not say.
    """

    run_id: str
    counters: tuple[Counter, ...]
    at_s: FloatArray
    values: FloatArray
    workload: str | None = None
    input: str | None = None
    round: str | None = None
    machine: str | None = None
    started_at: datetime | None = None
    interval_s: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the counters, in the order of the columns."""
        return tuple(counter.name for counter in self.counters)

    @property
    def n_samples(self) -> int:
        """Number of samples (rows)."""
        return int(self.values.shape[0])
