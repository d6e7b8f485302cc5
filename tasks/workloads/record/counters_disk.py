"""Counters of disks: whole disks only, summed; partitions, loop devices and memory disks would count twice."""

from functools import partial
from pathlib import Path

from tasks.workloads.record.measures import Source, gauge, rate

SECTOR = 512
MS = 1e-3
FIELDS = (
    "reads", "merged_reads", "read_sectors", "read_ms", "writes", "merged_writes", "written_sectors", "write_ms",
    "in_flight", "busy_ms", "waited_ms", "discards", "merged_discards", "discarded_sectors", "discard_ms", "flushes",
    "flush_ms",
)  # fmt: skip
NO_DISKS = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd")

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


def whole_disks(block: Path) -> frozenset[str]:
    """Names of the disks of this machine. block: /sys/block, which lists no partitions."""
    names = (path.name for path in block.iterdir()) if block.is_dir() else ()
    return frozenset(name for name in names if not name.startswith(NO_DISKS))


def parse_diskstats(text: str, disks: frozenset[str]) -> dict[str, float]:
    """The fields of /proc/diskstats, summed over these disks."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        _, _, name, *fields = line.split()
        if name in disks:
            for field, value in zip(FIELDS, fields, strict=False):
                found[field] = found.get(field, 0.0) + float(value)
    return found


def disk_sources(proc: Path, block: Path) -> list[Source]:
    """What /proc says of the disks."""
    return [Source(proc / "diskstats", partial(parse_diskstats, disks=whole_disks(block)), DISKS)]
