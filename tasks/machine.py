"""Facts about this machine that recording and benchmarks depend on. Asking changes nothing on it."""

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

CGROUP_ROOT = Path("/sys/fs/cgroup")
V1_LIMIT, V2_LIMIT = "memory/memory.limit_in_bytes", "memory.max"
ASK_TIMEOUT_S = 10.0
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
POSTGRES_FOLDERS = "/usr/lib/postgresql"
NOT_COUNTED = ("<not supported>", "<not counted>")
RATE = ("tbf", "rate", "100mbit", "burst", "32kbit", "latency", "10ms")
DELAY = ("netem", "delay", "1ms")


@dataclass(frozen=True)
class Cgroups:
    """Control groups: layout, the controllers there are, and those in which this user may make groups."""

    layout: Literal["v1", "v2", "none"]
    controllers: list[str]
    writable: list[str]


def read_cgroups(root: Path = CGROUP_ROOT) -> Cgroups:
    """The control groups below `root`; a v2 tree beside v1 controllers counts as v1, where the controllers are."""
    if (root / "cgroup.controllers").exists():
        controllers = (root / "cgroup.controllers").read_text().split()
        return Cgroups("v2", controllers, controllers if os.access(root, os.W_OK) else [])
    folders = sorted(path for path in root.glob("*") if (path / "tasks").exists()) if root.exists() else []
    named = [path for path in folders if not path.is_symlink() and path.name != "systemd"]
    writable = [path.name for path in named if os.access(path, os.W_OK)]
    return Cgroups("v1" if named else "none", [path.name for path in named], writable)


def usable_memory_bytes(root: Path = CGROUP_ROOT) -> int:
    """Memory that is free to use: of the machine, or less where a container has a limit."""
    free = psutil.virtual_memory().available
    limits = [int(text) for name in (V1_LIMIT, V2_LIMIT) if (text := _text(root / name)).isdigit()]
    return int(min([free, *limits]))


def cpu_model() -> str:
    """The processor's name, as it tells it itself."""
    lines = _text(Path("/proc/cpuinfo")).splitlines()
    named = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return named if lines else platform.processor() or "unknown"


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def free_bytes(folder: Path) -> int:
    """Free disk space where the folder is, or will be."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(there).free


def find_tool(*names: str) -> str | None:
    """The path of the first of these programs, also where a plain user's PATH does not look."""
    versions = [str(folder) for folder in sorted(Path(POSTGRES_FOLDERS).glob("*/bin"), reverse=True)]
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS, *versions])
    return next((found for name in names if (found := shutil.which(name, path=path))), None)


def counts_hardware_events() -> bool | None:
    """Whether `perf` can count CPU cycles; None without perf."""
    perf = find_tool("perf")
    if perf is None:
        return None
    asked = _ask([perf, "stat", "-x,", "-e", "cycles", "true"])
    return asked is not None and asked.returncode == 0 and not any(mark in asked.stderr for mark in NOT_COUNTED)


def perf_paranoia() -> int | None:
    """kernel.perf_event_paranoid: how much a plain user may count (below 0: all); None where there is no such thing."""
    text = _text(Path("/proc/sys/kernel/perf_event_paranoid"))
    return int(text) if text.lstrip("-").isdigit() else None


def makes_network_namespaces() -> bool:
    """Whether this user may make a network namespace; the one that is made ends with its only process."""
    asked = _ask(["unshare", "--net", "true"])
    return asked is not None and asked.returncode == 0


def shapes_traffic(discipline: tuple[str, ...]) -> bool:
    """Whether the kernel takes a queueing discipline; tried in a namespace that ends with its only process."""
    tc = find_tool("tc")
    asked = tc and _ask(["unshare", "--net", tc, "qdisc", "add", "dev", "lo", "root", *discipline])
    return bool(asked and asked.returncode == 0)


def _ask(command: list[str]) -> "subprocess.CompletedProcess[str] | None":
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=ASK_TIMEOUT_S, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
