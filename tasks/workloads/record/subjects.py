"""What is recorded beside the machine: a control group of version 1 or 2, or a process and its descendants.

A subject goes by the name that people have for it: a process id, the path of a group, a systemd unit, the id or name
of a container, the uid of a pod. All of them are control groups but a process that shares its group with others."""

import contextlib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tasks.errors import NotFound, quoted
from tasks.machine import CGROUP_ROOT, ControlGroup, find_tool, root_group
from tasks.record.processes import descendants, processes
from tasks.workloads.record.counters import (
    BLOCK,
    NS,
    PROC,
    TICK_S,
    US,
    Measure,
    Parse,
    Source,
    gauge,
    machine_sources,
    owned,
    parse_fields,
    pressure_sources,
    rate,
)
from tasks.workloads.record.sampler import PARTNER_PREFIX
from tasks.workloads.telemetry import OWN_PREFIX

WHOLE = "machine"
UNIFIED = "unified"  # the version 2 tree beside version 1: pressure lives there
CONTROLLERS = ("cpu", "cpuacct", "memory", "blkio", "pids", UNIFIED)
CONTAINER, POD = re.compile(r"[0-9a-f]{64}"), re.compile(r"pod([0-9a-f]{8}(?:[-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12})")
UNIT_ENDINGS = (".service", ".scope", ".slice")
SHORT_ID = 12  # digits of a container's id that people write
ENGINES = ("docker", "podman", "nerdctl")
ENGINE_S = 10.0
# fields of /proc/PID/stat, counted from the one behind the name
STAT_FIELDS = {"minor": (7,), "major": (9,), "user": (11, 13), "sys": (12, 14), "threads": (17,)}
CPU_FIELDS = ((11, 12), (13, 14))  # of the process itself; of its ended children
KEYS = {  # in /proc/PID/status and /proc/PID/io
    "VmRSS": "rss", "RssAnon": "anon", "RssFile": "file", "RssShmem": "shmem",
    "read_bytes": "read_bytes", "write_bytes": "write_bytes", "syscr": "syscr", "syscw": "syscw",
}  # fmt: skip
KIB = 1024

USER, SYSTEM = "processor time of its programs", "processor time of the kernel on its behalf"
FAULTS, MAJOR_FAULTS = "accesses to pages that were not mapped yet", "those that had to wait for a disk"
MEMORY = (  # counter, what, key of version 1, key of version 2: in bytes
    ("cached", "pages of files", "total_cache", "file"),
    ("anonymous", "memory of programs that stands for no file", "total_rss", "anon"),
    ("shared", "shared memory and tmpfs", "total_shmem", "shmem"),
    ("mapped", "pages of files that its programs have mapped", "total_mapped_file", "file_mapped"),
    ("dirty", "changed and not yet written back", "total_dirty", "file_dirty"),
    ("writeback", "being written back", "total_writeback", "file_writeback"),
    ("active_anonymous", "the part of it used lately", "total_active_anon", "active_anon"),
    ("active_file", "pages of files used lately", "total_active_file", "active_file"),
    ("inactive_file", "pages of files not used lately", "total_inactive_file", "inactive_file"),
)
EVENTS = (  # counter, unit, what, key of version 1, key of version 2
    ("vm.page_faults", "faults", FAULTS, "total_pgfault", "pgfault"),
    ("vm.major_faults", "faults", MAJOR_FAULTS, "total_pgmajfault", "pgmajfault"),
    ("vm.charged_pages", "pages", "pages charged to it", "total_pgpgin", ""),
    ("vm.uncharged_pages", "pages", "pages no longer charged to it", "total_pgpgout", ""),
    ("vm.refaulted_pages", "pages", "pages of files read again soon after they were dropped",
     "total_workingset_refault_file", "workingset_refault_file"),
)  # fmt: skip
KERNEL = (
    gauge("memory.slab_bytes", "B", "objects of the kernel", "slab"),
    gauge("memory.kernel_stack_bytes", "B", "stacks of its threads in the kernel", "kernel_stack"),
    gauge("memory.socket_bytes", "B", "buffers of its sockets", "sock"),
)
DISK = (
    rate("disk.read_bytes", "B", "bytes read", "rbytes"),
    rate("disk.written_bytes", "B", "bytes written", "wbytes"),
    rate("disk.reads", "requests", "reads", "rios"),
    rate("disk.writes", "requests", "writes", "wios"),
)
PROCESS = (
    rate("cpu.user_cores", "core-seconds", USER, "user", scale=TICK_S),
    rate("cpu.system_cores", "core-seconds", SYSTEM, "sys", scale=TICK_S),
    rate("vm.page_faults", "faults", FAULTS, "minor", "major"),
    rate("vm.major_faults", "faults", MAJOR_FAULTS, "major"),
    gauge("memory.resident_bytes", "B", "memory that it has mapped, shared parts counted each time", "rss", scale=KIB),
    gauge("memory.anonymous_bytes", "B", "memory of programs that stands for no file", "anon", scale=KIB),
    gauge("memory.mapped_bytes", "B", "pages of files that its programs have mapped", "file", scale=KIB),
    gauge("memory.shared_bytes", "B", "shared memory and tmpfs", "shmem", scale=KIB),
    gauge("cpu.tasks", "tasks", "its processes and threads", "threads"),
    rate("disk.read_bytes", "B", "bytes read from disks", "read_bytes"),
    rate("disk.written_bytes", "B", "bytes on their way to disks", "write_bytes"),
    rate("io.read_calls", "calls", "system calls that read", "syscr"),
    rate("io.write_calls", "calls", "system calls that write", "syscw"),
)


def parse_value(text: str) -> dict[str, float]:
    """A file that holds one number."""
    return {"value": float(text)}


def parse_blkio(text: str, read_key: str, write_key: str) -> dict[str, float]:
    """Version 1: lines `MAJOR:MINOR Read N`; summed over devices. No line yet: nothing read or written."""
    totals = {read_key: 0.0, write_key: 0.0}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in ("Read", "Write"):
            totals[read_key if fields[1] == "Read" else write_key] += float(fields[2])
    return totals


def accounts_blocks(path: Path) -> bool:
    """Whether the topmost group of a hierarchy of version 1 has read or written: kernels that throttle nobody count
    nothing (since Linux 6.10), and 0 is then no answer."""
    tops = [folder / path.name for folder in (path.parent, *path.parent.parents) if (folder / path.name).is_file()]
    return bool(tops) and len(tops[-1].read_text().split()) > 2  # "Total 0"


def parse_io_stat(text: str) -> dict[str, float]:
    """Version 2: lines `MAJOR:MINOR rbytes=N wbytes=N …`; summed over devices."""
    totals = dict.fromkeys(("rbytes", "wbytes", "rios", "wios"), 0.0)
    for line in text.splitlines():
        for field in line.split()[1:]:
            key, _, value = field.partition("=")
            if key in totals:
                totals[key] += float(value)
    return totals


def _throttled(key: str, scale: float) -> tuple[Measure, ...]:
    return (
        rate("cpu.throttled", "times", "times that its quota ran out", "nr_throttled"),
        rate("cpu.throttled_s", "s", "time in which it had to wait for its quota", key, scale=scale),
    )


def _cores(user: str, system: str, scale: float) -> tuple[Measure, ...]:
    return (
        rate("cpu.user_cores", "core-seconds", USER, user, scale=scale),
        rate("cpu.system_cores", "core-seconds", SYSTEM, system, scale=scale),
    )


def _memory(version: int) -> tuple[Measure, ...]:
    gauges = [gauge(f"memory.{name}_bytes", "B", what, keys[version - 1]) for name, what, *keys in MEMORY]
    rates = [rate(name, unit, what, keys[version - 1]) for name, unit, what, *keys in EVENTS if keys[version - 1]]
    return (*gauges, *rates, *(KERNEL if version == 2 else ()))


BYTES = partial(parse_blkio, read_key="rbytes", write_key="wbytes")
REQUESTS = partial(parse_blkio, read_key="rios", write_key="wios")
V1_USER, V1_SYSTEM = _cores("value", "value", NS)
USED = (gauge("memory.used_bytes", "B", "all memory charged to it", "value"),)
TASKS = (gauge("cpu.tasks", "tasks", "its processes and threads", "value"),)
FILES: dict[int, tuple[tuple[str, str, Parse, tuple[Measure, ...]], ...]] = {  # version: controller, file, …
    1: (
        ("cpuacct", "cpuacct.usage_user", parse_value, (V1_USER,)),
        ("cpuacct", "cpuacct.usage_sys", parse_value, (V1_SYSTEM,)),
        ("cpu", "cpu.stat", parse_fields, _throttled("throttled_time", NS)),
        ("memory", "memory.usage_in_bytes", parse_value, USED),
        ("memory", "memory.stat", parse_fields, _memory(1)),
        ("blkio", "blkio.throttle.io_service_bytes_recursive", BYTES, DISK[:2]),
        ("blkio", "blkio.throttle.io_serviced_recursive", REQUESTS, DISK[2:]),
        ("pids", "pids.current", parse_value, TASKS),
    ),
    2: (
        ("cpu", "cpu.stat", parse_fields, (*_cores("user_usec", "system_usec", US), *_throttled("throttled_usec", US))),
        ("cpu", "memory.current", parse_value, USED),
        ("cpu", "memory.stat", parse_fields, _memory(2)),
        ("cpu", "io.stat", parse_io_stat, DISK),
        ("cpu", "pids.current", parse_value, TASKS),
    ),
}  # fmt: skip


def group_sources(group: ControlGroup, prefix: str = OWN_PREFIX) -> list[Source]:
    """What the kernel says of one control group, counters named `own.…`."""
    nowhere = Path("/nonexistent")
    sources = []
    for controller, file, parse, measures in FILES[group.version]:
        path = group.folders.get(controller, nowhere / controller) / file
        is_kept = controller != "blkio" or accounts_blocks(path)
        sources.append(Source(path, parse if is_kept else lambda _: {}, measures))
    pressed = "cpu" if group.version == 2 else UNIFIED
    sources += pressure_sources(group.folders.get(pressed, nowhere / pressed), "{resource}.pressure")
    for source in sources:
        source.measures = tuple(owned(measure, prefix) for measure in source.measures)
    return sources


class ProcessSource(Source):
    """The sum over a process and its living descendants, and the CPU time of those that have ended."""

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        super().__init__(proc / str(pid) / "stat", parse_fields, tuple(owned(measure) for measure in PROCESS))
        self.pid, self.proc = pid, proc

    def read(self) -> bytes | None:
        """Lines `key sum`; None once the process has ended."""
        totals: dict[str, int] = {}
        for pid in descendants(self.pid, self.proc):
            if not self._add(pid, totals) and pid == self.pid:
                return None
        return "".join(f"{key} {value}\n" for key, value in totals.items()).encode()

    def _add(self, pid: int, totals: dict[str, int]) -> bool:
        folder = self.proc / str(pid)
        try:
            _, fields = _stat(pid, self.proc)
        except OSError:
            return False
        values = {key: sum(int(fields[at]) for at in places) for key, places in STAT_FIELDS.items()}
        for name in ("status", "io"):
            with contextlib.suppress(OSError):
                pairs = (line.partition(":") for line in (folder / name).read_text().splitlines())
                values |= {KEYS[key]: int(value.split()[0]) for key, _, value in pairs if key in KEYS}
        for key, value in values.items():
            totals[key] = totals.get(key, 0) + value
        return True


def _stat(pid: int, proc: Path) -> tuple[str, list[str]]:
    """Name of a process, and the fields of its stat from the one behind the name. Raises OSError where it is gone."""
    name, _, fields = (proc / str(pid) / "stat").read_text().partition("(")[2].rpartition(")")
    return name, fields.split()


class ProcessTime(NamedTuple):
    """CPU seconds so far. of_children: of those that it started, that have ended and that it waited for."""

    program: str
    parent: int
    own_s: float
    of_children_s: float

    @property
    def all_s(self) -> float:
        """Its own, and that of its ended children."""
        return self.own_s + self.of_children_s


def shares_of_processes(seen: Sequence[Mapping[int, ProcessTime]]) -> dict[str, float]:
    """Shares of the CPU time between the first and the last of some moments by program, the largest first; none where
    nothing was taken. By process id.

    Of what has ended in between only its parent's account tells: it counts for the programs that began or ended
    meanwhile and were seen below that parent, by what they had taken when they were; alike where none had taken a tick,
    without those that wait for another; else for what the parent has started."""
    taken: dict[str, float] = {}
    before, after, everyone, gone_s = seen[0], seen[-1], dict[int, ProcessTime](), dict[int, float]()
    for moment in seen:
        everyone |= moment
    passing = {pid: process for pid, process in everyone.items() if pid not in before or pid not in after}
    above = {pid: _ancestors(process.parent, everyone) for pid, process in passing.items()}
    waiting = {process.parent for process in everyone.values()}
    for pid in before.keys() - after.keys():
        gone_s[before[pid].parent] = gone_s.get(before[pid].parent, 0.0) + before[pid].all_s
    for pid, now in after.items():
        then = before.get(pid, now._replace(own_s=0.0, of_children_s=0.0))
        taken[now.program] = taken.get(now.program, 0.0) + now.own_s - then.own_s
        ended_s = now.of_children_s - then.of_children_s - gone_s.get(pid, 0.0)
        below = [other for other in passing if ended_s > 0 and pid in above[other]]
        weights = {other: passing[other].own_s for other in below}
        if not any(weights.values()):
            weights = {other: 1.0 for other in below if other not in waiting}
        for other, weight in weights.items():
            name = passing[other].program
            taken[name] = taken.get(name, 0.0) + ended_s * weight / sum(weights.values())
        if ended_s > 0 and not weights:
            taken[f"started by {now.program}"] = taken.get(f"started by {now.program}", 0.0) + ended_s
    total = sum(s for s in taken.values() if s > 0)
    return {name: s / total for name, s in sorted(taken.items(), key=lambda part: -part[1]) if s > 0}


def _ancestors(pid: int, everyone: Mapping[int, ProcessTime]) -> set[int]:
    """A process, and all above it."""
    ancestors: set[int] = set()
    while pid in everyone and pid not in ancestors:
        ancestors.add(pid)
        pid = everyone[pid].parent
    return ancestors


@dataclass(frozen=True)
class Subject:
    """group and pid None: the machine alone. partner: a second group, whose counters are named `partner.…`."""

    group: ControlGroup | None = None
    pid: int | None = None
    partner: ControlGroup | None = None

    def name(self, root: Path = CGROUP_ROOT) -> str | None:
        """What it goes by however it was typed: the name of its container, which the next one may bear as well, the
        path of its group, else its process id; None: the machine."""
        if self.group is None:
            return None if self.pid is None else str(self.pid)
        controller, folder = next(iter(self.group.folders.items()))
        container = CONTAINER.search(folder.name)
        path = str(folder.relative_to(root if self.group.version == 2 else root / controller))
        return (_inspected("Name", container[0]).lstrip("/") if container else "") or path

    def sources(self, proc: Path = PROC, block: Path = BLOCK) -> list[Source]:
        """The files that tell of it, machine first; none is open yet."""
        sources = machine_sources(proc, block)
        if self.group:
            sources += group_sources(self.group)
        if self.partner:
            sources += group_sources(self.partner, PARTNER_PREFIX)
        if self.pid is not None:
            sources.append(ProcessSource(self.pid, proc))
        return sources

    def process_times(self, proc: Path = PROC) -> dict[int, ProcessTime]:
        """Of each of its living processes by id: those of its group, else of its tree, else of the machine."""
        if self.group:
            pids = self.group.processes()
        elif self.pid is not None:
            pids = set(descendants(self.pid, proc))
        else:
            pids = set(processes(proc))
        times = {}
        for pid in sorted(pids):
            with contextlib.suppress(OSError):
                name, fields = _stat(pid, proc)
                own_s, of_children_s = (sum(int(fields[at]) for at in places) * TICK_S for places in CPU_FIELDS)
                times[pid] = ProcessTime(name, int(fields[1]), own_s, of_children_s)
        return times


class Programs(Source):
    """Which programs a subject runs, at each reading; read beside its counters, it gives none."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(PROC, parse_fields, ())
        self.subject, self.seen = subject, list[dict[int, ProcessTime]]()

    def read(self) -> None:
        """Note what each of its processes has taken so far."""
        self.seen.append(self.subject.process_times())

    @property
    def shares(self) -> dict[str, float]:
        """Of the processor time between the first and the last reading."""
        return shares_of_processes(self.seen) if self.seen else {}


def subject_of(name: str, *, root: Path = CGROUP_ROOT, proc: Path = PROC) -> Subject:
    """`machine`, a process id, or a control group by its path, unit, container or pod.

    A process whose group holds nothing but it and its descendants is that group: its counters say more.
    Raises NotFound where there is no such process or group, or where several go by that name."""
    if name in ("", WHOLE):
        return Subject()
    if not re.fullmatch(r"\d+", name) or len(name) > SHORT_ID:
        return Subject(group=find_group(name, root))
    if not (proc / name).is_dir():
        raise NotFound(f"{name}: no such process; expected the id of one that runs (see ps)")
    group = group_of_process(int(name), root, proc)
    return Subject(group=group) if group else Subject(pid=int(name))


def group_of_process(pid: int, root: Path = CGROUP_ROOT, proc: Path = PROC) -> ControlGroup | None:
    """The control group of a process, if nothing else is in it or below it; None otherwise."""
    base = root_group(root, CONTROLLERS)
    if base is None:
        return None
    paths: dict[str, str] = {}  # by controller; of version 2, which names none, by an empty name
    with contextlib.suppress(OSError):
        for line in (proc / str(pid) / "cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            paths |= dict.fromkeys(names.split(","), path)
    inner = paths.get("" if base.version == 2 else "cpuacct", "/").strip("/")
    group = _group_at(base, inner) if inner else None
    if group is None:
        return None
    inside = group.processes()
    return group if pid in inside and inside <= set(descendants(pid, proc)) else None


def find_group(name: str, root: Path = CGROUP_ROOT) -> ControlGroup:
    """A control group by its path below the root, such as `system.slice/nginx.service`, by its systemd unit, by the id
    (12 digits are enough) or name of its container, or by the uid of its pod. Raises NotFound."""
    base = root_group(root, CONTROLLERS)
    if base is not None:
        if group := _group_at(base, name.strip("/")):
            return group
        paths = _paths_called(name, base) or _paths_called(_inspected("Id", name), base)
        if len(paths) > 1:
            raise NotFound(f"{name}: several control groups are called so ({quoted(paths)}); expected the path of one")
        if paths and (group := _group_at(base, paths[0])):
            return group
    raise NotFound(
        f"{name}: no such control group, unit, container or pod below {root}; expected the path of a group, as in "
        "/proc/PID/cgroup, or one of these names"
    )


def groups_at_work(root: Path = CGROUP_ROOT) -> dict[str, ControlGroup]:
    """The control groups that hold processes, by path: units and containers as a whole, elsewhere the innermost group.

    None where there are no control groups."""
    base = root_group(root, CONTROLLERS)
    if base is None:
        return {}
    top = base.folders["cpu"]

    def inside(folder: Path) -> list[Path]:
        children = sorted(child for child in folder.iterdir() if child.is_dir())
        is_whole = folder.name.endswith(UNIT_ENDINGS[:2]) or CONTAINER.search(folder.name)
        inner_folders = [] if is_whole and folder != top else [inner for child in children for inner in inside(child)]
        if not inner_folders and folder != top:
            for procs in folder.rglob("cgroup.procs"):
                with contextlib.suppress(OSError):
                    if procs.read_text().strip():
                        return [folder]
        return inner_folders

    paths = [str(folder.relative_to(top)) for folder in inside(top)]
    return {path: group for path in paths if (group := _group_at(base, path))}


def _group_at(base: ControlGroup, inner: str) -> ControlGroup | None:
    there = {key: folder / inner for key, folder in base.folders.items() if inner and (folder / inner).is_dir()}
    return ControlGroup(base.version, there) if there and (base.version == 1 or "cpu" in there) else None


def _paths_called(name: str, base: ControlGroup) -> list[str]:
    """The paths of the groups that go by this name, without those inside one of them."""
    paths: list[str] = []
    tops = dict.fromkeys(base.folders[key] for key in ("cpu", "memory", UNIFIED) if key in base.folders)
    for top in tops if name else ():
        for folder, inside, _ in os.walk(top):
            called = sorted(child for child in inside if _is_called(child, name))
            paths += [str((Path(folder) / child).relative_to(top)) for child in called]
            inside[:] = [child for child in inside if child not in called]
    return list(dict.fromkeys(paths))


def _is_called(folder: str, name: str) -> bool:
    if name in (folder, *(folder.removesuffix(ending) for ending in UNIT_ENDINGS)):
        return True
    if container := CONTAINER.search(folder):
        return len(name) >= SHORT_ID and container[0].startswith(name)
    pod = POD.search(folder)
    return pod is not None and pod[1].replace("_", "").replace("-", "") == name.removeprefix("pod").replace("-", "")


def _inspected(field: str, container: str) -> str:
    """What an engine on this machine says of a container of this name or id; empty where none knows it."""
    for engine in filter(None, (find_tool(program) for program in ENGINES)):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            command = [engine, "inspect", "--format", f"{{{{.{field}}}}}", "--", container]
            inspected = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ENGINE_S)
            if inspected.returncode == 0 and (said := inspected.stdout.strip()):
                return said
    return ""
