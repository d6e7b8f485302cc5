"""Control groups of Linux, version 1 or 2: quota, weight, memory and disk limits of a group of processes."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "memory", "blkio")
NS, US = 1e-9, 1e-6
MIB = 1_048_576
V1_SHARES_PER_WEIGHT = 1024 / 100  # both are what a group has by default
UNLIMITED = -1
PREFIX = "whorl-record-"  # and the recorder's process id


@dataclass(frozen=True)
class Group:
    """One group: its folder in each hierarchy (version 1) or its one folder (version 2)."""

    version: Literal[1, 2]
    folders: Mapping[str, Path]

    def child(self, name: str, *, shares_disk: bool = False) -> "Group":
        """Make a group inside this one. shares_disk: under this one's disk limit, which version 1 does not inherit."""
        folders = {controller: folder / name for controller, folder in self.folders.items()}
        if shares_disk and self.version == 1 and "blkio" in folders:
            folders["blkio"] = self.folders["blkio"]
        made = Group(self.version, folders)
        try:
            for folder in dict.fromkeys(made.folders.values()):
                folder.mkdir(exist_ok=True)
        except OSError:
            made.remove()  # version 1: it may be there in some of the hierarchies
            raise
        return made

    def share_controllers(self) -> None:
        """Let children have limits of their own: version 2 wants that said, level by level."""
        if self.version == 2:
            for controller in ("cpu", "memory", "io"):
                with contextlib.suppress(OSError):
                    (self.folders["cpu"] / "cgroup.subtree_control").write_text(f"+{controller}")

    def add(self, pid: int) -> None:
        """Move a process in, with what it will start."""
        for folder in dict.fromkeys(self.folders.values()):
            (folder / "cgroup.procs").write_text(str(pid))

    def command_inside(self, command: list[str]) -> list[str]:
        """The command, made to move itself into the group before it starts anything."""
        files = [str(folder / "cgroup.procs") for folder in dict.fromkeys(self.folders.values())]
        script = 'while [ "$1" != -- ]; do echo $$ > "$1"; shift; done; shift; exec "$@"'
        return ["/bin/sh", "-c", script, "sh", *files, "--", *command]

    def set_quota(self, quota_us: int, period_us: int) -> None:
        """At most quota_us of CPU time in each period; UNLIMITED takes the limit away."""
        cpu = self.folders["cpu"]
        if self.version == 2:
            (cpu / "cpu.max").write_text(f"{'max' if quota_us == UNLIMITED else quota_us} {period_us}")
            return
        settings = [("cpu.cfs_period_us", period_us), ("cpu.cfs_quota_us", quota_us)]
        # the old quota in a shorter period could be more than the parent has, which the kernel refuses
        for name, value in settings[::-1] if quota_us == UNLIMITED else settings:
            (cpu / name).write_text(str(value))

    def set_weight(self, weight: int) -> None:
        """CPU time against other groups of the same parent where there is not enough; 100 is usual."""
        name, value = ("cpu.weight", weight) if self.version == 2 else ("cpu.shares", weight * V1_SHARES_PER_WEIGHT)
        (self.folders["cpu"] / name).write_text(str(round(value)))

    def usage_s(self) -> float:
        """CPU seconds that the group and its children have used."""
        if self.version == 1:
            return int((self.folders["cpuacct"] / "cpuacct.usage").read_text()) * NS
        told = dict(line.split() for line in (self.folders["cpu"] / "cpu.stat").read_text().splitlines())
        return int(told["usage_usec"]) * US

    def limit_memory(self, mib: float) -> bool:
        """Set the memory that the group may use; false where the system does not let us."""
        name = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        return self._try_to_write("memory", name, str(round(mib * MIB)))

    def limit_reads(self, device: str, bytes_per_s: float) -> bool:
        """Set how fast the group may read the disk MAJOR:MINOR; false where the system does not let us."""
        rate = round(bytes_per_s)
        if self.version == 2:
            return self._try_to_write("blkio", "io.max", f"{device} rbps={rate}")
        return self._try_to_write("blkio", "blkio.throttle.read_bps_device", f"{device} {rate}")

    def _try_to_write(self, controller: str, name: str, text: str) -> bool:
        folder = self.folders.get(controller)
        if folder is None:
            return False
        try:
            (folder / name).write_text(text)
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove the group and those inside it; one that still holds a process stays."""
        for folder in dict.fromkeys(self.folders.values()):
            for inner in sorted(folder.rglob("*/"), key=lambda path: -len(path.parts)):
                with contextlib.suppress(OSError):
                    inner.rmdir()
            with contextlib.suppress(OSError):
                folder.rmdir()

    def remove_abandoned(self, prefix: str = PREFIX) -> None:
        """Remove the campaigns' groups in this one whose recorder was killed: it is gone, and they are empty."""
        for name in {path.name for folder in self.folders.values() for path in folder.glob(f"{prefix}[0-9]*")}:
            if not Path("/proc", name.removeprefix(prefix)).exists():
                Group(self.version, {key: folder / name for key, folder in self.folders.items()}).remove()


def root_group(root: Path = ROOT, controllers: Sequence[str] = CONTROLLERS) -> Group | None:
    """The group that all others are in; None where there is no controller of the CPU."""
    if (root / "cgroup.controllers").is_file():
        has_cpu = "cpu" in (root / "cgroup.controllers").read_text().split()
        return Group(2, dict.fromkeys(("cpu", "memory", "blkio"), root)) if has_cpu else None
    found = {name: root / name for name in controllers if (root / name / "cgroup.procs").is_file()}
    return Group(1, found) if {"cpu", "cpuacct"} <= found.keys() else None


@contextlib.contextmanager
def campaign_group(
    root: Path = ROOT, *, weight: int = 800, prefix: str = PREFIX, controllers: Sequence[str] = CONTROLLERS
) -> Iterator[Group | None]:
    """A group of this campaign's own, gone afterwards; None where this process may not make one.

    prefix: its name is that and the process id; controllers: of version 1, those that are there are used."""
    base = root_group(root, controllers)
    if base is None:
        yield None
        return
    made: Group | None = None
    try:
        base.remove_abandoned(prefix)
        base.share_controllers()
        made = base.child(f"{prefix}{os.getpid()}")
        made.share_controllers()
        made.set_weight(weight)
        made.usage_s()
    except (OSError, KeyError, ValueError):
        if made is not None:
            made.remove()
        yield None
        return
    try:
        yield made
    finally:
        made.remove()


def disk_of(folder: Path) -> str | None:
    """MAJOR:MINOR of the disk that holds the folder, whole disks only; None where it has none of its own."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    place = Path("/sys/dev/block") / number
    if (place / "partition").exists():
        return (place.resolve().parent / "dev").read_text().strip()
    return number if place.exists() else None
