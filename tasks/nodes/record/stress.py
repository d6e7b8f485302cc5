"""Stress on the node that a benchmark runs on: started before it, watched while it runs, ended after it."""

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.machine_groups import Group
from tasks.nodes.record.doses import Dose
from tasks.nodes.record.limits import allow_share, processes_in, throttled_s
from tasks.nodes.record.place import STRESS, STRESS_SERVER, Place
from tasks.nodes.record.surroundings import Running, start
from tasks.workloads.record.programs.session import members

START_S, NAP_S = 2.0, 0.01
AT_WORK_S = 0.003  # CPU time that it has used when it has begun
STARTING_S = 0.15  # time that its start takes, with its full speed
LEAST_CORES = 0.0005  # mean, while the benchmark ran: a stressor that sleeps uses none
MARGIN_S = 30.0
IO_FIELDS = ("rchar", "wchar", "read_bytes", "write_bytes")
NO_STRESS = Dose(benchmark="none", level=1, name="none")


@dataclass(frozen=True)
class StressReading:
    """What a stressor has used so far. throttled_s: what the benchmark had to wait for its own quota."""

    at_s: float
    cpu_s: float
    io_bytes: float
    throttled_s: float
    is_alive: bool


@dataclass(frozen=True)
class StressOutcome:
    """What became of a dose. cores, bytes_per_s: what the stressor used while the benchmark ran."""

    is_applied: bool
    cores: float = 0.0
    bytes_per_s: float = 0.0
    throttled_ratio: float = 0.0


class Stressor:
    """One dose on one node."""

    def __init__(self, dose: Dose, place: Place, limit_s: float) -> None:
        self.dose, self.place, self.limit_s = dose, place, limit_s
        self.running: Running | None = None
        self.told = ""
        self.folder = place.folder / "stress"

    @property
    def group(self) -> Group | None:
        """The stressor's own group."""
        return self.place.groups.stress if self.place.groups else None

    def start(self) -> None:
        """Apply the dose; returns when it works, or after two seconds. Raises MissingTool, NoServer, NoNamespace."""
        groups, dose = self.place.groups, self.dose
        if groups and dose.throttle_ratio < 1:
            allow_share(groups.bench, self.place.cpu_cores, dose.throttle_ratio)
        if dose.delay_ms and self.place.link:
            self.place.link.delay(dose.delay_ms)
        if not dose.command:
            return
        if "{stress_port}" in dose.command:
            self.place.serve(STRESS, STRESS_SERVER)
        self.folder.mkdir(exist_ok=True)
        values = self.place.values(
            limit_s=self.limit_s + MARGIN_S, link_ratio=dose.link_ratio, disk_ratio=dose.disk_ratio
        )
        words = self.place.command(dose.command, values | {"folder": str(self.folder)})
        before = self.read()
        self.running = start(words, self.place.around(self.group), self.place.folder / "stress.log")
        self._wait_until_at_work(before)
        if groups and dose.cpu_ratio < 1:  # only now: its start would take seconds with little of a processor
            allow_share(groups.stress, self.place.cpu_cores, dose.cpu_ratio)

    def _wait_until_at_work(self, before: StressReading) -> None:
        while self.running and self.running.is_alive:
            now = self.read()
            lasted_s, used_s = now.at_s - before.at_s, now.cpu_s - before.cpu_s
            if lasted_s >= START_S or (lasted_s >= STARTING_S and used_s >= AT_WORK_S):
                return
            time.sleep(NAP_S)

    def read(self) -> StressReading:
        """What it has used so far."""
        groups, running = self.place.groups, self.running
        pids = processes_in(self.group) if self.group else members(running.process.pid) if running else []
        waited = throttled_s(groups.bench) if groups else 0.0
        is_alive = running.is_alive if running else not self.dose.command
        if self.dose.delay_ms:
            is_alive = is_alive and self.place.link is not None and self.place.link.is_delayed
        cpu_s = self.group.usage_s() if self.group else sum(map(_cpu_s, pids))
        return StressReading(time.monotonic(), cpu_s, sum(map(_io_bytes, pids)), waited, is_alive)

    def outcome(self, before: StressReading, after: StressReading) -> StressOutcome:
        """Whether it was at work from the one reading to the other. A stressor that has ended was not."""
        lasted_s = max(after.at_s - before.at_s, NAP_S)
        cores = (after.cpu_s - before.cpu_s) / lasted_s
        bytes_per_s = max(0.0, after.io_bytes - before.io_bytes) / lasted_s
        throttled = (after.throttled_s - before.throttled_s) / lasted_s
        works = before.is_alive and after.is_alive and (cores >= LEAST_CORES or not self.dose.command)
        slows = self.dose.throttle_ratio >= 1 or throttled > 0
        return StressOutcome(works and slows, cores, bytes_per_s, throttled)

    def stop(self) -> None:
        """End it, and keep its last words if it had ended before."""
        if self.running:
            if not self.running.is_alive:
                self.told = self.running.last_words()
            self.running.end()
            self.running = None
            self.place.servers.stop(STRESS)  # it would still be busy with us when the next one comes
        if self.dose.delay_ms and self.place.link:
            self.place.link.delay(0)
        groups, cores = self.place.groups, self.place.cpu_cores
        if groups and self.dose.cpu_ratio < 1:
            allow_share(groups.stress, cores, 1)
        if groups and self.dose.throttle_ratio < 1:
            allow_share(groups.bench, cores, 1)
        if self.dose.command:
            shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def applied(dose: Dose, place: Place, limit_s: float) -> Iterator[Stressor]:
    """The dose at work on the node, and gone afterwards. Raises MissingTool, NoServer."""
    stressor = Stressor(dose, place, limit_s)
    try:
        stressor.start()
        yield stressor
    finally:
        stressor.stop()


def _cpu_s(pid: int) -> float:
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _io_bytes(pid: int) -> float:
    with contextlib.suppress(OSError, ValueError):
        told = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
        return float(sum(int(told[name]) for name in IO_FIELDS))
    return 0.0
