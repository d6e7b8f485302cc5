"""The miniature cluster: for each SKU a control group with a quota, slots for vertices, load and gauges; and the
machine beneath it: its facts, and what others do there."""

import contextlib
import logging
import math
import os
import shutil
import signal
import statistics
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

from tasks.errors import MissingTool
from tasks.jobs.params import TOKEN_US, TOKENS_OF_A_CORE, Campaign, RecordParams, Sku
from tasks.machine import (
    CGROUP_ROOT,
    UNLIMITED,
    ControlGroup,
    campaign_group,
    not_installed,
    read_cgroups,
    tied_to_parent,
)
from tasks.record.facts import ended_children_s, machine_cpu_s, recorder_cpu_s
from tasks.record.processes import tree_cpu_s

logger = logging.getLogger(__name__)
PLANNER = "planner"  # the slot that plans jobs, outside every SKU
WINDOW_S = 10.0
RECENT_S = 1.0  # what background load takes now, for spare tokens
FEWEST_S = 1e-3
MB = 1_000_000
WEIGHT = 800  # the campaign keeps its quota while other work goes on
MEMORY_MIB_PER_TOKEN = 400
MOST_SLOTS = 16  # of one SKU: a worker takes 100 MB
LOAD_WEIGHT = 300  # against 100 of each vertex: a noisy neighbour
STOP_S = 5.0
STRESSORS = {  # how much of a SKU they take is the quota of their group
    "cpu": "--cpu 2 --cpu-method matrixprod{limit}",
    "memory": "--vm 1 --vm-bytes 256M --vm-keep",
    "disk": "--hdd 1 --hdd-bytes 128M --temp-path {temp}",
}
UNKNOWN = "unknown"
MONITOR_WINDOW_S = 5.0


@dataclass
class Gauge:
    """CPU seconds over time, of which the last ones count."""

    window_s: float = WINDOW_S
    samples: deque[tuple[float, float]] = field(default_factory=deque)

    def add(self, at: float, used_s: float) -> None:
        """Add a reading of a counter; `at` in seconds of one clock."""
        self.samples.append((at, used_s))
        while len(self.samples) > 2 and at - self.samples[1][0] >= self.window_s:
            self.samples.popleft()

    def cores(self) -> list[float]:
        """Mean cores between each two readings of the window."""
        return [_cores(first, last) for first, last in pairwise(self.samples)]

    def mean(self) -> float:
        """Mean cores of the whole window; NaN before there are two readings."""
        return _cores(self.samples[0], self.samples[-1]) if len(self.samples) > 1 else math.nan

    def latest(self) -> float:
        """Mean cores of the last second or so; 0 before there are two readings."""
        if len(self.samples) < 2:
            return 0.0
        last, before = self.samples[-1], self.samples[-2]
        return _cores(
            next(sample for sample in self.samples if last[0] - sample[0] <= RECENT_S or sample is before), last
        )


def _cores(first: tuple[float, float], last: tuple[float, float]) -> float:
    return (last[1] - first[1]) / max(last[0] - first[0], FEWEST_S)


class BackgroundLoad:
    """One level of load at a time on one SKU; leaves no stressor behind."""

    def __init__(self, source: str, temp: Path, group: ControlGroup | None) -> None:
        self.source, self.temp, self.group = source, temp, group
        self.level = "none"
        self._process: subprocess.Popen[bytes] | None = None
        self._ending: list[subprocess.Popen[bytes]] = []

    @property
    def pids(self) -> list[int]:
        """Process ids of the stressors."""
        return [process.pid for process in (self._process, *self._ending) if process]

    def switch(self, level: str) -> None:
        """Go to another level; without stress-ng the level stays `none`. The same kind goes on at another quota."""
        if self.source != "stress-ng" or level == self.level:
            return
        command, before = (
            stress_command(load_level, self.temp, has_group=self.group is not None)
            for load_level in (level, self.level)
        )
        if command != before or self.group is None:
            self._end()
            if command:
                self._start(command)
        self.level = level

    def _start(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            tied_to_parent(command if self.group is None else self.group.command_inside(command)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # one process group, so that all of it can be stopped
        )

    def _end(self) -> None:
        """Ask the stressor to end; nobody waits for it, since runs are being timed."""
        self._ending = [process for process in self._ending if process.poll() is None]
        if self._process is not None:
            self._signal(self._process, signal.SIGTERM)
            self._ending.append(self._process)
            self._process = None

    @staticmethod
    def _signal(process: subprocess.Popen[bytes], what: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, what)

    def stop(self) -> None:
        """End every stressor and everything it started, and wait for that."""
        self._end()
        self.level = "none"
        for process in self._ending:
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._signal(process, signal.SIGKILL)
                process.wait(STOP_S)
        self._ending = []


@dataclass
class SkuState:
    """One SKU at work. group, load_group: None where there are no control groups. promised: tokens, by job."""

    sku: Sku
    load: BackgroundLoad
    slots: tuple[str, ...]
    group: ControlGroup | None = None
    load_group: ControlGroup | None = None
    promised: dict[str, int] = field(default_factory=dict)
    used: Gauge = field(default_factory=Gauge)
    load_used: Gauge = field(default_factory=Gauge)

    @property
    def free_tokens(self) -> int:
        """Tokens not promised to any job."""
        return self.sku.tokens - sum(self.promised.values())

    @property
    def load_tokens(self) -> int:
        """Tokens' worth of CPU that background load takes now."""
        return round(self.load_used.latest() / self.sku.speed * TOKENS_OF_A_CORE)

    def load_mean_sd(self, busy: Gauge, cores: int) -> tuple[float, float]:
        """Usage over quota in the last ten seconds, NaN before the second reading; without control groups, that of
        the whole machine."""
        readings = [value / self.sku.cores for value in self.used.cores()] if self.group else []
        readings = readings or [value / cores for value in busy.cores()]
        if not readings:
            return math.nan, math.nan
        return round(statistics.fmean(readings), 3), round(statistics.pstdev(readings), 3)

    def set_load(self, level: str) -> None:
        """Change the background load: its kind, and how much of the SKU's quota it may take."""
        percent = int(level.partition("-")[2] or 0)
        if self.load_group is not None:
            quota_us = max(TOKEN_US, round(self.sku.tokens * percent / 100 * TOKEN_US))
            self.load_group.set_quota(quota_us if percent else UNLIMITED, self.sku.period_us)  # what ends, ends fast
        self.load.switch(level)


@dataclass
class MiniatureCluster:
    """All SKUs, and the processor time of the machine."""

    skus: dict[str, SkuState]
    isolation: str
    main: ControlGroup | None = None
    busy: Gauge = field(default_factory=Gauge)

    def sample(self) -> None:
        """Read every counter; call it about twice a second."""
        at = time.monotonic()
        for state in self.skus.values():
            if state.group and state.load_group:
                state.used.add(at, state.group.usage_s())
                state.load_used.add(at, state.load_group.usage_s())
        self.busy.add(at, sum(used_s for used_s in machine_cpu_s() if not math.isnan(used_s)))

    def used_s(self) -> float | None:
        """CPU seconds of all workers and all load; None without control groups."""
        return self.main.usage_s() if self.main else None

    def slots(self) -> dict[str, ControlGroup | None]:
        """Name and control group of every slot."""
        made: dict[str, ControlGroup | None] = {PLANNER: self.main.child(PLANNER) if self.main else None}
        for state in self.skus.values():
            for slot in state.slots:
                made[slot] = state.group.child(slot, shares_disk=True) if state.group else None
        return made


def _state(sku: Sku, main: ControlGroup | None, source: str, scratch: Path) -> SkuState:
    slots = tuple(f"{sku.name}-{place}" for place in range(min(sku.tokens, MOST_SLOTS)))
    if main is None:
        return SkuState(sku, BackgroundLoad(source, scratch, None), slots)
    group = main.child(sku.name)
    group.share_controllers()
    set_tokens(group, sku, sku.tokens)
    if not group.limit_memory(sku.tokens * MEMORY_MIB_PER_TOKEN):
        logger.warning("%s: its memory cannot be limited", sku.name)
    try:
        group.limit_disk(scratch, sku.read_mb_per_s * MB, ["read"])
    except (OSError, KeyError, ValueError):
        logger.warning("%s: its disk cannot be slowed down", sku.name)
    load_group = group.child("load", shares_disk=True)
    load_group.set_weight(LOAD_WEIGHT)
    return SkuState(sku, BackgroundLoad(source, scratch, load_group), slots, group, load_group)


@contextlib.contextmanager
def open_cluster(params: Campaign, source: str, scratch: Path, root: Path = CGROUP_ROOT) -> Iterator[MiniatureCluster]:
    """The cluster, gone afterwards with all its groups and load.

    Raises MissingTool where control groups are asked for by name and cannot be made."""
    with contextlib.ExitStack() as stack:
        main = None if params.isolation == "threads" else stack.enter_context(campaign_group(root, weight=WEIGHT))
        try:
            states = {sku.name: _state(sku, main, source, scratch) for sku in params.skus}
        except OSError as error:  # a container whose own quota is below that of an SKU
            reason = f"the quota of an SKU cannot be set here ({error.strerror}): a limit above is lower"
            _without_groups(params, reason)
            main = None
            states = {sku.name: _state(sku, None, source, scratch) for sku in params.skus}
        else:
            if main is None:
                _without_groups(params, "control groups cannot be made here")
        total_cores, cores = sum(sku.cores for sku in params.skus), os.cpu_count() or 1
        if total_cores > cores:
            too_much = "the SKUs have %.1f cores together, this machine has %d: they will slow each other down"
            logger.warning(too_much, total_cores, cores)
        for state in states.values():
            stack.callback(state.load.stop)
        yield MiniatureCluster(states, "cgroups" if main else "threads", main)


def check_needs(params: RecordParams) -> None:
    """Raises MissingTool for what these parameters ask for by name and this machine lacks."""
    if params.load == "stress-ng":
        load_source(params)
    if params.isolation == "cgroups" and not read_cgroups().writable:
        _without_groups(params, "control groups cannot be made here")


def _without_groups(params: RecordParams, reason: str) -> None:
    if params.isolation == "cgroups":
        raise MissingTool(
            f"{reason}; start as root where /sys/fs/cgroup can be written, or record with isolation=threads"
        )
    logger.warning("%s: threads stand in for tokens, and every SKU has the same speed", reason)


def set_tokens(group: ControlGroup | None, sku: Sku, tokens: int) -> None:
    """Give a slot the quota of so many tokens; nothing without control groups."""
    if group is not None:
        group.set_quota(tokens * TOKEN_US, sku.period_us)


def offered_load(readings: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Mean over SKUs of their mean load, and deviation over SKUs and time together (law of total variance)."""
    means, deviations = [mean for mean, _ in readings], [sd for _, sd in readings]
    within = statistics.fmean(sd * sd for sd in deviations)
    return statistics.fmean(means), (within + statistics.pvariance(means)) ** 0.5


def load_source(params: RecordParams) -> str:
    """`stress-ng` or `jobs`: where this campaign's load comes from.

    Raises MissingTool if stress-ng is asked for by name and is not installed.
    """
    if params.load == "jobs" or shutil.which("stress-ng"):
        return "jobs" if params.load == "jobs" else "stress-ng"
    missing = not_installed("stress-ng")
    if params.load == "stress-ng":
        raise MissingTool(f"{missing}; install it, or record with load=jobs")
    logger.warning("%s: load comes from concurrent jobs only", missing)
    return "jobs"


def stress_command(level: str, temp: Path, *, has_group: bool = True) -> list[str]:
    """The stress-ng command of a level; empty for `none`. Without a group it limits itself, as far as it can."""
    kind, _, percent = level.partition("-")
    if kind == "none":
        return []
    limit = "" if has_group else f" --cpu-load {percent}"
    return ["stress-ng", "--quiet", *STRESSORS[kind].format(temp=temp, limit=limit).split()]


class Monitor:
    """Samples the machine when told to; `state` is the mean over the last five seconds."""

    def __init__(self) -> None:
        self.cores = os.cpu_count() or 1
        self._busy, self._steal, self._own = (Gauge(MONITOR_WINDOW_S) for _ in range(3))

    def sample(self, own_pids: list[int], grouped_s: float = 0.0) -> None:
        """Take a sample. What is not foreign: the recorder's children own_pids, and grouped_s, the CPU seconds of
        those that a control group counts."""
        own_s = grouped_s + recorder_cpu_s() + ended_children_s() + sum(map(tree_cpu_s, own_pids))
        at = time.monotonic()
        for gauge, used_s in zip((self._own, self._busy, self._steal), (own_s, *machine_cpu_s()), strict=True):
            gauge.add(at, used_s)

    def state(self) -> dict[str, float]:
        """The machine now, as the columns of a part file call it. Cores are means over the last seconds; NaN where the
        system does not say."""
        state = {"load_1m": os.getloadavg()[0], "cpu_pressure_pct": math.nan}
        with contextlib.suppress(OSError, IndexError, ValueError):
            state["cpu_pressure_pct"] = float(Path("/proc/pressure/cpu").read_text().split()[1].partition("=")[2])
        busy, steal, recorder_cores = (gauge.mean() for gauge in (self._busy, self._steal, self._own))
        # clock ticks and ended children make small negative differences
        return state | {
            "busy_cores": busy,
            "steal_cores": steal,
            "foreign_cores": busy if math.isnan(busy) else max(0.0, busy - recorder_cores),
        }


def versions() -> dict[str, str]:
    """The versions of what shaped the recording."""
    stress_ng = "not installed"
    if shutil.which("stress-ng"):
        said = subprocess.run(["stress-ng", "--version"], capture_output=True, text=True, check=False).stdout
        stress_ng = next((word for word in said.split() if word[:1].isdigit()), UNKNOWN)
    return {"duckdb": version("duckdb"), "stress_ng": stress_ng}
