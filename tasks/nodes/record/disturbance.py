"""Work on the machine that was neither the benchmark's nor the stressor's nor the recorder's, and stolen time."""

import contextlib
import os
import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from tasks.machine_groups import ROOT, Group, root_group
from tasks.nodes.record.limits import CONTROLLERS

NAN = float("nan")
PARENT, USER = 1, 11  # fields of /proc/PID/stat, counted from the one behind the name
KTHREADD = "2"


@dataclass(frozen=True)
class Usage:
    """CPU seconds so far. all_s: of the machine; ours_s: of the campaign; recorder_s: of this process; kernel_s: of the
    kernel's own threads, which write back what the benchmark wrote and carry its packets."""

    at_s: float
    all_s: float
    ours_s: float
    recorder_s: float
    steal_s: float
    kernel_s: float = 0.0


@dataclass(frozen=True)
class Disturbance:
    """Means over an execution, in cores; NaN where the machine does not say."""

    foreign_cores: float
    steal_cores: float

    def exceeds(self, limit_ratio: float, cores: int) -> bool:
        """Whether others, or the hypervisor, took more than this ratio of the cores. What is not known does not."""
        return any(taken > limit_ratio * cores for taken in (self.foreign_cores, self.steal_cores))


class Usages:
    """Reads what the machine and the campaign have used.

    With control groups both are exact. Without, the machine's is counted in clock ticks, and the campaign's is that of
    the children of this process that have ended, and of those that live, without what these have started."""

    def __init__(self, campaign: Group | None, root: Path = ROOT) -> None:
        self.campaign = campaign
        self.everything = root_group(root, CONTROLLERS) if campaign else None

    def now(self, living: Iterable[int] = ()) -> Usage:
        """What has been used until now. living: children of this process that are at work."""
        times = psutil.cpu_times()
        steal_s = float(getattr(times, "steal", NAN))
        if self.everything and self.campaign:
            all_s, ours_s = self.everything.usage_s(), self.campaign.usage_s()
        else:
            all_s = times.user + times.nice + times.system + getattr(times, "irq", 0.0) + getattr(times, "softirq", 0.0)
            ours_s = _ended_children_s() + sum(map(_used_s, living))
        return Usage(time.monotonic(), all_s, ours_s, time.process_time(), steal_s, kernel_threads_s())


def disturbance_between(before: Usage, after: Usage) -> Disturbance:
    """What disturbed an execution."""
    lasted_s = max(after.at_s - before.at_s, 1e-3)
    ours_s = (after.ours_s - before.ours_s) + (after.recorder_s - before.recorder_s)
    foreign_s = (after.all_s - before.all_s) - ours_s - max(0.0, after.kernel_s - before.kernel_s)
    steal_s = after.steal_s - before.steal_s
    return Disturbance(_possible(foreign_s / lasted_s), _possible(steal_s / lasted_s))


def _possible(cores: float) -> float:
    """Not less than nothing and not more than there are, as differences of clock ticks can be; NaN stays."""
    return min(max(0.0, cores), float(os.cpu_count() or 1)) if cores == cores else NAN


def kernel_threads_s(proc: Path = Path("/proc")) -> float:
    """CPU time of all threads of the kernel; 0 where none is to be seen, as in a container."""
    ticks = 0
    names = [path.name for path in proc.iterdir()] if proc.is_dir() else []
    for name in filter(str.isdecimal, names):  # glob would fail where a process ends while it looks
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (proc / name / "stat").read_text().rpartition(")")[2].split()
            if fields[PARENT] == KTHREADD:
                ticks += sum(int(text) for text in fields[USER : USER + 2])
    return ticks / os.sysconf("SC_CLK_TCK")


def _ended_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _used_s(pid: int) -> float:
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(ticks) for ticks in fields[USER : USER + 4]) / os.sysconf("SC_CLK_TCK")
    return 0.0
