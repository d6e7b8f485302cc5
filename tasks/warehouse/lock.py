"""The lock that readers share and writers own. The kernel drops it when its process dies, however it dies.

Three files. A writer waits for `.lock` while it holds `.gate`, so that readers who come later queue behind it and ten
busy readers cannot starve one writer. Whoever waits holds `.queue`, shared; whoever comes and finds it held sits back
for a moment, so that a process which takes the lock again and again cannot starve the others."""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

import psutil

from tasks.errors import WarehouseBusy
from tasks.warehouse.faults import NO_RIGHT, make_folder, storage_faults

Mode = Literal["shared", "exclusive"]
FLAGS = {"shared": fcntl.LOCK_SH, "exclusive": fcntl.LOCK_EX}
POLL_S = 0.01
COMMAND_CHARS = 80  # of the holder's command line, in the message


class _Held(threading.local):
    """What this thread holds. The process id is part of the key: a forked child holds nothing."""

    def __init__(self) -> None:
        self.modes: dict[tuple[int, Path], Mode] = {}


_held = _Held()


@contextmanager
def hold(folder: Path, mode: Mode, wait_s: float) -> Iterator[None]:
    """Hold the lock of `folder` for the duration of the block; a reader may read inside its own block.

    Raises WarehouseBusy, naming the holder, if it is not free within wait_s seconds, and at once if this thread would
    wait for itself; BadSetting if the folder cannot be used."""
    make_folder(folder)
    key = (os.getpid(), folder.resolve())
    outer = _held.modes.get(key)
    if outer == "shared" == mode:
        yield
        return
    if outer:
        raise WarehouseBusy(
            f"{folder}: this thread has the warehouse already, {outer}, and asks for it once more, {mode}; "
            "end the outer block first"
        )
    with ExitStack() as stack:
        _take(stack, folder, mode, wait_s)
        _held.modes[key] = mode
        try:
            yield
        finally:
            _held.modes.pop(key, None)


def _take(stack: ExitStack, folder: Path, mode: Mode, wait_s: float) -> None:
    """Lock the files of the folder until the stack is closed."""
    deadline = time.monotonic() + wait_s
    names = (".queue", ".gate", ".lock")
    queue, gate, lock = (stack.enter_context(_handle(folder / name, mode)) for name in names)
    if _try(queue, fcntl.LOCK_EX):
        fcntl.flock(queue, fcntl.LOCK_UN)
    else:
        time.sleep(min(2 * POLL_S, wait_s))  # those who wait already try twice before we do
    for handle, files in ((gate, (".gate", ".lock")), (lock, (".lock",))):
        while not _try(handle, FLAGS[mode]):
            _try(queue, fcntl.LOCK_SH)
            if time.monotonic() > deadline:
                raise WarehouseBusy(_busy([folder / name for name in files], wait_s))
            time.sleep(POLL_S)
    fcntl.flock(queue, fcntl.LOCK_UN)
    if mode == "shared":
        fcntl.flock(gate, fcntl.LOCK_UN)


@contextmanager
def _handle(path: Path, mode: Mode) -> Iterator[int]:
    """An open lock file. Unlocked explicitly: a forked child may have inherited the handle and live on."""
    with storage_faults(path.parent):
        handle, owner = _open(path, mode), os.getpid()
    try:
        yield handle
    finally:
        if os.getpid() == owner:
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _open(path: Path, mode: Mode) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if mode == "exclusive" or error.errno not in NO_RIGHT or not path.exists():
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # who may only read the home may still share the lock


def _try(handle: int, flag: int) -> bool:
    try:
        fcntl.flock(handle, flag | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _busy(paths: list[Path], wait_s: float) -> str:
    holders = dict.fromkeys(pid for path in paths for pid in holders_of(path))
    names = [_describe(pid) for pid in holders] or ["another process"]
    return (
        f"{paths[0].parent}: the warehouse is in use by {', '.join(names)}; waited {wait_s:g} s for it; "
        "try again when it has ended, or wait longer with WHORL_WHORL__LOCK_WAIT_S"
    )


def holders_of(path: Path) -> list[int]:
    """Process ids that hold an flock on the file now, from /proc/locks; empty where there is no such table."""
    table, status = Path("/proc/locks"), path.stat()
    if not table.exists():
        return []
    name = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    rows = [line.split() for line in table.read_text(encoding="ascii").splitlines()]
    return sorted({int(row[4]) for row in rows if "->" not in row and row[1] == "FLOCK" and row[5] == name})


def _describe(pid: int) -> str:
    if pid == os.getpid():
        return f"another thread of this process ({pid})"
    try:
        command = " ".join(psutil.Process(pid).cmdline())
    except (psutil.Error, ValueError):  # gone meanwhile, or on another machine
        command = "command unknown"
    return f"process {pid} ({command[:COMMAND_CHARS]})"
