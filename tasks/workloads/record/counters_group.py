"""Counters of one control group, version 1 or 2, under the same names where they mean the same."""

from collections.abc import Callable, Mapping
from pathlib import Path

from tasks.machine_groups import Group
from tasks.workloads.record.counters_memory import parse_fields
from tasks.workloads.record.counters_pressure import pressure_sources
from tasks.workloads.record.measures import Measure, Parse, Source, gauge, owned, rate
from tasks.workloads.telemetry import OWN_PREFIX

NS, US = 1e-9, 1e-6
PAGE = 4096
UNIFIED = "unified"  # the version 2 tree beside version 1: pressure lives there

USER = "processor time of its programs"
SYSTEM = "processor time of the kernel on its behalf"
THROTTLED = "time in which it had to wait for its quota"

V1_CPUACCT = (
    (f"cpuacct.usage_{side}", "value", rate(f"cpu.{side2}_cores", "core-seconds", what, "value", scale=NS))
    for side, side2, what in (("user", "user", USER), ("sys", "system", SYSTEM))
)
V1_CPU = (
    rate("cpu.throttled", "times", "times that its quota ran out", "nr_throttled"),
    rate("cpu.throttled_s", "s", THROTTLED, "throttled_time", scale=NS),
)
V2_CPU = (
    rate("cpu.user_cores", "core-seconds", USER, "user_usec", scale=US),
    rate("cpu.system_cores", "core-seconds", SYSTEM, "system_usec", scale=US),
    rate("cpu.throttled", "times", "times that its quota ran out", "nr_throttled"),
    rate("cpu.throttled_s", "s", THROTTLED, "throttled_usec", scale=US),
)
MEMORY_WHAT: Mapping[str, tuple[str, str, str]] = {  # ours: (what, key of version 1, key of version 2), in bytes
    "memory.cached_bytes": ("pages of files", "total_cache", "file"),
    "memory.anonymous_bytes": ("memory of programs that stands for no file", "total_rss", "anon"),
    "memory.shared_bytes": ("shared memory and tmpfs", "total_shmem", "shmem"),
    "memory.mapped_bytes": ("pages of files that its programs have mapped", "total_mapped_file", "file_mapped"),
    "memory.dirty_bytes": ("changed and not yet written back", "total_dirty", "file_dirty"),
    "memory.writeback_bytes": ("being written back", "total_writeback", "file_writeback"),
    "memory.active_anonymous_bytes": ("the part of it used lately", "total_active_anon", "active_anon"),
    "memory.active_file_bytes": ("pages of files used lately", "total_active_file", "active_file"),
    "memory.inactive_file_bytes": ("pages of files not used lately", "total_inactive_file", "inactive_file"),
}
FAULTS = {
    "vm.page_faults": ("accesses to pages that were not mapped yet", "total_pgfault", "pgfault"),
    "vm.major_faults": ("those that had to wait for a disk", "total_pgmajfault", "pgmajfault"),
    "vm.charged_pages": ("pages charged to it", "total_pgpgin", ""),
    "vm.uncharged_pages": ("pages no longer charged to it", "total_pgpgout", ""),
    "vm.refaulted_pages": (
        "pages of files read again soon after they were dropped",
        "total_workingset_refault_file",
        "workingset_refault_file",
    ),
}
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
USED = gauge("memory.used_bytes", "B", "all memory charged to it", "value")
TASKS = gauge("cpu.tasks", "tasks", "its processes and threads", "value")


def parse_value(text: str) -> dict[str, float]:
    """A file that holds one number."""
    return {"value": float(text)}


def parse_blkio(read_key: str, write_key: str) -> Callable[[str], dict[str, float]]:
    """Version 1: lines `MAJOR:MINOR Read N`; summed over devices. No line yet: nothing read or written."""

    def parse(text: str) -> dict[str, float]:
        found = {read_key: 0.0, write_key: 0.0}
        for line in text.splitlines():
            fields = line.split()
            if len(fields) == 3 and fields[1] in ("Read", "Write"):
                found[read_key if fields[1] == "Read" else write_key] += float(fields[2])
        return found

    return parse


def parse_io_stat(text: str) -> dict[str, float]:
    """Version 2: lines `MAJOR:MINOR rbytes=N wbytes=N …`; summed over devices."""
    found = dict.fromkeys(("rbytes", "wbytes", "rios", "wios"), 0.0)
    for line in text.splitlines():
        for field in line.split()[1:]:
            key, _, value = field.partition("=")
            if key in found:
                found[key] += float(value)
    return found


def _memory(version: int) -> tuple[Measure, ...]:
    gauges = [gauge(name, "B", told[0], told[version]) for name, told in MEMORY_WHAT.items()]
    rates = [
        rate(name, name.rpartition("_")[2], told[0], told[version]) for name, told in FAULTS.items() if told[version]
    ]
    return (*gauges, *rates, *(KERNEL if version == 2 else ()))


V1_FILES: tuple[tuple[str, str, Parse, tuple[Measure, ...]], ...] = (
    *(("cpuacct", file, parse_value, (measure,)) for file, _, measure in V1_CPUACCT),
    ("cpu", "cpu.stat", parse_fields, V1_CPU),
    ("memory", "memory.usage_in_bytes", parse_value, (USED,)),
    ("memory", "memory.stat", parse_fields, _memory(1)),
    ("blkio", "blkio.throttle.io_service_bytes_recursive", parse_blkio("rbytes", "wbytes"), DISK[:2]),
    ("blkio", "blkio.throttle.io_serviced_recursive", parse_blkio("rios", "wios"), DISK[2:]),
    ("pids", "pids.current", parse_value, (TASKS,)),
)
V2_FILES: tuple[tuple[str, Parse, tuple[Measure, ...]], ...] = (
    ("cpu.stat", parse_fields, V2_CPU),
    ("memory.current", parse_value, (USED,)),
    ("memory.stat", parse_fields, _memory(2)),
    ("io.stat", parse_io_stat, DISK),
    ("pids.current", parse_value, (TASKS,)),
)


def group_sources(group: Group, prefix: str = OWN_PREFIX) -> list[Source]:
    """What the kernel says of one control group, counters named `own.…`."""
    if group.version == 2:
        folder = group.folders["cpu"]
        found = [Source(folder / file, parse, measures) for file, parse, measures in V2_FILES]
        found += pressure_sources(folder, "{resource}.pressure")
    else:
        nowhere = Path("/nonexistent")
        found = [
            Source(group.folders.get(controller, nowhere / controller) / file, parse, measures)
            for controller, file, parse, measures in V1_FILES
        ]
        found += pressure_sources(group.folders.get(UNIFIED, nowhere / UNIFIED), "{resource}.pressure")
    for source in found:
        source.measures = tuple(owned(measure, prefix) for measure in source.measures)
    return found
