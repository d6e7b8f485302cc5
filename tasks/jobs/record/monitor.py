"""What the machine does around the jobs: load, queueing for processors, and work that is not the recorder's."""

import contextlib
import os
import resource
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

WINDOW_S = 5.0
TIME_FIELDS = slice(11, 15)  # utime, stime, cutime, cstime after the name in /proc/PID/stat
IDLE_FIELDS = (3, 4)  # idle and iowait in /proc/stat
STEAL = 7


@dataclass(frozen=True)
class MachineState:
    """The machine just before a run. Cores are means over the last seconds; NaN where the system does not say."""

    load_1m: float = float("nan")
    busy_cores: float = float("nan")
    foreign_cores: float = float("nan")
    steal_cores: float = float("nan")
    cpu_pressure_pct: float = float("nan")


@dataclass(frozen=True)
class _Sample:
    at: float
    busy_s: float
    steal_s: float
    own_s: float


def tree_cpu_s(pid: int) -> float:
    """CPU seconds of a process, its ended children and its living descendants."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = sum(int(text) for text in fields[TIME_FIELDS])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return ticks / os.sysconf("SC_CLK_TCK") + sum(tree_cpu_s(int(child)) for child in children)
    return 0.0


def _recorder_cpu_s() -> float:
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Monitor:
    """Samples the machine when told to; `state` is the mean over the last five seconds."""

    def __init__(self) -> None:
        self.cores = os.cpu_count() or 1
        self._samples: deque[_Sample] = deque()

    def sample(self, own_pids: list[int], grouped_s: float = 0.0) -> None:
        """Take a sample. What is not foreign: the recorder's children own_pids, and grouped_s, the CPU seconds of
        those that a control group counts."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            ticks = [int(text) for text in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
            per_s = os.sysconf("SC_CLK_TCK")
            idle = sum(ticks[field] for field in IDLE_FIELDS)
            busy = sum(ticks[: STEAL + 1]) - idle - ticks[STEAL]
            own_s = grouped_s + _recorder_cpu_s() + sum(tree_cpu_s(pid) for pid in own_pids)
            self._samples.append(_Sample(time.monotonic(), busy / per_s, ticks[STEAL] / per_s, own_s))
        while len(self._samples) > 2 and self._samples[-1].at - self._samples[1].at >= WINDOW_S:
            self._samples.popleft()

    def state(self) -> MachineState:
        """The machine now."""
        told: dict[str, float] = {"load_1m": os.getloadavg()[0]}
        with contextlib.suppress(OSError, ValueError, IndexError):
            told["cpu_pressure_pct"] = float(Path("/proc/pressure/cpu").read_text().split()[1].partition("=")[2])
        if len(self._samples) > 1:
            first, last = self._samples[0], self._samples[-1]
            span_s = last.at - first.at
            told["busy_cores"] = (last.busy_s - first.busy_s) / span_s
            told["steal_cores"] = (last.steal_s - first.steal_s) / span_s
            # clock ticks and ended children make small negative differences
            told["foreign_cores"] = max(0.0, told["busy_cores"] - (last.own_s - first.own_s) / span_s)
        return MachineState(**told)
