"""What is recorded: always the whole machine, and beside it, if asked, one control group or one process."""

import re
from dataclasses import dataclass
from pathlib import Path

from tasks.errors import NotFound
from tasks.machine_groups import ROOT, Group, root_group
from tasks.workloads.record.counters_cpu import cpu_sources
from tasks.workloads.record.counters_disk import disk_sources
from tasks.workloads.record.counters_group import UNIFIED, group_sources
from tasks.workloads.record.counters_irq import interrupt_sources
from tasks.workloads.record.counters_memory import memory_sources
from tasks.workloads.record.counters_net import net_sources
from tasks.workloads.record.counters_pressure import pressure_sources
from tasks.workloads.record.counters_process import ProcessSource
from tasks.workloads.record.measures import Source
from tasks.workloads.record.perf_events import PARTNER_PREFIX

CONTROLLERS = ("cpu", "cpuacct", "memory", "blkio", "pids", UNIFIED)
PROC, BLOCK = Path("/proc"), Path("/sys/block")
WHOLE = "machine"


@dataclass(frozen=True)
class Subject:
    """group and pid None: the machine alone. partner: a second group, whose counters are named `partner.…`."""

    group: Group | None = None
    pid: int | None = None
    partner: Group | None = None

    def sources(self, proc: Path = PROC, block: Path = BLOCK) -> list[Source]:
        """The files that tell of it, machine first; none is open yet."""
        found = machine_sources(proc, block)
        if self.group:
            found += group_sources(self.group)
        if self.partner:
            found += group_sources(self.partner, PARTNER_PREFIX)
        if self.pid is not None:
            found.append(ProcessSource(self.pid, proc))
        return found


def machine_sources(proc: Path = PROC, block: Path = BLOCK) -> list[Source]:
    """The files that tell of the whole machine."""
    return [
        *cpu_sources(proc),
        *memory_sources(proc),
        *disk_sources(proc, block),
        *net_sources(proc),
        *pressure_sources(proc / "pressure"),
        *interrupt_sources(proc),
    ]


def subject_of(asked: str, *, root: Path = ROOT, proc: Path = PROC) -> Subject:
    """`machine`, a process id, or the path of a control group below the root of the tree.

    Raises NotFound where there is no such process or group."""
    if asked in ("", WHOLE):
        return Subject()
    if re.fullmatch(r"\d+", asked):
        if not (proc / asked).is_dir():
            raise NotFound(f"{asked}: no such process; expected the id of one that runs (see ps)")
        return Subject(pid=int(asked))
    return Subject(group=find_group(asked, root))


def find_group(name: str, root: Path = ROOT) -> Group:
    """A control group by its path below the root, such as `system.slice/nginx.service`. Raises NotFound."""
    base = root_group(root, CONTROLLERS)
    inner = name.strip("/")
    there = {key: folder / inner for key, folder in base.folders.items() if (folder / inner).is_dir()} if base else {}
    if base is None or not there or (base.version == 2 and "cpu" not in there):
        raise NotFound(f"{name}: no such control group below {root}; expected the path of one, as in /proc/PID/cgroup")
    return Group(base.version, there)
