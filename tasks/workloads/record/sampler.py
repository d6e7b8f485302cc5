"""One sample a second on a fixed grid of the monotonic clock, `perf stat` beside it: open files and lines are read, and
understood only afterwards."""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np

from tasks.machine import ControlGroup, counts_hardware_events, find_tool, not_installed, tied_to_parent
from tasks.record.processes import cpu_s
from tasks.workloads.record.counters import CounterReadings, Source, Unavailable, values_of
from tasks.workloads.telemetry import OWN_PREFIX, Counter, FloatArray, Kind, Scope

Profile = Literal["none", "light", "syscalls"]
PARTNER_PREFIX = "partner."  # of a second group, until its counters become those of a run of its own
TRACEPOINTS = (Path("/sys/kernel/tracing/events"), Path("/sys/kernel/debug/tracing/events"))


@dataclass(frozen=True)
class Event:
    """One event: perf's name of it, what one count is, one line of what it is, and where it is counted."""

    event: str
    unit: str
    what: str
    kind: Kind = "software"
    scopes: tuple[Scope, ...] = ("machine", "workload")

    @property
    def name(self) -> str:
        """The counter's name: `sched:sched_wakeup` gives perf.sched_wakeup."""
        return "perf." + self.event.rpartition(":")[2].lower().replace("-", "_")

    def counter(self, scope: Scope, prefix: str = OWN_PREFIX) -> Counter:
        """The counter of this event in a scope."""
        name_prefix = prefix if scope == "workload" else ""
        return Counter(name_prefix + self.name, self.unit, self.kind, is_rate=True, scope=scope)


LIGHT = (
    Event("context-switches", "switches", "changes from one task to another", scopes=("workload",)),
    Event("cpu-migrations", "migrations", "tasks moved to another processor"),
    Event("sched:sched_wakeup", "wake-ups", "sleeping tasks made ready to run"),
    Event("sched:sched_process_exec", "programs", "programs started"),
    Event("signal:signal_deliver", "signals", "signals delivered"),
    Event("timer:hrtimer_start", "timers", "high-resolution timers set"),
    Event("workqueue:workqueue_execute_start", "items", "deferred work items of the kernel", scopes=("machine",)),
    Event("sock:inet_sock_set_state", "changes", "connections that changed their state"),
    Event("sock:sock_send_length", "calls", "sends on a socket"),
    Event("sock:sock_recv_length", "calls", "receives on a socket"),
    Event("net:net_dev_queue", "packets", "packets handed to a device"),
    Event("filemap:mm_filemap_add_to_page_cache", "pages", "pages of files brought into memory"),
    Event("ext4:ext4_sync_file_enter", "calls", "fsync and the like on ext4"),
    Event("block:block_rq_issue", "requests", "requests handed to a disk", scopes=("workload",)),
)
SYSCALLS = (Event("raw_syscalls:sys_enter", "calls", "system calls"),)
HARDWARE = tuple(
    Event(event, unit, what, "hardware")
    for event, unit, what in (
        ("cycles", "cycles", "processor cycles"),
        ("instructions", "instructions", "instructions completed"),
        ("branches", "branches", "branches"),
        ("branch-misses", "branches", "branches predicted wrongly"),
        ("cache-references", "accesses", "accesses to the last-level cache"),
        ("cache-misses", "accesses", "those that it could not answer"),
        ("L1-dcache-loads", "loads", "loads from the first-level data cache"),
        ("L1-dcache-load-misses", "loads", "those that it could not answer"),
        ("LLC-loads", "loads", "loads from the last-level cache"),
        ("LLC-load-misses", "loads", "those that it could not answer"),
        ("iTLB-load-misses", "loads", "instruction addresses not found in their table"),
        ("dTLB-load-misses", "loads", "data addresses not found in their table"),
    )
)


def events_of(
    profile: Profile, *, has_pmu: bool, roots: tuple[Path, ...] = TRACEPOINTS
) -> tuple[tuple[Event, ...], list[Unavailable]]:
    """The events of a profile that this machine has, and those that it has not."""
    if profile == "none":
        return (), []
    wanted = (*LIGHT, *(SYSCALLS if profile == "syscalls" else ()))
    files = {event: f"{event.event.replace(':', '/')}/id" for event in wanted}
    there = tuple(e for e in wanted if ":" not in e.event or any((root / files[e]).exists() for root in roots))
    missing = [Unavailable(e.counter(e.scopes[0]).name, f"no tracepoint {e.event}") for e in wanted if e not in there]
    if has_pmu:
        return (*there, *HARDWARE), missing
    reason = "no performance monitoring unit that perf can read"
    return there, [*missing, *(Unavailable(event.name, reason) for event in HARDWARE)]


NAN = float("nan")
SEPARATOR = ";"
NO_VALUE = ("<not counted>", "<not supported>")


Intervals = dict[float, list[float]]  # by its end, in seconds since perf began: counts in the order of the events


def parse_perf(lines: Iterable[str]) -> Intervals:
    """Intervals in their order. What perf could not count is NaN; lines that are no counts are passed over."""
    intervals: Intervals = {}
    for line in lines:
        fields = line.split(SEPARATOR)
        if line.startswith("#") or len(fields) < 4:
            continue
        with contextlib.suppress(ValueError):
            ended_s, count = float(fields[0]), fields[1].strip()
            number = NAN if count in NO_VALUE else float(count)
            intervals.setdefault(ended_s, []).append(number)
    return intervals


def rates_at(lines: Iterable[str], at_s: FloatArray, n_events: int, interval_s: float) -> FloatArray:
    """Counts per second of the interval that ended nearest to each sample, within half an interval; else NaN. Shape
    (samples, events). at_s: from the end of perf's first interval on.

    Whole are intervals that say something of every event and lasted as long as asked: the last one is cut off when perf
    ends. What follows a gap tells no rate, nor does the first one, whose beginning is not the samples'."""
    intervals = parse_perf(lines)
    lasted_s = np.diff(list(intervals), prepend=0.0)
    whole = {
        ended_s: counts
        for (ended_s, counts), lasted in zip(intervals.items(), lasted_s, strict=True)
        if len(counts) == n_events and lasted > interval_s * 0.9
    }
    rates = np.full((len(at_s), n_events), NAN)
    if len(whole) > 1:
        ends, first_s = np.array(list(whole)), next(iter(intervals))
        between_s = np.diff(ends, prepend=NAN)[:, None]
        per_s = np.where(between_s < interval_s * 1.9, np.array(list(whole.values())) / between_s, NAN)
        off_s = np.abs(ends[:, None] - first_s - at_s)  # (intervals, samples)
        is_near = off_s.min(axis=0) <= interval_s / 2
        rates[is_near] = per_s[off_s.argmin(axis=0)[is_near]]
    return rates


CHUNK = 1 << 16
FIRST_LATE_S = 4.0
STOP_S = 5.0
PROBE_S = "0.05"
Groups = Mapping[str, str | None]  # by the prefix of their counters the names that perf knows groups by


def perf_group(group: ControlGroup | None, root: Path) -> str | None:
    """The name that `perf -G` knows a control group by, below the version 2 tree; None without one."""
    folder = group.folders.get("unified" if group.version == 1 else "cpu") if group else None
    if folder is None:
        return None
    top = root / "unified" if (root / "unified").is_dir() else root
    return str(folder.relative_to(top)) if folder.is_relative_to(top) else None


class PerfPlan:
    """What perf is asked to count on this machine, found out once: events that it knows, and what is missing."""

    def __init__(self, profile: Profile) -> None:
        self.perf = find_tool("perf") if profile != "none" else None
        self.events, self.missing = events_of(profile, has_pmu=bool(self.perf and counts_hardware_events()))
        reason = not_installed("perf") if self.perf is None else self._refusal()
        if profile != "none" and reason:
            self.missing += [Unavailable(event.counter(event.scopes[0]).name, reason) for event in self.events]
            self.events = ()

    def _refusal(self) -> str:
        """Why perf cannot count these events at all; empty if it can."""
        command = [*self.command(), "--", "sleep", PROBE_S]
        probe = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        lines = [line for line in probe.stderr.splitlines() if line.strip()]
        return "" if probe.returncode == 0 else f"perf: {lines[0] if lines else f'status {probe.returncode}'}"

    def planned_events(self, groups: Groups) -> list[tuple[Event, str, str]]:
        """Event, prefix of its counter ("" for the machine) and group, in the order of perf's lines."""
        places = [("", ""), *((prefix, name) for prefix, name in groups.items() if name)]
        return [
            (event, prefix, name)
            for prefix, name in places
            for event in self.events
            if ("workload" if prefix else "machine") in event.scopes
        ]

    def counters(self, groups: Groups) -> tuple[Counter, ...]:
        """The counters of a run."""
        planned = self.planned_events(groups)
        return tuple(event.counter("workload" if prefix else "machine", prefix) for event, prefix, _ in planned)

    def uncounted(self, groups: Groups) -> list[Unavailable]:
        """The events that it cannot count in groups: those whose tree knows no perf_event."""
        reason = "the control groups of this machine are not known to perf (no perf_event among their controllers)"
        lost = [prefix for prefix, name in groups.items() if name is None]
        group_events = [event for event in self.events if "workload" in event.scopes]
        return [
            Unavailable(event.counter("workload", prefix).name, reason) for prefix in lost for event in group_events
        ]

    def command(self, groups: Groups = MappingProxyType({}), interval_ms: int = 1000) -> list[str]:
        """perf's command line for the whole machine and for control groups."""
        planned = self.planned_events(groups)
        given = ["-G", ",".join(name for _, _, name in planned)] if any(groups.values()) else []
        names = ",".join(event.event for event, _, _ in planned)
        return [str(self.perf), "stat", "-I", str(interval_ms), f"-x{SEPARATOR}", "-a", "-e", names, *given]

    def started(self, groups: Groups, interval_s: float) -> "PerfChild | None":
        """Perf at the end of its first interval; None where it has nothing to count, or is late with it."""
        if not self.events:
            return None
        child, is_at_work = PerfChild(self, groups, interval_s), False
        try:
            is_at_work = child.wait_for_first()
        finally:
            if not is_at_work:
                child.stop()
        return child if is_at_work else None


class PerfChild:
    """A running perf. `wait_for_first` ends with its first interval: the samples' clock begins there."""

    def __init__(self, plan: PerfPlan, groups: Groups, interval_s: float) -> None:
        self.interval_s, self.n_events = interval_s, len(plan.planned_events(groups))
        self.counters = plan.counters(groups)
        self._output = bytearray()
        self._process = subprocess.Popen(
            tied_to_parent(plan.command(groups, round(interval_s * 1000))),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stderr is not None
        self._pipe = self._process.stderr.fileno()
        os.set_blocking(self._pipe, False)
        self._ended_cpu_s = 0.0

    @property
    def pid(self) -> int:
        """Process id of perf."""
        return self._process.pid

    def wait_for_first(self) -> bool:
        """Wait for the end of the first interval; false if there is none in time."""
        late = time.monotonic() + self.interval_s + FIRST_LATE_S
        while time.monotonic() < late and self._process.poll() is None:
            select.select([self._pipe], [], [], 0.5)
            self.drain()
            if b"\n" in self._output and parse_perf(self._output.decode(errors="replace").splitlines()):
                return True
        return False

    def drain(self) -> None:
        """Take what perf has written, so that it never waits for us."""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._pipe, CHUNK):
                self._output += piece

    def cpu_s(self) -> float:
        """CPU seconds that perf has used."""
        return cpu_s(self.pid) or self._ended_cpu_s

    def stop(self) -> None:
        """End perf; may be called twice."""
        if self._process.returncode is None and self._process.poll() is None:
            self._ended_cpu_s = self.cpu_s()
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.stderr is not None and not self._process.stderr.closed:
            self.drain()
            self._process.stderr.close()

    def rates(self, at_s: FloatArray) -> FloatArray:
        """Shape (samples, events): counts per second; at_s counts from the end of perf's first interval."""
        lines = self._output.decode(errors="replace").splitlines()
        return rates_at(lines, at_s, self.n_events, self.interval_s)


NAP_S = 0.25


@dataclass(frozen=True)
class SampledStretch:
    """Samples of one stretch of time. at_s: shape (n,), seconds after its start; values: shape (n, counters).

    own_cpu_s: CPU time of the sampler and its perf; missed: samples of the grid that came too late to be taken;
    is_whole: false if it was ended early."""

    counters: tuple[Counter, ...]
    at_s: FloatArray
    values: FloatArray
    started_at: datetime
    own_cpu_s: float
    missed: int
    is_whole: bool


@contextlib.contextmanager
def first_in_line() -> Iterator[None]:
    """This thread before all others whenever it wakes, where the system allows it: a busy machine delays no sample."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    raised = False
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        raised = True
    try:
        yield
    finally:
        if raised:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(0, before[0] & ~os.SCHED_RESET_ON_FORK, before[1])


def sample(
    sources: Sequence[Source],
    n_samples: int,
    interval_s: float,
    *,
    perf: PerfChild | None = None,
    on_start: Callable[[], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> SampledStretch:
    """Read the open sources once as a base, call on_start, and then n_samples times.

    should_stop is asked a few times a second; when it says so the samples so far are returned."""
    perf_before_s = perf.cpu_s() if perf else 0.0
    cpu_before_s, started_at = time.thread_time(), datetime.now(UTC).replace(tzinfo=None)
    readings, missed, is_whole = CounterReadings(), 0, True
    with first_in_line():
        start_s = time.monotonic()
        for n in range(n_samples + 1):
            if not _wait_until(start_s + n * interval_s, should_stop):
                is_whole = False
                break
            if n and time.monotonic() >= start_s + (n + 1) * interval_s:
                missed += 1
                continue
            taken = [(time.monotonic() - start_s, source.read()) for source in sources]
            readings.taken_s.append([at_s for at_s, _ in taken])
            readings.raw.append([raw for _, raw in taken])
            if perf:
                perf.drain()
            if n == 0 and on_start:
                on_start()
    perf_cpu_s = perf.cpu_s() - perf_before_s if perf else 0.0
    at_s, values = readings.at_s, values_of(sources, readings)
    counters = [measure.counter for source in sources for measure in source.measures]
    if perf:
        perf.stop()
        counters += perf.counters
        values = np.concatenate([values, perf.rates(at_s)], axis=1)
    own_cpu_s = time.thread_time() - cpu_before_s + perf_cpu_s
    return SampledStretch(tuple(counters), at_s, values, started_at, own_cpu_s, missed, is_whole)


def _wait_until(due_s: float, should_stop: Callable[[], bool] | None) -> bool:
    while (left_s := due_s - time.monotonic()) > 0:
        if should_stop and should_stop():
            return False
        time.sleep(min(left_s, NAP_S))
    return True
