"""Processes: what they have used, who belongs to a session, who still lives, and how all of it is ended, exactly.

A process id alone may mean another one by now: with the time of its start it names a process for good."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO

NAP_S = 0.02
SIGNALS = {int(one) for one in signal.Signals}
GRACE_S = 10.0  # a database server writes its pages before it ends
KILL_S = 5.0
PROC = Path("/proc")
# fields of /proc/PID/stat, counted from the one behind the name
STATE, PARENT, SESSION, USER, START = 0, 1, 3, 11, 19
OWN, WITH_ENDED = 2, 4  # user's and system's time, and the same of children that have ended
LOG_TAIL = 300
LOOPBACK = "127.0.0.1"
PLAIN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"}


def stat_fields(pid: int, proc: Path = PROC) -> list[str] | None:
    """/proc/PID/stat from the field behind the name, which may hold anything, on; None if the process has ended."""
    try:
        return (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def cpu_s(pid: int, n_fields: int = OWN, proc: Path = PROC, *, of: str | None = None) -> float:
    """CPU seconds of a process, user's and system's; 0 once it has ended. WITH_ENDED: also of its ended children.

    of: only if this is its parent."""
    fields = stat_fields(pid, proc) or []
    is_counted = of is None or fields[PARENT : PARENT + 1] == [of]
    return sum(map(int, fields[USER : USER + n_fields] if is_counted else ())) / os.sysconf("SC_CLK_TCK")


def processes(proc: Path = PROC) -> list[int]:
    """The ids of all processes; glob would fail where one ends while it looks."""
    return [int(path.name) for path in proc.iterdir() if path.name.isdecimal()] if proc.is_dir() else []


def descendants(pid: int, proc: Path = PROC) -> Iterator[int]:
    """A process, then all that it or one of them has started and that still lives."""
    waiting = [pid]
    while waiting:
        yield (pid := waiting.pop())
        with contextlib.suppress(OSError):
            for thread in (proc / str(pid) / "task").iterdir():
                waiting += map(int, (thread / "children").read_bytes().split())


def tree_cpu_s(pid: int) -> float:
    """CPU seconds of a process, its ended children and its living descendants; 0 where it is gone."""
    return sum(cpu_s(descendant, WITH_ENDED) for descendant in descendants(pid))


def io_of(pid: int) -> dict[str, int]:
    """What /proc/PID/io counts: bytes that a process has moved, and the disk for it; empty if nobody says."""
    with contextlib.suppress(OSError, ValueError):
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        return {name: int(value) for name, value in (line.split(": ") for line in lines)}
    return {}


def started(pid: int) -> str | None:
    """When a process started, in ticks after boot: with its id, this names it for good. None if it has ended."""
    fields = stat_fields(pid)
    return fields[START] if fields and fields[STATE] not in "ZX" else None


def members(session: int) -> list[int]:
    """The living processes of a session, its leader included."""
    stats = ((pid, stat_fields(pid)) for pid in processes())
    return [pid for pid, fields in stats if fields and int(fields[SESSION]) == session and fields[STATE] not in "ZX"]


def wait_for_end(pid: int, timeout_s: float) -> bool:
    """Wait until a process has ended, child or not, without reaping it; false if it lives on."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:  # it is gone
        return True
    try:
        return bool(select.select([descriptor], [], [], max(timeout_s, 0.0))[0])
    finally:
        os.close(descriptor)


def end_session(
    leader: int, leader_started: str, first: signal.Signals, *, home: Path | None = None, grace_s: float = GRACE_S
) -> None:
    """Signal the leader, wait for it, then kill all that is left of its session; nothing if the id means another.

    home: of those that were not started by this process: none is ended that does not live there."""
    now = started(leader)
    if now not in (None, leader_started) or (now is not None and not _lives_in(leader, home)):
        return
    if now is not None:
        _signal(leader, first)
        wait_for_end(leader, grace_s)
    ends = time.monotonic() + KILL_S
    while (left := [pid for pid in members(leader) if _lives_in(pid, home)]) and time.monotonic() < ends:
        for pid in left:
            _signal(pid, signal.SIGKILL)
        wait_for_end(left[0], NAP_S)


def _lives_in(pid: int, home: Path | None) -> bool:
    """Whether the kernel says that a process works below this folder, or was started with it as its HOME."""
    with contextlib.suppress(OSError):
        return home is None or Path(f"/proc/{pid}/cwd").readlink().is_relative_to(home) or _is_home_of(pid, home)
    return False


def _is_home_of(pid: int, home: Path) -> bool:
    with contextlib.suppress(OSError):
        homes = [raw[5:] for raw in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if raw.startswith(b"HOME=")]
        return any(Path(os.fsdecode(raw)).is_relative_to(home) for raw in homes)
    return False


def write_down(register: Path, pid: int, first: signal.Signals = signal.SIGKILL) -> None:
    """Note a process that was started here, for whoever comes after us."""
    with register.open("a") as file:
        file.write(f"{pid} {started(pid)} {int(first)}\n")


def start_in(
    folder: Path,
    command: Sequence[str],
    log: IO[bytes],
    register: Path | None,
    *,
    first: signal.Signals = signal.SIGKILL,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own; its folder is its HOME in an environment that is plain otherwise.

    register: where it is noted for whoever comes after us, with the signal that ends it first."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd=folder,
        env={**PLAIN, "HOME": str(folder), "TMPDIR": str(folder), **environment},
        start_new_session=True,
    )
    if register:
        write_down(register, process.pid, first)
    return process


def end_registered(register: Path, home: Path, *, ours: Collection[int] = ()) -> int:
    """End the sessions in a register, the last first, and forget them; returns how many there were.

    A register says only where to look. home: the folder, closed to others, that the processes must live in, however
    their ids and start times fit; what was started with it as its HOME, and not written down before its recorder was
    killed, is ended too. ours: those that this process has started itself."""
    lines = register.read_text(errors="replace").splitlines() if register.exists() else []
    for line in reversed(lines):
        match line.split():
            case [pid, start, first] if pid.isdecimal() and first.isdecimal() and int(first) in SIGNALS:
                place = None if int(pid) in ours else home.resolve()
                end_session(int(pid), start, signal.Signals(int(first)), home=place)
    late = [process for process in processes() if process != os.getpid() and _is_home_of(process, home.resolve())]
    for process in late:
        _signal(process, signal.SIGKILL)
    register.unlink(missing_ok=True)
    return len(lines) + len(late)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def last_words(log: Path) -> str:
    """The last line that a process wrote into its log."""
    with contextlib.suppress(OSError):
        lines = log.read_text(errors="replace").strip().splitlines()
        return lines[-1][-LOG_TAIL:] if lines else "no message"
    return "no message"


def free_port() -> int:
    """A TCP port of the loopback device that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
