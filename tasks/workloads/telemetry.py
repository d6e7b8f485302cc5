"""One run of a workload in memory: its counters, sampled over time, and what it was a run of.

A run is a table of samples (rows, rising in time) by counters (columns). A value that was not measured is NaN and stays
NaN: nothing in this word fills one in. Counters of the workload's own control group stand beside those of the machine,
in the same run, named ``own.<name>`` with scope "workload". Names of other people's counters get our spelling."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["hardware", "software", "unknown"]
Scope = Literal["machine", "workload"]
FloatArray = NDArray[np.float64]

TIMES = (  # what other people call a column of times
    "timestamp", "time", "ts", "datetime", "date", "unixtime", "epoch", "times", "sampledat", "recordedat", "at",
    "clock", "zeit", "zeitpunkt", "uhrzeit", "horodatage", "heure", "hora", "fecha", "ora", "elapsed",
    "elapseds", "seconds",
)  # fmt: skip
OWN_PREFIX = "own."
GROUP_COUNTERS = f"{OWN_PREFIX}*"  # in Telemetry.missing: all that a control group tells
NOT_IN_NAMES = re.compile(r"[^a-z0-9_.]+")
JOINS = re.compile(r"_{2,}")
EDGES = re.compile(r"_*\._*")
RATE = re.compile(r"(_?per_s(ec(ond)?)?|/s(ec(ond)?)?)(?=$|[)\]])", re.IGNORECASE)
UNIT = re.compile(r"\((?:in )?([^()]+)\)\s*$")
SIGNS = {"%": "_pct_", "/": "_per_", "+": "_plus_"}
RATE_GROUPS = {"cpu", "disk", "irq", "net", "perf", "pressure", "softirq", "vm"}  # of whorl's own names


@dataclass(frozen=True)
class Counter:
    """What one column of a run holds.

    name: lower case, words joined with ``_``, group before a dot, unit at the end where it has one: ``cpu.user_cores``,
    ``perf.sched_switch``. unit: of the value, "" where the file does not say. kind: counted by the processor, by the
    kernel or a program, or not known. is_rate: events (bytes, seconds, …) per second over the interval that ended at
    the sample; else a gauge, read at the sample. scope: the whole machine, or the workload's own control group."""

    name: str
    unit: str = ""
    kind: Kind = "unknown"
    is_rate: bool = False
    scope: Scope = "machine"


@dataclass(frozen=True)
class Conditions:
    """Under what a run was recorded. Shares are means over the run, of all cores of the machine; None: not measured.

    recording: runs of one recording were taken at the same time and share the machine's counters. condition: alone,
    wild (alone, and others took more than the stated share), pair, pair_unlearned, load, limit, input, unlearned, idle,
    or live for what was recorded to be identified. load: what ran beside it to disturb (cpu, memory, disk, network);
    load_level: share of each core that it asked for, of the processor alone. partner, partner_input: the workload that
    ran at the same time in a group of its own. limit_cores: that the run's group could use, None: no limit. Shares: of
    the run's own group, the partner's, the load's, everybody else's, and what the hypervisor took. subject: of what was
    recorded live, path of the control group, or process id; None: the machine as a whole."""

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
    subject: str | None = None


@dataclass(frozen=True)
class Telemetry:
    """The samples of one run. run_id: its name within its source.

    counters: what each column of `values` holds. at_s: (n_samples,), seconds after the start, rising. values:
    (n_samples, n_counters), NaN is missing. Labels, None where nobody says: workload (what ran), input (on what), round
    (which repetition), machine (where). started_at: UTC, without a zone. interval_s: nominal seconds between samples,
    None when a single sample does not say. conditions: under what it was recorded, where that is known. missing: of
    what is recorded now, counters that were asked for and that the machine did not give, each with its reason.
    processes: shares of the processor time that its processes took, by the name of their program, where noted."""

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
    processes: Mapping[str, float] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the counters, in the order of the columns."""
        return tuple(counter.name for counter in self.counters)

    @property
    def n_samples(self) -> int:
        """Number of samples (rows)."""
        return int(self.values.shape[0])

    @property
    def duration_s(self) -> float:
        """Seconds that the samples stand for, the interval of the first included."""
        return float(self.at_s[-1] - self.at_s[0]) + (self.interval_s or 0.0)


def spelled(raw: str) -> str:
    """A name in lower case, with words joined by ``_``; dots stay. Empty if no letter or digit is left."""
    text = raw.strip().lower()
    for sign, word in SIGNS.items():
        text = text.replace(sign, word)
    text = JOINS.sub("_", NOT_IN_NAMES.sub("_", text))
    return EDGES.sub(".", text).strip("._")


def scope_of(name: str) -> Scope:
    """Counters called ``own.…`` are of the workload's control group."""
    return "workload" if name.startswith(OWN_PREFIX) else "machine"


def described(raw: str, group: str = "") -> Counter:
    """A counter from its name in somebody's table.

    The unit is what stands in brackets at the end: ``latency (in ns)``. A name that ends in ``_per_s``, ``/s`` or
    ``/sec`` is a rate. group: put before a dot."""
    unit = UNIT.search(raw)
    name = spelled(raw)
    name = f"{group}.{name}" if group and name else name
    return Counter(name, unit[1].strip() if unit else "", "unknown", bool(RATE.search(raw)), scope_of(name))


def described_own(raw: str) -> Counter:
    """A counter of whorl's own CSV, which has no units: those of RATE_GROUPS are rates (memory and load are gauges)."""
    counter = described(raw)
    group, dot, _ = counter.name.removeprefix(OWN_PREFIX).partition(".")
    is_rate = counter.is_rate or bool(dot and group in RATE_GROUPS)
    return Counter(counter.name, counter.unit, counter.kind, is_rate, counter.scope)
