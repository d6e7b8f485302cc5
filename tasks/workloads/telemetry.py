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
class Conditions:
    """Under what a run was recorded. Shares are means over the run, of all cores of the machine; None: not measured.

    Attributes:
        recording: Runs of one recording were taken at the same time: they share the machine's counters.
        condition: alone, wild (alone, and others took more than the stated share), pair, pair_unlearned, load, limit,
            input, unlearned, idle, or live for what was recorded to be identified.
        load: What ran beside it to disturb: cpu, memory, disk or network.
        load_level: Share of each core that the load asked for; None where it is not of the processor.
        partner: The workload that ran at the same time, in a group of its own.
        partner_input: Its input.
        limit_cores: Cores that the run's group could use; None: no limit.
        own_share: Used by the run's own group.
        partner_share: Used by the partner's.
        load_share: Used by the load.
        foreign_share: Used by everybody else.
        stolen_share: Taken by the hypervisor.
    """

    recording: str
    condition: str
    load: str | None = None
    load_level: float | None = None
    partner: str | None = None
    partner_input: str | None = None
    limit_cores: float | None = None
    own_share: float | None = None
    partner_share: float | None = None
    load_share: float | None = None
    foreign_share: float | None = None
    stolen_share: float | None = None


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
        conditions: Under what it was recorded, where that is known.
        missing: Counters that were asked for and that the machine did not give, each with its reason; of what is
            recorded now.
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
    conditions: Conditions | None = None
    missing: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the counters, in the order of the columns."""
        return tuple(counter.name for counter in self.counters)

    @property
    def n_samples(self) -> int:
        """Number of samples (rows)."""
        return int(self.values.shape[0])
