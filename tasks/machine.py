"""This machine: facts that recording depends on, programs, control groups, the recorders' lock and scratch folders, and
what serves a home."""

import ctypes
import errno
import hashlib
import json
import os
import platform
import pwd
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import psutil

from tasks.errors import BadSetting

CGROUP_ROOT = Path("/sys/fs/cgroup")
V1_LIMIT, V2_LIMIT = "memory/memory.limit_in_bytes", "memory.max"
ASK_TIMEOUT_S = 10.0
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
POSTGRES_FOLDERS = "/usr/lib/postgresql"
NOT_COUNTED = ("<not supported>", "<not counted>")
RATE = ("tbf", "rate", "100mbit", "burst", "32kbit", "latency", "10ms")
DELAY = ("netem", "delay", "1ms")
CONTROLLERS = ("cpu", "cpuacct", "memory", "blkio")
NS, US = 1e-9, 1e-6
MIB = 1_048_576
V1_SHARES_PER_WEIGHT = 1024 / 100  # both are what a group has by default
UNLIMITED = -1
PREFIX = "whorl-record-"  # and the recorder's process id
LOCK = "whorl-recorders"
NAP_S = 0.5
ASK_S = 1.0
COMMAND_CHARS = 80
CREDENTIALS = struct.Struct("3i")  # process, user and group, as the kernel knows them
DIGEST_DIGITS = 10
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
PR_SET_PDEATHSIG = 1
CLOCK_SLACK_S = 1.0  # a start time read twice may differ by rounding
PROCS = "cgroup.procs"
END_S, END_NAP_S = 5.0, 0.005


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


def machine_name() -> str:
    """This machine as a type of machine: its processor and its cores, in lower-case words and dashes."""
    return f"{slug(cpu_model())}-{os.cpu_count() or 0}-cores"


def slug(text: str) -> str:
    """A text as lower-case words and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def free_bytes(folder: Path) -> int:
    """Free disk space where the folder is, or will be."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(there).free


def find_tool(*names: str) -> str | None:
    """The path of the first of these programs, also where a plain user's PATH does not look."""
    versions = [str(folder) for folder in sorted(Path(POSTGRES_FOLDERS).glob("*/bin"), reverse=True)]
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS, *versions])
    return next((program for name in names if (program := shutil.which(name, path=path))), None)


def counts_hardware_events() -> bool | None:
    """Whether `perf` can count CPU cycles; None without perf."""
    perf = find_tool("perf")
    if perf is None:
        return None
    probe = _ask([perf, "stat", "-x,", "-e", "cycles", "true"])
    return probe is not None and probe.returncode == 0 and not any(mark in probe.stderr for mark in NOT_COUNTED)


def perf_paranoia() -> int | None:
    """kernel.perf_event_paranoid: how much a plain user may count (below 0: all); None where there is no such thing."""
    text = _text(Path("/proc/sys/kernel/perf_event_paranoid"))
    return int(text) if text.lstrip("-").isdigit() else None


def makes_network_namespaces() -> bool:
    """Whether this user may make a network namespace; the one that is made ends with its only process."""
    probe = _ask(["unshare", "--net", "true"])
    return probe is not None and probe.returncode == 0


def shapes_traffic(discipline: tuple[str, ...]) -> bool:
    """Whether the kernel takes a queueing discipline; tried in a namespace that ends with its only process."""
    tc = find_tool("tc")
    probe = tc and _ask(["unshare", "--net", tc, "qdisc", "add", "dev", "lo", "root", *discipline])
    return bool(probe and probe.returncode == 0)


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


@dataclass(frozen=True)
class Tool:
    """One program. programs: its names, the first one that is found counts."""

    programs: tuple[str, ...]
    package: str
    purpose: str


BENCHMARK, WORKLOAD = "nodes: benchmarks", "workloads: something to record"
PHP_FPM = ("php-fpm", *(f"php-fpm8.{minor}" for minor in range(9, -1, -1)))  # Debian's has its version in its name
TOOLS = (
    Tool(("stress-ng",), "stress-ng", "jobs record: background load; nodes: benchmarks"),
    Tool(("fio",), "fio", BENCHMARK),
    Tool(("sysbench",), "sysbench", BENCHMARK),
    Tool(("ioping",), "ioping", BENCHMARK),
    Tool(("qperf",), "qperf", BENCHMARK),
    Tool(("iperf3",), "iperf3", BENCHMARK),
    Tool(("perf",), "linux-perf", "workloads: counters and tracepoints"),
    Tool(("setpriv",), "util-linux", "record: processes that are unprivileged and end with the recorder"),
    Tool(("redis-server",), "redis-server", WORKLOAD),
    Tool(("redis-benchmark",), "redis-tools", WORKLOAD),
    Tool(("mariadbd", "mysqld"), "mariadb-server", WORKLOAD),
    Tool(("mariadb", "mysql"), "mariadb-client", WORKLOAD),
    Tool(("postgres",), "postgresql", WORKLOAD),
    Tool(("pgbench",), "postgresql", WORKLOAD),
    Tool(("nginx",), "nginx-light", WORKLOAD),
    Tool(("wrk",), "wrk", WORKLOAD),
    Tool(PHP_FPM, "php-fpm", WORKLOAD),
    Tool(("memcached",), "memcached", WORKLOAD),
    Tool(("gcc",), "gcc", WORKLOAD),
    Tool(("zstd",), "zstd", WORKLOAD),
    Tool(("xz",), "xz-utils", WORKLOAD),
    Tool(("chromium", "chromium-browser", "google-chrome"), "chromium", "tests that look at the report"),
)


def not_installed(name: str, package: str = "") -> str:
    """One line that says that a program is missing, and which package of Debian has it."""
    package = package or next((tool.package for tool in TOOLS if name in tool.programs), name)
    return f"{name} is not installed (Debian: apt-get install {package})"


@dataclass(frozen=True)
class ControlGroup:
    """One group: its folder in each hierarchy (version 1) or its one folder (version 2)."""

    version: Literal[1, 2]
    folders: Mapping[str, Path]

    def child(self, name: str, *, shares_disk: bool = False) -> "ControlGroup":
        """Make a group inside this one. shares_disk: under this one's disk limit, which version 1 does not inherit."""
        folders = {controller: folder / name for controller, folder in self.folders.items()}
        if shares_disk and self.version == 1 and "blkio" in folders:
            folders["blkio"] = self.folders["blkio"]
        made = ControlGroup(self.version, folders)
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
                with suppress(OSError):
                    (self.folders["cpu"] / "cgroup.subtree_control").write_text(f"+{controller}")

    @property
    def doors(self) -> tuple[Path, ...]:
        """The files that take the id of a process that moves in."""
        return tuple(folder / PROCS for folder in dict.fromkeys(self.folders.values()))

    def add(self, pid: int) -> None:
        """Move a process in, with what it will start."""
        for door in self.doors:
            door.write_text(str(pid))

    def command_inside(self, command: Sequence[str]) -> list[str]:
        """The command, made to move itself into the group before it starts anything."""
        return joining(self.doors, command)

    def processes(self) -> set[int]:
        """The processes in the group and below it; those that only share its disk limit are not among them."""
        pids: set[int] = set()
        for folder in dict.fromkeys(path for name, path in self.folders.items() if name != "blkio"):
            for file in folder.rglob(PROCS):
                with suppress(OSError):  # a group below it may end meanwhile
                    pids |= set(map(int, file.read_text().split()))
        return pids

    def end_processes(self) -> bool:
        """Kill every process in the group, and wait until they are gone; false if some will not go."""
        ends_s = time.monotonic() + END_S
        while left := self.processes():
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > ends_s:
                return False
            time.sleep(END_NAP_S)
        return True

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
        return self.cpu_stat()["usage_usec"] * US

    def cpu_stat(self) -> dict[str, int]:
        """What cpu.stat counts."""
        lines = (self.folders["cpu"] / "cpu.stat").read_text().splitlines()
        return {name: int(count) for name, count in (line.split() for line in lines)}

    def limit_memory(self, mib: float) -> bool:
        """Set the memory that the group may use; false where the system does not let us."""
        name = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        try:
            (self.folders["memory"] / name).write_text(str(round(mib * MIB)))
        except (OSError, KeyError):
            return False
        return True

    def limit_disk(self, folder: Path, bytes_per_s: float, sides: Sequence[str] = ("read", "write")) -> None:
        """Set how fast the group may read and write the disk of a folder. Raises OSError, KeyError, ValueError.

        Version 1 limits only what goes past the page cache when it is written; reads that miss it always count."""
        device, rate, files = disk_of(folder), round(bytes_per_s), self.folders["blkio"]
        if device is None:
            raise ValueError(f"{folder} is on no disk of its own")
        if self.version == 2:
            (files / "io.max").write_text(" ".join([device, *(f"{side[0]}bps={rate}" for side in sides)]))
            return
        for side in sides:
            (files / f"blkio.throttle.{side}_bps_device").write_text(f"{device} {rate}")

    def remove(self) -> None:
        """Remove the group and those inside it; one that still holds a process stays."""
        for folder in dict.fromkeys(self.folders.values()):
            for inner in sorted(folder.rglob("*/"), key=lambda path: -len(path.parts)):
                with suppress(OSError):
                    inner.rmdir()
            with suppress(OSError):
                folder.rmdir()

    def remove_abandoned(self, prefix: str = PREFIX) -> list[str]:
        """End what killed recorders have left in the campaigns' groups in this one, and remove these; their names."""
        gone = []
        for name in sorted({path.name for folder in self.folders.values() for path in folder.glob(f"{prefix}[0-9]*")}):
            left = ControlGroup(self.version, {key: folder / name for key, folder in self.folders.items()})
            made = [folder for folder in left.folders.values() if folder.exists()]
            if not (made and was_there(int(name.removeprefix(prefix)), made[0].stat().st_mtime)):
                left.end_processes()
                left.remove()
                gone.append(name)
        return gone


def was_there(pid: int, made_at: float) -> bool:
    """Whether this process lives and was there when something was made (Unix seconds)."""
    try:
        return bool(psutil.Process(pid).create_time() <= made_at + CLOCK_SLACK_S)
    except (psutil.NoSuchProcess, OSError):
        return False


def joining(files: Iterable[Path], command: Sequence[str]) -> list[str]:
    """The command, made to write its process id into these files before it is anything else; it ends if it cannot."""
    script = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 97; shift; done; shift; exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *map(str, files), "--", *command]


def root_group(root: Path = CGROUP_ROOT, controllers: Sequence[str] = CONTROLLERS) -> ControlGroup | None:
    """The group that all others are in; None where there is no controller of the CPU."""
    if (root / "cgroup.controllers").is_file():
        has_cpu = "cpu" in (root / "cgroup.controllers").read_text().split()
        return ControlGroup(2, dict.fromkeys(("cpu", "memory", "blkio"), root)) if has_cpu else None
    folders = {name: root / name for name in controllers if (root / name / PROCS).is_file()}
    return ControlGroup(1, folders) if {"cpu", "cpuacct"} <= folders.keys() else None


@contextmanager
def campaign_group(
    root: Path = CGROUP_ROOT, *, weight: int = 800, prefix: str = PREFIX, controllers: Sequence[str] = CONTROLLERS
) -> Iterator[ControlGroup | None]:
    """A group of this campaign's own, gone afterwards; None where this process may not make one.

    prefix: its name is that and the process id; controllers: of version 1, those that are there are used."""
    base = root_group(root, controllers)
    if base is None:
        yield None
        return
    made: ControlGroup | None = None
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
        made.end_processes()  # what was stopped may still be about to end: a group that holds it would stay
        made.remove()


def disk_of(folder: Path) -> str | None:
    """MAJOR:MINOR of the disk that holds the folder, whole disks only; None where it has none of its own."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    place = Path("/sys/dev/block") / number
    if (place / "partition").exists():
        return (place.resolve().parent / "dev").read_text().strip()
    return number if place.exists() else None


@contextmanager
def only_recorder(what: str, *, wait_s: float = 0.0) -> Iterator[None]:
    """Nobody else records on this machine meanwhile. what: of what.

    wait_s: how long to wait for another recording's end. Raises BadSetting that names it when that is over.

    The lock is the name of an abstract Unix socket: no file that another user could have put there, none to sign and
    none to clean up; the kernel gives the name back when its holder ends, however that ends, and says who holds it. It
    counts for all users in one network namespace."""
    address, ends_s = f"\0{LOCK}", time.monotonic() + wait_s
    with socket.socket(socket.AF_UNIX) as held:
        while not _is_bound(held, address):
            left_s = ends_s - time.monotonic()
            if left_s <= 0:
                raise BadSetting(f"{what}: another recording is at work{_holder(address)}; wait for its end")
            time.sleep(min(NAP_S, left_s))
        held.listen()  # so that others can ask who we are
        yield


def _is_bound(held: socket.socket, address: str) -> bool:
    try:
        held.bind(address)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def _holder(address: str) -> str:
    """Who holds the lock, as the kernel says; empty if it has just ended or is in another container."""
    with suppress(OSError, psutil.Error, KeyError), socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(ASK_S)
        asking.connect(address)
        credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        pid, user, _ = CREDENTIALS.unpack(credentials)
        command = " ".join(" ".join(psutil.Process(pid).cmdline()).split())[:COMMAND_CHARS]
        other = "" if user == os.geteuid() else f" of user {pwd.getpwuid(user).pw_name}"
        return f" (process {pid}{other}: {command})"
    return ""


def scratch_folder(word: str, campaign: str, *, place: str, shared: Path) -> Path:
    """The folder of a campaign, made if need be, closed to others: the same one whenever it is continued.

    campaign: what tells it from others; place: a folder to use, which is taken as it is if it is ours alone; shared:
    where to make one, which is also done in a `place` that others write to. What is not ours there, link or folder, is
    left alone whatever its name is."""
    if place:
        shared = Path(place).absolute()
        shared.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_ours(shared):
            return shared
    name = f"whorl-{word}-{hashlib.sha256(campaign.encode()).hexdigest()[:DIGEST_DIGITS]}-"
    ours = sorted(filter(is_ours, shared.glob(f"{name}*")))
    return ours[0] if ours else Path(tempfile.mkdtemp(prefix=name, dir=shared))


def remove_scratch(folder: Path, place: str) -> None:
    """Remove a campaign's folder with all that is in it; a `place` that was given goes only if it is empty."""
    if folder != Path(place).absolute():
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()


def is_ours(folder: Path) -> bool:
    """Whether it is a folder, no link to one, that belongs to this user and that nobody else can write to."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & OTHERS_WRITE


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent ends; nothing outside Linux.

    So no recorder, however it ends, leaves a process behind."""
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "prctl"):
        libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent_pid:  # it ended before the request
        os._exit(1)


def tied_to_parent(
    command: Sequence[str], first_signal: signal.Signals = signal.SIGTERM, rights: Sequence[str] = ()
) -> list[str]:
    """The command, made to end with this process, its parent, where util-linux's setpriv is there.

    It does not begin where its parent ends before that is asked for. rights: further options of setpriv."""
    setpriv = shutil.which("setpriv")
    only_with_us = ["/bin/sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"', str(os.getpid())]
    death = ["--pdeathsig", first_signal.name.removeprefix("SIG"), "--"]
    return [setpriv, *rights, *death, *only_with_us, *command] if setpriv else [*command]


@dataclass(frozen=True)
class ServerFile:
    """One running server: its API, the process that keeps it, and when that process began (a pid is used again).

    is_shared: whether commands have started it for themselves (flows/engine/shared_server.py); version: of that.
    pages: where the site of reports is served."""

    url: str
    pid: int
    process_started_s: float
    is_shared: bool = False
    version: str = ""
    pages: str = ""

    @property
    def is_alive(self) -> bool:
        """Whether the process that wrote the file still runs."""
        try:
            process = psutil.Process(self.pid)
            is_it = abs(process.create_time() - self.process_started_s) < CLOCK_SLACK_S
            return bool(is_it and process.status() != psutil.STATUS_ZOMBIE)
        except psutil.Error:
            return False


def server_file(home: Path) -> Path:
    """Where the file is."""
    return home / "server.json"


def write_server_file(
    home: Path, url: str, pid: int, *, is_shared: bool = False, version: str = "", pages: str = ""
) -> None:
    """Say that process `pid` serves the API `url`; whole or not at all."""
    content = ServerFile(url, pid, psutil.Process(pid).create_time(), is_shared, version, pages)
    unfinished = server_file(home).with_suffix(f".{pid}")
    unfinished.write_text(json.dumps(asdict(content)), encoding="utf-8")
    unfinished.replace(server_file(home))


def read_server_file(home: Path) -> ServerFile | None:
    """What the file says; None if there is none, if it is damaged, or if its process is gone."""
    with suppress(OSError, ValueError, TypeError):
        server = ServerFile(**json.loads(server_file(home).read_text(encoding="utf-8")))
        return server if server.is_alive else None
    return None


def remove_server_file(home: Path) -> None:
    """Forget the server."""
    server_file(home).unlink(missing_ok=True)
