"""What each node does, sampled once a second from the first execution of a campaign to its last."""

import contextlib
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from tasks.machine import ControlGroup
from tasks.nodes.execution import SampledMetric
from tasks.nodes.record.link import enter
from tasks.nodes.record.node_place import NodePlace
from tasks.workloads.record.counters import (
    NET_FIELDS,
    RESOURCES,
    parse_devices,
    parse_fields,
    parse_pressure,
    whole_disks,
)
from tasks.workloads.record.sampler import first_in_line

PROC, BLOCK = Path("/proc"), Path("/sys/block")
MS = 1e-3
US = 1e-6
PERCENT = 100.0
READ_BYTES = 1 << 16
SIDES = ("received", "sent")
NO_DEVICE = {f"other.{name}": 0.0 for name in NET_FIELDS}  # "other": than the loopback one
Reading = dict[str, float]
NAN = float("nan")
DIGITS = 5  # of a sample: more than its meaning, and small in a file


@dataclass(frozen=True)
class NodeMetric:
    """One metric, in the unit: a counter's growth times the scale, a second; a gauge as it is where the scale is 0; or
    the share of errors among the packets of a side of the network, where the key is that side."""

    name: str
    unit: str
    key: str
    scale: float = 0.0

    def of(self, before: Mapping[str, float], after: Mapping[str, float], lasted_s: float) -> float:
        """Its value from two readings and the seconds between; NaN where they do not say."""
        if self.key in SIDES:
            packets, errors = (_grown(before, after, f"other.{self.key}_{what}") for what in ("packets", "errors"))
            return errors / packets * PERCENT if packets > 0 else packets  # none of none, or nobody knows
        return _grown(before, after, self.key) * self.scale / lasted_s if self.scale else after.get(self.key, NAN)


def _grown(before: Mapping[str, float], after: Mapping[str, float], key: str) -> float:
    """The growth of a counter; NaN if it shrank, which means that it was reset."""
    grown = after.get(key, NAN) - before.get(key, NAN)
    return grown if grown >= 0 else NAN


METRICS = (
    NodeMetric("cpu_busy", "%", "cpu.busy_share_s", PERCENT),
    NodeMetric("cpu_steal", "%", "cpu.steal_share_s", PERCENT),
    NodeMetric("load_1m", "tasks", "load_1m"),
    NodeMetric("memory_used", "%", "memory_used"),
    NodeMetric("memory_swap", "%", "memory_swap"),
    NodeMetric("disk_read_util", "%", "disk.read_s", PERCENT),
    NodeMetric("disk_write_util", "%", "disk.write_s", PERCENT),
    NodeMetric("disk_io_util", "%", "disk.busy_s", PERCENT),
    NodeMetric("disk_read_bytes", "B/s", "disk.read_bytes", 1),
    NodeMetric("disk_write_bytes", "B/s", "disk.write_bytes", 1),
    NodeMetric("filesystem_util", "%", "filesystem_util"),
    NodeMetric("network_in_bytes", "B/s", "other.received_bytes", 1),
    NodeMetric("network_out_bytes", "B/s", "other.sent_bytes", 1),
    NodeMetric("network_in_errors", "%", "received"),
    NodeMetric("network_out_errors", "%", "sent"),
    *(
        NodeMetric(f"pressure_{resource}_{kind}", "%", f"pressure.{resource}.{kind}", US * PERCENT)
        for resource in RESOURCES
        for kind in ("some", "full")
    ),
)


def machine_reading(folder: Path) -> Reading:
    """What the whole machine says. folder: on the file system that is measured."""
    reading: Reading = {}
    cores = os.cpu_count() or 1
    times = psutil.cpu_times()
    # the kernel counts guests' time among that of users too
    not_busy = ("idle", "iowait", "guest", "guest_nice", "steal")
    reading["cpu.busy_share_s"] = (sum(times) - sum(getattr(times, state, 0.0) for state in not_busy)) / cores
    reading["cpu.steal_share_s"] = getattr(times, "steal", 0.0) / cores
    reading["load_1m"] = os.getloadavg()[0]
    memory = psutil.virtual_memory()
    reading["memory_used"] = (memory.total - memory.available) / memory.total * PERCENT
    swap = psutil.swap_memory()
    if swap.total:
        reading["memory_swap"] = swap.used / swap.total * PERCENT
    disks = psutil.disk_io_counters(perdisk=True) or {}
    ours = [disks[name] for name in whole_disks(BLOCK) if name in disks]
    if ours:
        for name in ("read_bytes", "write_bytes"):
            reading[f"disk.{name}"] = float(sum(getattr(disk, name) for disk in ours))
        for name, field in (("read_s", "read_time"), ("write_s", "write_time"), ("busy_s", "busy_time")):
            reading[f"disk.{name}"] = sum(getattr(disk, field, 0) for disk in ours) * MS
    used = psutil.disk_usage(str(folder))
    reading["filesystem_util"] = used.used / used.total * PERCENT
    return reading | _pressure(PROC / "pressure", "{}")


def _pressure(folder: Path, pattern: str) -> Reading:
    reading: Reading = {}
    for resource in RESOURCES:
        with contextlib.suppress(OSError, ValueError, IndexError):
            pressures = parse_pressure((folder / pattern.format(resource)).read_text())
            reading |= {f"pressure.{resource}.{kind}": lost for kind, lost in pressures.items()}
    return reading


class NodeReader:
    """Reads one node. Its network's counters are a file that was opened inside its namespace, and stays open."""

    def __init__(self, place: NodePlace) -> None:
        self.place = place
        self._net = _opened(place.link.node if place.link else "")

    def read(self, machine: Reading) -> Reading:
        """What the node says. machine: the reading of the whole machine, for all that is not the node's own."""
        reading = dict(machine)
        groups = self.place.groups
        if groups:
            reading |= self._of_group(groups.node)
        if self._net is not None:
            with contextlib.suppress(OSError, ValueError, IndexError):
                reading |= NO_DEVICE | parse_devices(os.pread(self._net, READ_BYTES, 0).decode())
        return reading

    def _of_group(self, group: ControlGroup) -> Reading:
        reading: Reading = {}
        with contextlib.suppress(OSError, ValueError):
            reading["cpu.busy_share_s"] = group.usage_s() / self.place.cpu_cores
        if "memory" in group.folders:
            with contextlib.suppress(OSError, ValueError):
                memory = parse_fields((group.folders["memory"] / "memory.stat").read_text())
                used = memory["anon"] if group.version == 2 else memory["total_rss"]
                limit = self.place.params.memory_mib * 1024 * 1024 or psutil.virtual_memory().total
                reading["memory_used"] = used / limit * PERCENT
        folder = group.folders["cpu"] if group.version == 2 else group.folders.get("unified")
        return reading | (_pressure(folder, "{}.pressure") if folder else {})

    def close(self) -> None:
        """Close its file."""
        if self._net is not None:
            os.close(self._net)
            self._net = None


def _opened(namespace: str) -> int | None:
    """/proc/net/dev of a namespace, empty for the machine's: opened by a thread that moves there and ends."""
    opened: list[int] = []

    def open_there() -> None:
        with contextlib.suppress(OSError):
            if namespace:
                enter(namespace)
            opened.append(os.open(PROC / "thread-self" / "net" / "dev", os.O_RDONLY | os.O_CLOEXEC))

    thread = threading.Thread(target=open_there)
    thread.start()
    thread.join()
    return opened[0] if opened else None


class NodeSampler(threading.Thread):
    """Readings of each node on a fixed grid of the monotonic clock, until they are forgotten."""

    def __init__(self, readers: Mapping[str, NodeReader], folder: Path, *, interval_s: float) -> None:
        super().__init__(name="node metrics", daemon=True)
        self.readers, self.folder, self.interval_s = readers, folder, interval_s
        self.taken: list[tuple[float, dict[str, Reading]]] = []
        self.cpu_s = 0.0
        self.began_s = time.monotonic()
        self._stopping = threading.Event()
        self._lock = threading.Lock()

    def run(self) -> None:
        """Sample until stopped. A sample that is late is taken, and those that it made impossible are not."""
        with first_in_line():
            due_s = time.monotonic()
            while not self._stopping.wait(max(0.0, due_s - time.monotonic())):
                self.take()
                due_s += self.interval_s
                while due_s <= time.monotonic():
                    due_s += self.interval_s
        self.cpu_s = time.thread_time()

    def take(self) -> None:
        """Read every node once."""
        at_s = time.monotonic()
        machine = machine_reading(self.folder)
        readings = {node: reader.read(machine) for node, reader in self.readers.items()}
        with self._lock:
            self.taken.append((at_s, readings))
        if threading.current_thread() is self:
            self.cpu_s = time.thread_time()

    def stop(self) -> None:
        """End the thread and close its files."""
        self._stopping.set()
        if self.ident is not None:
            self.join()
        for reader in self.readers.values():
            reader.close()

    @property
    def cores(self) -> float:
        """Its own cost so far: CPU time over time."""
        return self.cpu_s / max(time.monotonic() - self.began_s, self.interval_s)

    def covers(self, end_s: float) -> bool:
        """Whether a sample was taken at this time or later."""
        with self._lock:
            return bool(self.taken) and self.taken[-1][0] >= end_s

    def forget(self, before_s: float) -> None:
        """Drop what was sampled before a time, but for the two samples that growth until then is counted from."""
        with self._lock:
            n_before = sum(at_s < before_s for at_s, _ in self.taken)
            del self.taken[: max(0, n_before - 2)]

    def between(self, node: str, begin_s: float, end_s: float, zero_s: float) -> tuple[SampledMetric, ...]:
        """The node's metrics at the samples from begin_s to end_s, and one beyond each end. zero_s: where at_s is 0.

        A metric that no sample has is left out; one that some lack is NaN there."""
        with self._lock:
            taken = [(at_s, readings[node]) for at_s, readings in self.taken]
        inside = [place for place, (at_s, _) in enumerate(taken) if begin_s <= at_s <= end_s]
        first = max(1, (inside[0] if inside else len(taken)) - 1)
        last = min(len(taken), (inside[-1] + 2) if inside else 0)
        pairs = [(taken[place - 1], taken[place]) for place in range(first, last)]
        at_s = np.array([after_s - zero_s for _, (after_s, _) in pairs]).round(3)
        series = []
        for metric in METRICS:
            values = np.array([metric.of(a, b, b_s - a_s) for (a_s, a), (b_s, b) in pairs], dtype=float)
            if len(values) and not np.isnan(values).all():
                short = np.array([float(f"{value:.{DIGITS}g}") for value in values])
                series.append(SampledMetric(metric.name, metric.unit, at_s, short))
        return tuple(series)
