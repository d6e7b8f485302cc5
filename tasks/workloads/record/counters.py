"""Counters of the kernel: what a counter is made of, and what each file of /proc holds of the whole machine.

A measure is a file, keys in it, and whether they grow or go up and down; the files are tables of counter, unit, meaning
and keys."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from io import FileIO
from itertools import takewhile
from pathlib import Path

import numpy as np

from tasks.workloads.telemetry import OWN_PREFIX, Counter, FloatArray

Parse = Callable[[str], Mapping[str, float]]
PROC, BLOCK = Path("/proc"), Path("/sys/block")
NS, US, MS = 1e-9, 1e-6, 1e-3
KIB, SECTOR = 1024, 512
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
ZONES = ("dma", "dma32", "normal", "movable", "device")
NO_DISKS = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd")  # partitions of others, or memory: they count twice
DISK_FIELDS = (
    "reads", "merged_reads", "read_sectors", "read_ms", "writes", "merged_writes", "written_sectors", "write_ms",
    "in_flight", "busy_ms", "waited_ms", "discards", "merged_discards", "discarded_sectors", "discard_ms", "flushes",
    "flush_ms",
)  # fmt: skip
NET_FIELDS = {  # columns of /proc/net/dev
    "received_bytes": 0, "received_packets": 1, "received_errors": 2, "sent_bytes": 8, "sent_packets": 9,
    "sent_errors": 10,
}  # fmt: skip
DROPS = (2, 3, 10, 11)  # errors and drops, both ways
LOOPBACK = "lo"
DEVICES = "devices"  # all lines of /proc/interrupts that a number names
RESOURCES = {"cpu": "a processor", "io": "a disk", "memory": "memory"}
TIMES = {
    "user": "programs at usual priority",
    "nice": "programs at low priority",
    "system": "the kernel on behalf of programs",
    "idle": "nothing",
    "iowait": "nothing, while a task waited for a disk",
    "irq": "device interrupts",
    "softirq": "deferred work of interrupts",
    "steal": "other guests of the hypervisor",
}


@dataclass(frozen=True)
class Measure:
    """One counter, and how it comes out of its file: the sum of the keys that are there, times scale.

    A rate is the difference of two such sums over the seconds between; a gauge is the sum itself."""

    counter: Counter
    what: str
    keys: tuple[str, ...]
    scale: float = 1.0

    def total(self, values: Mapping[str, float]) -> float:
        """The sum of what is there; NaN where nothing is."""
        there = [values[key] for key in self.keys if key in values]
        return sum(there) * self.scale if there else float("nan")


def rate(name: str, unit: str, what: str, *keys: str, scale: float = 1.0) -> Measure:
    """A counter of events since boot. unit: of the events, what there is of it per second."""
    return Measure(Counter(name, unit, "software", is_rate=True), what, keys, scale)


def gauge(name: str, unit: str, what: str, *keys: str, scale: float = 1.0) -> Measure:
    """A counter that says how things stand at the sample."""
    return Measure(Counter(name, unit, "software", is_rate=False), what, keys, scale)


def owned(measure: Measure, prefix: str = OWN_PREFIX) -> Measure:
    """The same measure, of the workload's own group or processes."""
    counter = replace(measure.counter, name=prefix + measure.counter.name, scope="workload")
    return replace(measure, counter=counter)


class Source:
    """One file of the kernel, kept open, with the measures that are read from it."""

    def __init__(self, path: Path, parse: Parse, measures: tuple[Measure, ...]) -> None:
        self.path, self.parse, self.measures = path, parse, measures
        self._file: FileIO | None = None

    def open(self) -> None:
        """Open the file. Raises OSError."""
        self._file = self._file or FileIO(self.path)

    def read(self) -> bytes | None:
        """What the file says now; None where it cannot be read any more."""
        with suppress(OSError):
            if self._file:
                self._file.seek(0)
                return self._file.readall()
        return None

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()
            self._file = None

    def values(self, raw: bytes | None) -> list[float]:
        """The total of each measure in one reading; NaN where the reading is missing or makes no sense."""
        try:
            parsed = self.parse(raw.decode(errors="replace")) if raw is not None else {}
        except (ValueError, IndexError, KeyError):
            parsed = {}
        return [measure.total(parsed) for measure in self.measures]


@dataclass(frozen=True)
class Unavailable:
    """A counter that this machine does not give, and why."""

    counter: str
    reason: str


def opened(sources: list[Source]) -> tuple[list[Source], list[Unavailable]]:
    """Open what can be opened and keep the measures that are in it; the others are listed, never filled in."""
    ready: list[Source] = []
    missing: list[Unavailable] = []
    for source in sources:
        try:
            source.open()
            raw = source.read()
            why = "" if raw is not None else f"{source.path} cannot be read"
        except OSError as error:
            raw, why = None, f"{source.path}: {error.strerror or error}"
        values = source.values(raw)
        there = tuple(m for m, value in zip(source.measures, values, strict=True) if value == value)
        missing += [
            Unavailable(m.counter.name, why or f"{source.path} holds no {' or '.join(m.keys)}")
            for m in source.measures
            if m not in there
        ]
        if there:
            source.measures = there
            ready.append(source)
        else:
            source.close()
    return ready, missing


@dataclass
class CounterReadings:
    """What a sampler read. taken_s: for each sample when each file was read, seconds on the samples' clock; raw: what
    it said. The first sample is the base of the rates and no sample of the run."""

    taken_s: list[list[float]] = field(default_factory=list)
    raw: list[list[bytes | None]] = field(default_factory=list)

    @property
    def at_s(self) -> FloatArray:
        """Shape (n,): when the samples after the base were taken, in seconds after it."""
        first = np.array([row[0] for row in self.taken_s])
        return first[1:] - first[0] if len(first) else first


def values_of(sources: Sequence[Source], readings: CounterReadings) -> FloatArray:
    """Shape (n, counters): a rate is the growth over the seconds since the reading before, a gauge the reading.

    A counter that shrank was reset or has wrapped: NaN for that interval, as where a reading is missing."""
    blocks = []
    for place, source in enumerate(sources):
        totals = np.array([source.values(row[place]) for row in readings.raw], dtype=float)
        lasted_s = np.diff(np.array([row[place] for row in readings.taken_s]))[:, None]
        grown = np.diff(totals, axis=0)
        grown[grown < 0] = np.nan
        is_rate = np.array([measure.counter.is_rate for measure in source.measures])
        blocks.append(np.where(is_rate, grown / lasted_s, totals[1:]))
    return np.concatenate(blocks, axis=1) if blocks else np.empty((len(readings.at_s), 0))


STAT = (
    *(
        rate(f"cpu.{kind}_cores", "core-seconds", f"processor time spent on {what}", kind, scale=TICK_S)
        for kind, what in TIMES.items()
    ),
    rate("cpu.context_switches", "switches", "changes from one task to another", "ctxt"),
    rate("cpu.forks", "tasks", "processes and threads started", "processes"),
    gauge("cpu.running_tasks", "tasks", "tasks that run or could run", "procs_running"),
    gauge("cpu.blocked_tasks", "tasks", "tasks that wait for a disk", "procs_blocked"),
)
LOAD = (
    gauge("load.one_minute", "tasks", "damped mean of running and blocked tasks over one minute", "load_1m"),
    gauge("load.tasks", "tasks", "tasks there are, idle ones included", "tasks"),
)
SCHEDSTAT = (
    rate("sched.ran_cores", "core-seconds", "time that tasks ran", "ran_ns", scale=NS),
    rate("sched.waited_cores", "core-seconds", "time that tasks could have run and waited", "waited_ns", scale=NS),
    rate("sched.slices", "slices", "stretches of running", "slices"),
)
VMSTAT = (
    rate("vm.page_faults", "faults", "accesses to pages that were not mapped yet", "pgfault"),
    rate("vm.major_faults", "faults", "those that had to wait for a disk", "pgmajfault"),
    rate("vm.paged_in_bytes", "B", "read from disks into memory", "pgpgin", scale=KIB),
    rate("vm.paged_out_bytes", "B", "written from memory to disks", "pgpgout", scale=KIB),
    rate("vm.allocated_pages", "pages", "pages handed out", *(f"pgalloc_{zone}" for zone in ZONES)),
    rate("vm.freed_pages", "pages", "pages given back", "pgfree"),
    rate("vm.activated_pages", "pages", "pages found to be in use", "pgactivate"),
    rate("vm.reused_pages", "pages", "shared pages written to without a copy", "pgreuse"),
    rate("vm.lazily_freed_pages", "pages", "pages that a program gave up (MADV_FREE)", "pglazyfree"),
    rate("vm.dirtied_pages", "pages", "pages of files that were changed", "nr_dirtied"),
    rate("vm.written_pages", "pages", "changed pages written back", "nr_written"),
    rate("vm.rotated_pages", "pages", "pages moved to the end of their list after write-back", "pgrotated"),
    rate("vm.refaulted_pages", "pages", "pages of files read again soon after they were dropped",
         "workingset_refault_file"),
    rate("vm.huge_faults", "faults", "faults answered with a huge page", "thp_fault_alloc"),
    rate("vm.scanned_pages", "pages", "pages looked at for reclaim", "pgscan_kswapd", "pgscan_direct"),
    rate("vm.swapped_pages", "pages", "pages swapped in or out", "pswpin", "pswpout"),
)  # fmt: skip
MEMINFO = (
    gauge("memory.free_bytes", "B", "memory that holds nothing", "MemFree"),
    gauge("memory.available_bytes", "B", "memory that a new program could have", "MemAvailable"),
    gauge("memory.cached_bytes", "B", "pages of files", "Cached"),
    gauge("memory.buffer_bytes", "B", "blocks of disks", "Buffers"),
    gauge("memory.active_bytes", "B", "pages used lately", "Active"),
    gauge("memory.inactive_bytes", "B", "pages not used lately", "Inactive"),
    gauge("memory.anonymous_bytes", "B", "memory of programs that stands for no file", "AnonPages"),
    gauge("memory.mapped_bytes", "B", "pages of files that programs have mapped", "Mapped"),
    gauge("memory.shared_bytes", "B", "shared memory and tmpfs", "Shmem"),
    gauge("memory.dirty_bytes", "B", "changed and not yet written back", "Dirty"),
    gauge("memory.writeback_bytes", "B", "being written back", "Writeback"),
    gauge("memory.slab_bytes", "B", "objects of the kernel", "Slab"),
    gauge("memory.page_table_bytes", "B", "page tables", "PageTables"),
    gauge("memory.kernel_stack_bytes", "B", "stacks of threads in the kernel", "KernelStack"),
    gauge("memory.committed_bytes", "B", "memory promised to programs", "Committed_AS"),
)
DISKS = (
    rate("disk.reads", "requests", "reads completed", "reads"),
    rate("disk.read_bytes", "B", "bytes read", "read_sectors", scale=SECTOR),
    rate("disk.read_wait_s", "s", "time that reads took, summed", "read_ms", scale=MS),
    rate("disk.writes", "requests", "writes completed", "writes"),
    rate("disk.written_bytes", "B", "bytes written", "written_sectors", scale=SECTOR),
    rate("disk.write_wait_s", "s", "time that writes took, summed", "write_ms", scale=MS),
    rate("disk.merged", "requests", "requests joined with a neighbour", "merged_reads", "merged_writes"),
    rate("disk.busy_s", "s", "time in which a disk had something to do", "busy_ms", scale=MS),
    rate("disk.queue_s", "s", "time that all requests waited or were served, summed", "waited_ms", scale=MS),
    rate("disk.discarded_bytes", "B", "bytes given back to the disk", "discarded_sectors", scale=SECTOR),
    rate("disk.flushes", "requests", "caches flushed on demand of fsync and the like", "flushes"),
    rate("disk.flush_wait_s", "s", "time that flushes took, summed", "flush_ms", scale=MS),
    gauge("disk.in_flight", "requests", "requests that a disk works on", "in_flight"),
)
NET_DEVICES = (
    rate("net.loopback_bytes", "B", "bytes from this machine to itself", "lo.received_bytes"),
    rate("net.loopback_packets", "packets", "packets from this machine to itself", "lo.received_packets"),
    rate("net.received_bytes", "B", "bytes received by all other devices", "other.received_bytes"),
    rate("net.received_packets", "packets", "packets received by all other devices", "other.received_packets"),
    rate("net.sent_bytes", "B", "bytes sent by all other devices", "other.sent_bytes"),
    rate("net.sent_packets", "packets", "packets sent by all other devices", "other.sent_packets"),
    rate("net.dropped_packets", "packets", "packets lost or broken, all devices", "lo.drops", "other.drops"),
)
PROTOCOLS = (
    rate("tcp.received_segments", "segments", "TCP segments received", "Tcp.InSegs"),
    rate("tcp.sent_segments", "segments", "TCP segments sent", "Tcp.OutSegs"),
    rate("tcp.retransmitted_segments", "segments", "TCP segments sent again", "Tcp.RetransSegs"),
    rate("tcp.active_opens", "connections", "connections opened from here", "Tcp.ActiveOpens"),
    rate("tcp.passive_opens", "connections", "connections accepted here", "Tcp.PassiveOpens"),
    rate("tcp.resets", "connections", "connections cut off", "Tcp.EstabResets", "Tcp.OutRsts"),
    gauge("tcp.connections", "connections", "connections there are", "Tcp.CurrEstab"),
    rate("udp.datagrams", "datagrams", "UDP datagrams received or sent", "Udp.InDatagrams", "Udp.OutDatagrams"),
)
SOCKETS = (gauge("net.sockets", "sockets", "sockets in use", "sockets"),)
INTERRUPTS = (
    rate("irq.devices", "interrupts", "interrupts of disks, network and other devices", DEVICES),
    rate("irq.local_timer", "interrupts", "timers of the processors", "LOC", "arch_timer"),
    rate("irq.rescheduling", "interrupts", "one processor asks another to schedule", "RES", "IPI0"),
    rate("irq.function_call", "interrupts", "one processor has another run a function", "CAL", "IPI1"),
    rate("irq.tlb_shootdown", "interrupts", "one processor has others forget address translations", "TLB"),
    rate("irq.hypervisor", "interrupts", "calls of the hypervisor", "HYP"),
)
SOFTIRQS = (
    rate("softirq.timer", "runs", "timers that ran out", "TIMER"),
    rate("softirq.hrtimer", "runs", "high-resolution timers that ran out", "HRTIMER"),
    rate("softirq.net_rx", "runs", "packets taken in", "NET_RX"),
    rate("softirq.net_tx", "runs", "packets sent off", "NET_TX"),
    rate("softirq.block", "runs", "disk requests completed", "BLOCK"),
    rate("softirq.tasklet", "runs", "small deferred work", "TASKLET"),
    rate("softirq.sched", "runs", "load balanced between processors", "SCHED"),
    rate("softirq.rcu", "runs", "read-copy-update callbacks", "RCU"),
)
# they tell when a run was recorded rather than what ran: recorded, and left out of fingerprints
GIVEAWAYS: dict[str, str] = {
    "memory.free_bytes": "shrinks as the page cache fills, from run to run",
    "memory.available_bytes": "follows what other programs hold, which differs between rounds",
    "memory.cached_bytes": "the page cache of the whole machine grows from run to run",
    "memory.buffer_bytes": "blocks of disks stay in memory after the run that read them",
    "memory.active_bytes": "holds the page cache of earlier runs",
    "memory.inactive_bytes": "holds the page cache of earlier runs",
    "memory.slab_bytes": "the kernel's objects for files stay after the run that opened them",
    "memory.committed_bytes": "follows what other programs hold, which differs between rounds",
    "load.one_minute": "remembers the run before for more than a minute",
    "load.tasks": "counts the idle tasks of the whole machine, which differ between rounds",
    "net.sockets": "counts the sockets of the whole machine, which differ between rounds",
}


def machine_sources(proc: Path = PROC, block: Path = BLOCK) -> list[Source]:
    """The files that tell of the whole machine; none is open yet. block: /sys/block, whose disks are counted."""
    files: tuple[tuple[str, Parse, tuple[Measure, ...]], ...] = (
        ("stat", parse_stat, STAT),
        ("loadavg", parse_loadavg, LOAD),
        ("schedstat", parse_schedstat, SCHEDSTAT),
        ("vmstat", parse_fields, VMSTAT),
        ("meminfo", parse_meminfo, MEMINFO),
        ("diskstats", partial(parse_diskstats, disks=whole_disks(block)), DISKS),
        ("net/dev", parse_devices, NET_DEVICES),
        ("net/snmp", parse_snmp, PROTOCOLS),
        ("net/sockstat", parse_sockets, SOCKETS),
    )
    return [
        *(Source(proc / name, parse, measures) for name, parse, measures in files),
        *pressure_sources(proc / "pressure"),
        Source(proc / "interrupts", parse_interrupts, INTERRUPTS),
        Source(proc / "softirqs", parse_interrupts, SOFTIRQS),
    ]


def pressure_sources(folder: Path, pattern: str = "{resource}") -> list[Source]:
    """The files of /proc/pressure, or of a control group (pattern "{resource}.pressure"): time lost by waiting."""
    sources = []
    for resource, what in RESOURCES.items():
        name = f"pressure.{resource}"
        measures = (
            rate(f"{name}_some", "s", f"time in which at least one task waited for {what}", "some", scale=US),
            rate(f"{name}_full", "s", f"time in which all tasks waited for {what}", "full", scale=US),
        )
        sources.append(Source(folder / pattern.format(resource=resource), parse_pressure, measures))
    return sources


def parse_stat(text: str) -> dict[str, float]:
    """Clock ticks by kind of all processors together, and the single numbers of /proc/stat."""
    totals, single = text.partition("\n")[0].split()[1:], parse_fields(text)  # the first line is that of all together
    named = ("ctxt", "processes", "procs_running", "procs_blocked")
    return {name: single[name] for name in named if name in single} | dict(zip(TIMES, map(float, totals), strict=False))


def parse_loadavg(text: str) -> dict[str, float]:
    """Load over one minute, and the tasks there are."""
    load_1m, _, _, tasks, _ = text.split()
    return {"load_1m": float(load_1m), "tasks": float(tasks.partition("/")[2])}


def parse_schedstat(text: str) -> dict[str, float]:
    """Nanoseconds run and waited and slices, summed over the processors of /proc/schedstat (version 14 and later)."""
    of_cpus = [map(float, line.split()[7:10]) for line in text.splitlines() if line.startswith("cpu")]
    totals = [sum(of_each) for of_each in zip(*of_cpus, strict=True)]
    return dict(zip(("ran_ns", "waited_ns", "slices"), totals, strict=True)) if totals else {}


def parse_fields(text: str) -> dict[str, float]:
    """Lines `name value`, as in /proc/vmstat, cpu.stat and memory.stat."""
    pairs = (line.split() for line in text.splitlines())
    return {fields[0]: float(fields[1]) for fields in pairs if len(fields) >= 2}


def parse_meminfo(text: str) -> dict[str, float]:
    """Lines `Name:  value kB`; in bytes."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: float(rest.split()[0]) * (KIB if rest.endswith("kB") else 1) for name, _, rest in pairs if rest}


def whole_disks(block: Path) -> frozenset[str]:
    """Names of the disks of this machine. block: /sys/block, which lists no partitions."""
    names = (path.name for path in block.iterdir()) if block.is_dir() else ()
    return frozenset(name for name in names if not name.startswith(NO_DISKS))


def parse_diskstats(text: str, disks: frozenset[str]) -> dict[str, float]:
    """The fields of /proc/diskstats, summed over these disks."""
    totals: dict[str, float] = {}
    for line in text.splitlines():
        _, _, name, *fields = line.split()
        if name in disks:
            for field, value in zip(DISK_FIELDS, fields, strict=False):
                totals[field] = totals.get(field, 0.0) + float(value)
    return totals


def parse_devices(text: str) -> dict[str, float]:
    """/proc/net/dev: the loopback device as `lo.`, the sum of all others as `other.`."""
    totals: dict[str, float] = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if not colon:
            continue
        fields = [float(text) for text in rest.split()]
        side = "lo" if name.strip() == LOOPBACK else "other"
        for key, place in NET_FIELDS.items():
            totals[f"{side}.{key}"] = totals.get(f"{side}.{key}", 0.0) + fields[place]
        totals[f"{side}.drops"] = totals.get(f"{side}.drops", 0.0) + sum(fields[place] for place in DROPS)
    return totals


def parse_snmp(text: str) -> dict[str, float]:
    """/proc/net/snmp: pairs of lines, names and values, each with the protocol before it."""
    lines = [line.split() for line in text.splitlines()]
    counts: dict[str, float] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        protocol = names[0]
        counts |= {f"{protocol[:-1]}.{name}": float(value) for name, value in zip(names[1:], values[1:], strict=True)}
    return counts


def parse_sockets(text: str) -> dict[str, float]:
    """/proc/net/sockstat: `sockets: used N` comes first."""
    return {"sockets": float(text.split()[2])}


def parse_pressure(text: str) -> dict[str, float]:
    """Microseconds lost so far: `some` and, where there is one, `full`."""
    lines = (line.split() for line in text.splitlines())
    return {fields[0]: float(fields[-1].partition("=")[2]) for fields in lines if fields}


def parse_interrupts(text: str) -> dict[str, float]:
    """/proc/interrupts or /proc/softirqs: the sum over processors by name; numbered lines together as `devices`."""
    lines = text.splitlines()
    n_processors = len(lines[0].split()) if lines else 0
    totals: dict[str, float] = {}
    for line in lines[1:]:
        name, _, rest = line.partition(":")
        counts = takewhile(str.isdigit, rest.split()[:n_processors])
        key = DEVICES if name.strip().isdigit() else name.strip()
        totals[key] = totals.get(key, 0.0) + sum(map(int, counts))
    return totals
