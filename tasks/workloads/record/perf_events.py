"""Events that `perf stat` counts: of the processor where it has such counters, and tracepoints of the kernel."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tasks.workloads.record.measures import Unavailable
from tasks.workloads.telemetry import OWN_PREFIX, Counter, Kind, Scope

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
        own = prefix if scope == "workload" else ""
        return Counter(own + self.name, self.unit, self.kind, is_rate=True, scope=scope)


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
    asked = (*LIGHT, *(SYSCALLS if profile == "syscalls" else ()))
    there = tuple(event for event in asked if ":" not in event.event or _is_traced(event.event, roots))
    missing = [Unavailable(e.counter(e.scopes[0]).name, f"no tracepoint {e.event}") for e in asked if e not in there]
    if has_pmu:
        return (*there, *HARDWARE), missing
    reason = "no performance monitoring unit that perf can read"
    return there, [*missing, *(Unavailable(event.name, reason) for event in HARDWARE)]


def _is_traced(event: str, roots: tuple[Path, ...]) -> bool:
    group, _, name = event.partition(":")
    return any((root / group / name / "id").exists() for root in roots)
