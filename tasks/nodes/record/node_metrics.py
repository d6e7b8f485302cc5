"""What a node does, read once a second: processors, memory, disk, network, errors, pressure, load.

Processors, memory, network and pressure are the node's own, of its control group and its namespace, where it has these;
disk, file system, swap, load and steal are the machine's, of which one node at a time makes use. Names and meanings
follow Perona's thirteen node metrics; what it lacks (pressure, load, steal) stands beside them."""

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from tasks.machine_groups import Group
from tasks.nodes.record.namespaces import enter
from tasks.nodes.record.place import Place
from tasks.workloads.record.counters_disk import whole_disks
from tasks.workloads.record.counters_memory import parse_fields
from tasks.workloads.record.counters_pressure import RESOURCES, parse_pressure

PROC, BLOCK = Path("/proc"), Path("/sys/block")
LOOPBACK = "lo"
MS = 1e-3
US = 1e-6
PERCENT = 100.0
READ_BYTES = 1 << 16
NET = {"in": (0, 1, 2), "out": (8, 9, 10)}  # bytes, packets, errors: columns of /proc/net/dev
Reading = dict[str, float]


@dataclass(frozen=True)
class NodeMetric:
    """One metric. of: its value from two readings and the seconds between; NaN where they do not say."""

    name: str
    unit: str
    of: Callable[[Mapping[str, float], Mapping[str, float], float], float]


def _gauge(name: str, unit: str) -> NodeMetric:
    return NodeMetric(name, unit, lambda _, after, __: after.get(name, float("nan")))


def _rate(name: str, unit: str, key: str, scale: float = 1.0) -> NodeMetric:
    return NodeMetric(name, unit, lambda before, after, lasted_s: _grown(before, after, key) * scale / lasted_s)


def _errors(name: str, side: str) -> NodeMetric:
    def share(before: Mapping[str, float], after: Mapping[str, float], _: float) -> float:
        packets, errors = (_grown(before, after, f"net.{side}.{what}") for what in ("packets", "errors"))
        return errors / packets * PERCENT if packets > 0 else packets  # none of none, or nobody knows

    return NodeMetric(name, "%", share)


def _grown(before: Mapping[str, float], after: Mapping[str, float], key: str) -> float:
    """The growth of a counter; NaN if it shrank, which means that it was reset."""
    grown = after.get(key, float("nan")) - before.get(key, float("nan"))
    return grown if grown >= 0 else float("nan")


METRICS = (
    _rate("cpu_busy", "%", "cpu.busy_share_s", PERCENT),
    _rate("cpu_steal", "%", "cpu.steal_share_s", PERCENT),
    _gauge("load_1m", "tasks"),
    _gauge("memory_used", "%"),
    _gauge("memory_swap", "%"),
    _rate("disk_read_util", "%", "disk.read_s", PERCENT),
    _rate("disk_write_util", "%", "disk.write_s", PERCENT),
    _rate("disk_io_util", "%", "disk.busy_s", PERCENT),
    _rate("disk_read_bytes", "B/s", "disk.read_bytes"),
    _rate("disk_write_bytes", "B/s", "disk.write_bytes"),
    _gauge("filesystem_util", "%"),
    _rate("network_in_bytes", "B/s", "net.in.bytes"),
    _rate("network_out_bytes", "B/s", "net.out.bytes"),
    _errors("network_in_errors", "in"),
    _errors("network_out_errors", "out"),
    *(
        _rate(f"pressure_{resource}_{kind}", "%", f"pressure.{resource}.{kind}", US * PERCENT)
        for resource in RESOURCES
        for kind in ("some", "full")
    ),
)


def machine_reading(folder: Path) -> Reading:
    """What the whole machine says. folder: on the file system that is measured."""
    found: Reading = {}
    cores = os.cpu_count() or 1
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    # the kernel counts guests' time among that of users too
    found["cpu.busy_share_s"] = (sum(times) - idle - _guests(times) - getattr(times, "steal", 0.0)) / cores
    found["cpu.steal_share_s"] = getattr(times, "steal", 0.0) / cores
    found["load_1m"] = os.getloadavg()[0]
    memory = psutil.virtual_memory()
    found["memory_used"] = (memory.total - memory.available) / memory.total * PERCENT
    swap = psutil.swap_memory()
    if swap.total:
        found["memory_swap"] = swap.used / swap.total * PERCENT
    disks = psutil.disk_io_counters(perdisk=True) or {}
    ours = [disks[name] for name in whole_disks(BLOCK) if name in disks]
    if ours:
        for name in ("read_bytes", "write_bytes"):
            found[f"disk.{name}"] = float(sum(getattr(disk, name) for disk in ours))
        for name, field in (("read_s", "read_time"), ("write_s", "write_time"), ("busy_s", "busy_time")):
            found[f"disk.{name}"] = sum(getattr(disk, field, 0) for disk in ours) * MS
    used = psutil.disk_usage(str(folder))
    found["filesystem_util"] = used.used / used.total * PERCENT
    return found | _pressure(PROC / "pressure", "{}")


def _guests(times: object) -> float:
    return float(getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0))


def _pressure(folder: Path, pattern: str) -> Reading:
    found: Reading = {}
    for resource in RESOURCES:
        with contextlib.suppress(OSError, ValueError, IndexError):
            told = parse_pressure((folder / pattern.format(resource)).read_text())
            found |= {f"pressure.{resource}.{kind}": lost for kind, lost in told.items()}
    return found


class NodeReader:
    """Reads one node. Its network's counters are a file that was opened inside its namespace, and stays open."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._net = _opened_inside(place.link.node) if place.link else _opened(PROC / "net" / "dev")

    def read(self, machine: Reading) -> Reading:
        """What the node says. machine: the reading of the whole machine, for all that is not the node's own."""
        found = dict(machine)
        groups = self.place.groups
        if groups:
            found |= self._own(groups.node)
        if self._net is not None:
            with contextlib.suppress(OSError, ValueError, IndexError):
                found |= parse_devices(os.pread(self._net, READ_BYTES, 0).decode())
        return found

    def _own(self, group: Group) -> Reading:
        found: Reading = {}
        with contextlib.suppress(OSError, ValueError):
            found["cpu.busy_share_s"] = group.usage_s() / self.place.cpu_cores
        if "memory" in group.folders:
            with contextlib.suppress(OSError, ValueError):
                told = parse_fields((group.folders["memory"] / "memory.stat").read_text())
                used = told["anon"] if group.version == 2 else told["total_rss"]
                limit = self.place.params.memory_mib * 1024 * 1024 or psutil.virtual_memory().total
                found["memory_used"] = used / limit * PERCENT
        folder = group.folders["cpu"] if group.version == 2 else group.folders.get("unified")
        return found | (_pressure(folder, "{}.pressure") if folder else {})

    def close(self) -> None:
        """Close its file."""
        if self._net is not None:
            os.close(self._net)
            self._net = None


def parse_devices(text: str) -> Reading:
    """/proc/net/dev: bytes, packets and errors of all devices but the loopback one."""
    found = {f"net.{side}.{what}": 0.0 for side in NET for what in ("bytes", "packets", "errors")}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if not colon or name.strip() == LOOPBACK:
            continue
        fields = rest.split()
        for side, places in NET.items():
            for what, at in zip(("bytes", "packets", "errors"), places, strict=True):
                found[f"net.{side}.{what}"] += float(fields[at])
    return found


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _opened_inside(namespace: str) -> int | None:
    """/proc/net/dev of a namespace: opened by a thread that moves there and ends."""
    opened: list[int | None] = []

    def open_there() -> None:
        with contextlib.suppress(OSError):
            enter(namespace)
            opened.append(_opened(PROC / "thread-self" / "net" / "dev"))

    thread = threading.Thread(target=open_there)
    thread.start()
    thread.join()
    return opened[0] if opened else None
