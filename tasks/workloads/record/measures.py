"""What a counter is made of: a file of the kernel, keys in it, and whether they grow or go up and down."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tasks.workloads.telemetry import OWN_PREFIX, Counter, FloatArray

READ_BYTES = 1 << 16
Parse = Callable[[str], Mapping[str, float]]


@dataclass(frozen=True)
class Measure:
    """One counter, and how it comes out of its file: the sum of the keys that are there, times scale.

    A rate is the difference of two such sums over the seconds between; a gauge is the sum itself."""

    counter: Counter
    what: str
    keys: tuple[str, ...]
    scale: float = 1.0

    def total(self, found: Mapping[str, float]) -> float:
        """The sum of what is there; NaN where nothing is."""
        there = [found[key] for key in self.keys if key in found]
        return sum(there) * self.scale if there else float("nan")


def rate(name: str, unit: str, what: str, *keys: str, scale: float = 1.0) -> Measure:
    """A counter of events since boot. unit: of the events, what there is of it per second."""
    return Measure(Counter(name, unit, "software", is_rate=True), what, keys, scale)


def gauge(name: str, unit: str, what: str, *keys: str, scale: float = 1.0) -> Measure:
    """A counter that says how things stand at the sample."""
    return Measure(Counter(name, unit, "software", is_rate=False), what, keys, scale)


def owned(measure: Measure, prefix: str = OWN_PREFIX) -> Measure:
    """The same measure, of the workload's own group or processes."""
    counter = replace(measure.counter, name=prefix + measure.counter.name, scope="workload")
    return replace(measure, counter=counter)


class Source:
    """One file of the kernel, kept open, with the measures that are read from it."""

    def __init__(self, path: Path, parse: Parse, measures: tuple[Measure, ...]) -> None:
        self.path, self.parse, self.measures = path, parse, measures
        self._handle: int | None = None

    def open(self) -> None:
        """Open the file. Raises OSError."""
        if self._handle is None:
            self._handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes | None:
        """What the file says now; None where it cannot be read any more."""
        if self._handle is None:
            return None
        pieces, at = [], 0
        try:
            while piece := os.pread(self._handle, READ_BYTES, at):
                pieces.append(piece)
                at += len(piece)
        except OSError:
            return None
        return b"".join(pieces)

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def values(self, raw: bytes | None) -> list[float]:
        """The total of each measure in one reading; NaN where the reading is missing or makes no sense."""
        try:
            found = self.parse(raw.decode(errors="replace")) if raw is not None else {}
        except (ValueError, IndexError, KeyError):
            found = {}
        return [measure.total(found) for measure in self.measures]


@dataclass(frozen=True)
class Unavailable:
    """A counter that this machine does not give, and why."""

    counter: str
    reason: str


def opened(sources: list[Source]) -> tuple[list[Source], list[Unavailable]]:
    """Open what can be opened and keep the measures that are in it; the others are listed, never filled in."""
    ready: list[Source] = []
    missing: list[Unavailable] = []
    for source in sources:
        try:
            source.open()
            raw = source.read()
            why = "" if raw is not None else f"{source.path} cannot be read"
        except OSError as error:
            raw, why = None, f"{source.path}: {error.strerror or error}"
        values = source.values(raw)
        there = tuple(m for m, value in zip(source.measures, values, strict=True) if value == value)
        missing += [
            Unavailable(m.counter.name, why or f"{source.path} holds no {' or '.join(m.keys)}")
            for m in source.measures
            if m not in there
        ]
        if there:
            source.measures = there
            ready.append(source)
        else:
            source.close()
    return ready, missing


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
