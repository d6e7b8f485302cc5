"""Facts of a recording: the machine, and what others and the hypervisor took of it while something ran."""

import math
import os
import platform
import resource
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tasks.machine import ControlGroup, cpu_model, read_cgroups, read_server_file, root_group
from tasks.record.processes import PROC, WITH_ENDED, cpu_s, processes, tree_cpu_s

KTHREADD = "2"  # the kernel's process that is the parent of its threads
DIGITS = 5  # of what is kept: more than its meaning
NAN = float("nan")


def machine_facts(**more: Any) -> dict[str, Any]:
    """Processor, cores, memory in bytes, kernel and control groups, for the record of each part; and what is `more`."""
    return {
        "cpu_model": cpu_model(),
        "cores": os.cpu_count() or 0,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()}",
        "cgroups": read_cgroups().layout,
        "python": platform.python_version(),
    } | more


def known(value: Any, digits: int = DIGITS) -> Any:
    """A number rounded, None where it is NaN; whatever else it is stays."""
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else round(value, digits)


def all_known(facts: Mapping[str, Any], digits: int = DIGITS) -> dict[str, Any]:
    """Every number of some facts as `known` has it."""
    return {key: known(value, digits) for key, value in facts.items()}


def shared_server_cpu_s() -> float:
    """CPU seconds so far of the Prefect server that commands of this home (WHORL_HOME) share: whorl's own load.

    0 where none runs, and under `whorl serve`, whose processes hold the recorder itself."""
    home = os.environ.get("WHORL_HOME")
    server = read_server_file(Path(home)) if home else None
    return tree_cpu_s(server.pid) if server and server.is_shared else 0.0


def recorder_cpu_s() -> float:
    """CPU seconds so far of this process and of the Prefect server that it shares."""
    return time.process_time() + shared_server_cpu_s()


def ended_children_s() -> float:
    """CPU seconds of the children of this process that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def kernel_threads_s(proc: Path = PROC) -> float:
    """CPU time of all threads of the kernel; 0 where none is to be seen, as in a container."""
    return sum(cpu_s(pid, proc=proc, of=KTHREADD) for pid in processes(proc))


def machine_cpu_s() -> tuple[float, float]:
    """CPU seconds since the machine started: at work, and taken by the hypervisor (NaN where it does not say)."""
    times = psutil.cpu_times()
    busy_s = times.user + times.nice + times.system + getattr(times, "irq", 0.0) + getattr(times, "softirq", 0.0)
    return busy_s, float(getattr(times, "steal", NAN))


@dataclass(frozen=True)
class Disturbance:
    """Means over a run, in cores; NaN where the machine does not say."""

    foreign_cores: float
    steal_cores: float

    def exceeds(self, limit_ratio: float) -> bool:
        """Whether others, or the hypervisor, took more than this ratio of the cores. What is not known does not."""
        limit = limit_ratio * (os.cpu_count() or 1)
        return any(taken > limit for taken in (self.foreign_cores, self.steal_cores))


@dataclass(frozen=True)
class Usage:
    """CPU seconds so far. all_s: of the machine; ours_s: of the campaign; recorder_s: of this process and of the
    Prefect server that it shares; kernel_s: of the kernel's own threads, which write back what was written and carry
    packets."""

    at_s: float
    all_s: float
    ours_s: float
    recorder_s: float
    steal_s: float
    kernel_s: float = 0.0


def usage_now(campaign: ControlGroup | None, living: Iterable[int] = ()) -> Usage:
    """What the machine and the campaign have used until now. living: children of this process that are at work.

    With control groups both are exact. Without, the machine's is counted in clock ticks, and the campaign's is that of
    the children of this process that have ended, and of those that live, without what these have started."""
    all_s, steal_s = machine_cpu_s()
    everything = root_group() if campaign else None
    if everything and campaign:
        all_s, ours_s = everything.usage_s(), campaign.usage_s()
    else:
        ours_s = ended_children_s() + sum(cpu_s(pid, WITH_ENDED) for pid in living)
    return Usage(time.monotonic(), all_s, ours_s, recorder_cpu_s(), steal_s, kernel_threads_s())


def disturbance_between(before: Usage, after: Usage) -> Disturbance:
    """What disturbed what ran from one reading to the other."""
    lasted_s = max(after.at_s - before.at_s, 1e-3)
    ours_s = (after.ours_s - before.ours_s) + (after.recorder_s - before.recorder_s)
    foreign_s = (after.all_s - before.all_s) - ours_s - max(0.0, after.kernel_s - before.kernel_s)
    # not less than nothing and not more cores than there are, as differences of clock ticks can be; NaN stays
    taken = np.array([foreign_s, after.steal_s - before.steal_s]) / lasted_s
    return Disturbance(*np.clip(taken, 0.0, os.cpu_count() or 1).tolist())
