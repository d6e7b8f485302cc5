"""Processes of one session, as Linux sees them: who belongs to it, who still lives, and how they are ended."""

import contextlib
import os
import select
import signal
import time
from pathlib import Path

NAP_S = 0.02
GRACE_S = 10.0  # a database server writes its pages before it ends
KILL_S = 5.0
STATE, SESSION, START = 0, 3, 19  # fields of /proc/PID/stat, counted from the one behind the name


def _stat(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def started(pid: int) -> str | None:
    """When a process started, in ticks after boot: with its id, this names it for good. None if it has ended."""
    fields = _stat(pid)
    return fields[START] if fields and fields[STATE] not in "ZX" else None


def members(session: int) -> list[int]:
    """The living processes of a session, its leader included."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(folder.name))
        if fields and int(fields[SESSION]) == session and fields[STATE] not in "ZX":
            found.append(int(folder.name))
    return found


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


def end_session(leader: int, leader_started: str, first: signal.Signals, *, grace_s: float = GRACE_S) -> None:
    """Signal the leader, wait for it, then kill all that is left of its session; nothing if the id means another."""
    now = started(leader)
    if now not in (None, leader_started):
        return
    if now is not None:
        _signal(leader, first)
        wait_for_end(leader, grace_s)
    ends = time.monotonic() + KILL_S
    while (left := members(leader)) and time.monotonic() < ends:
        for pid in left:
            _signal(pid, signal.SIGKILL)
        wait_for_end(left[0], NAP_S)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
