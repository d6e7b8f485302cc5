"""Programs of a node in its control groups: what they may use, who is in them, and how exactly they are ended."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tasks.machine import UNLIMITED, ControlGroup, joining, tied_to_parent
from tasks.nodes.record.params import NodeParams
from tasks.record.processes import end_session, last_words, start_in, started, wait_for_end

CONTROLLERS = ("cpu", "cpuacct", "memory", "blkio", "unified")
PREFIX = "whorl-nodes-"  # and the recorder's process id
MB, PERCENT = 1_000_000, 100
PERIOD_US = 20_000  # short, so that a node with half a processor is slow and not stopped half of the time
PART_PERIOD_US = 100_000  # of a small share of it, which may not be less than a millisecond
LEAST_QUOTA_US = 1000
NS, US = 1e-9, 1e-6
REGISTER = "processes"
MOST_LOG_BYTES = 8_000_000


@dataclass(frozen=True)
class NodeGroups:
    """A node's group, and in it one for the benchmark and one for the stressor. peer: the servers', outside of it."""

    node: ControlGroup
    bench: ControlGroup
    stress: ControlGroup
    peer: ControlGroup


def make_groups(campaign: ControlGroup | None, params: NodeParams, folder: Path) -> tuple[NodeGroups | None, list[str]]:
    """The groups of a node with its limits, and those of its limits that do not work here, with the reason."""
    if campaign is None:
        return None, set_limits(None, params, folder)
    node = campaign.child(params.name)
    node.share_controllers()
    faults = set_limits(node, params, folder)
    bench, stress = (node.child(name, shares_disk=True) for name in ("bench", "stress"))
    return NodeGroups(node, bench, stress, campaign.child(f"{params.name}-peer")), faults


def set_limits(node: ControlGroup | None, params: NodeParams, folder: Path) -> list[str]:
    """Give a node's group its limits; returns those that do not work here, with the reason."""
    quota_us = round(params.cpu_percent / PERCENT * PERIOD_US)
    limits: tuple[tuple[str, float, Callable[[ControlGroup], None]], ...] = (
        (f"CPU quota of {params.cpu_percent:g} %", quota_us, lambda group: group.set_quota(quota_us, PERIOD_US)),
        (
            f"memory limit of {params.memory_mib:g} MiB",
            params.memory_mib,
            lambda group: _limit_memory(group, params.memory_mib),
        ),
        (
            f"disk limit of {params.disk_mb_per_s:g} MB/s",
            params.disk_mb_per_s,
            lambda group: group.limit_disk(folder, params.disk_mb_per_s * MB),
        ),
    )
    faults: list[str] = []
    for what, limit, put in limits:
        if limit and node is None:
            faults.append(f"{what}: no control groups here")
        elif limit and node:
            try:
                put(node)
            except (OSError, KeyError, ValueError) as error:
                faults.append(f"{what}: {error}")
    return faults


def _limit_memory(group: ControlGroup, mib: float) -> None:
    if not group.limit_memory(mib):
        raise ValueError("the system does not let us")


def allow_share(group: ControlGroup, cores: float, ratio: float) -> None:
    """Let a group have this ratio of the node's processors, at most; 1 takes the limit away."""
    quota_us = UNLIMITED if ratio >= 1 else max(LEAST_QUOTA_US, round(ratio * cores * PART_PERIOD_US))
    group.set_quota(quota_us, PART_PERIOD_US)


def throttled_s(group: ControlGroup) -> float:
    """Seconds in which the group had to wait for its quota, summed over processors."""
    counters = group.cpu_stat()
    return counters["throttled_usec"] * US if group.version == 2 else counters["throttled_time"] * NS


@dataclass(frozen=True)
class Surroundings:
    """Where a program runs. folder: its working folder; namespace: of the network, by name, empty for the machine's;
    cores: processors that it may use, empty for all; register: where its id is written down for a later call;
    is_shared: its group holds other programs too, which live on when this one is ended."""

    folder: Path
    group: ControlGroup | None = None
    namespace: str = ""
    cores: tuple[int, ...] = ()
    register: Path | None = None
    is_shared: bool = False

    def command(self, words: Sequence[str]) -> list[str]:
        """The words, made to move into the surroundings first."""
        entering = ["nsenter", f"--net=/run/netns/{self.namespace}", "--"] if self.namespace else []
        pinned = ["taskset", "-c", ",".join(map(str, self.cores))] if self.cores else []
        tied = tied_to_parent([*entering, *pinned, *words], signal.SIGKILL)
        return joining(self.group.doors if self.group else (), tied)


@dataclass
class Running:
    """A program at work, in a session of its own. group: its own, None where it shares one."""

    process: "subprocess.Popen[bytes]"
    started: str
    out: Path
    group: ControlGroup | None
    began_s: float = field(default_factory=time.monotonic)
    ended_s: float = float("nan")

    @property
    def is_alive(self) -> bool:
        """Whether it, its first process, has not ended."""
        return self.process.poll() is None

    def wait(self, limit_s: float) -> bool:
        """Wait for its end; false if it lives on after limit_s."""
        has_ended = wait_for_end(self.process.pid, limit_s)
        self.ended_s = time.monotonic()
        return has_ended

    def end(self) -> int:
        """End all of it, whatever it has started; returns its exit status, negative for a signal."""
        end_session(self.process.pid, self.started, signal.SIGKILL)
        if self.group:
            self.group.end_processes()
        return self.process.wait()

    def output(self) -> str:
        """All that it wrote."""
        with contextlib.suppress(OSError), self.out.open("rb") as file:
            return file.read(MOST_LOG_BYTES).decode(errors="replace")
        return ""

    def last_words(self) -> str:
        """The last line that it wrote."""
        return last_words(self.out)


def start(words: Sequence[str], around: Surroundings, out: Path) -> Running:
    """Start a program. out: file for what it writes.

    Call it from a thread that outlives it: it is killed when that thread ends, however it ends."""
    with out.open("wb") as log:
        process = start_in(around.folder, around.command(words), log, around.register)
    return Running(process, started(process.pid) or "", out, None if around.is_shared else around.group)


def run(words: Sequence[str], around: Surroundings, out: Path, limit_s: float) -> tuple[Running, int | None]:
    """Run a program to its end; its exit status is None if it took longer than limit_s and was killed."""
    running = start(words, around, out)
    try:
        has_ended = running.wait(limit_s)
    finally:
        status = running.end()
    return running, status if has_ended else None
