"""`perf stat` as a child beside the sampler: started before the samples, read at each of them."""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tasks.lifeline import tied_to_parent
from tasks.machine import counts_hardware_events, find_tool
from tasks.machine_groups import Group
from tasks.workloads.record.measures import Unavailable
from tasks.workloads.record.perf_events import PARTNER_PREFIX, Event, Profile, events_of
from tasks.workloads.record.perf_lines import SEPARATOR, parse_perf, rates_at, whole_intervals
from tasks.workloads.telemetry import OWN_PREFIX, Counter, FloatArray

CHUNK = 1 << 16
FIRST_LATE_S = 4.0
STOP_S = 5.0
TIMES = slice(11, 13)  # utime and stime behind the name in /proc/PID/stat
PROBE_S = "0.05"
PREFIXES = (OWN_PREFIX, PARTNER_PREFIX)  # of the counters of the first group and of the second


def _folder_of(group: Group) -> Path | None:
    return group.folders.get("unified" if group.version == 1 else "cpu")


def perf_group(group: Group | None, root: Path) -> str | None:
    """The name that `perf -G` knows a control group by, below the version 2 tree; None without one."""
    folder = _folder_of(group) if group else None
    if folder is None:
        return None
    top = root / "unified" if (root / "unified").is_dir() else root
    return str(folder.relative_to(top)) if folder.is_relative_to(top) else None


class PerfPlan:
    """What perf is asked to count on this machine, found out once: events that it knows, and what is missing."""

    def __init__(self, profile: Profile) -> None:
        self.perf = find_tool("perf") if profile != "none" else None
        self.events, self.missing = events_of(profile, has_pmu=bool(self.perf and counts_hardware_events()))
        reason = "perf is not installed (Debian: apt-get install linux-perf)" if self.perf is None else self._refusal()
        if profile != "none" and reason:
            self.missing += [Unavailable(event.counter(event.scopes[0]).name, reason) for event in self.events]
            self.events = ()

    def _refusal(self) -> str:
        """Why perf cannot count these events at all; empty if it can."""
        command = [*self.command(), "--", "sleep", PROBE_S]
        told = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        lines = [line for line in told.stderr.splitlines() if line.strip()]
        return "" if told.returncode == 0 else f"perf: {lines[0] if lines else f'status {told.returncode}'}"

    def asked(self, groups: Sequence[str | None]) -> list[tuple[Event, str, str]]:
        """Event, prefix of its counter ("" for the machine) and group, in the order of perf's lines."""
        places = [("", ""), *((prefix, name) for prefix, name in zip(PREFIXES, groups, strict=False) if name)]
        return [
            (event, prefix, name)
            for prefix, name in places
            for event in self.events
            if ("workload" if prefix else "machine") in event.scopes
        ]

    def counters(self, groups: Sequence[str | None]) -> tuple[Counter, ...]:
        """The counters of a run."""
        asked = self.asked(groups)
        return tuple(event.counter("workload" if prefix else "machine", prefix) for event, prefix, _ in asked)

    def command(self, groups: Sequence[str | None] = (), interval_ms: int = 1000) -> list[str]:
        """perf's command line for the whole machine and for up to two control groups."""
        asked = self.asked(groups)
        given = ["-G", ",".join(name for _, _, name in asked)] if any(groups) else []
        names = ",".join(event.event for event, _, _ in asked)
        return [str(self.perf), "stat", "-I", str(interval_ms), f"-x{SEPARATOR}", "-a", "-e", names, *given]


class PerfChild:
    """A running perf. `wait_for_first` ends with its first interval: the samples' clock begins there."""

    def __init__(self, plan: PerfPlan, groups: Sequence[str | None], interval_s: float) -> None:
        self.interval_s, self.n_events = interval_s, len(plan.asked(groups))
        self.counters = plan.counters(groups)
        self._said = bytearray()
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
            if b"\n" in self._said and parse_perf(self._said.decode(errors="replace").splitlines()):
                return True
        return False

    def drain(self) -> None:
        """Take what perf has written, so that it never waits for us."""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._pipe, CHUNK):
                self._said += piece

    def cpu_s(self) -> float:
        """CPU seconds that perf has used."""
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            return sum(int(text) for text in fields[TIMES]) / os.sysconf("SC_CLK_TCK")
        return self._ended_cpu_s

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

    def rates(self, at_s: Sequence[float] | FloatArray) -> list[list[float]]:
        """Shape (samples, events): counts per second; at_s counts from the end of perf's first interval."""
        told = parse_perf(self._said.decode(errors="replace").splitlines())
        whole = whole_intervals(told, self.n_events, self.interval_s)
        first_s = told[0].ended_s if told else 0.0
        return rates_at(whole, list(at_s), self.n_events, self.interval_s, first_s)
