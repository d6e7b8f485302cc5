"""One recording at a time on a machine, whichever word it is for: a second one would be measured by the first."""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tasks.errors import BadSetting

LOCK_NAME = "whorl-recorders.lock"
NAP_S = 0.5
MOST_TOLD = 100


def machine_lock() -> Path:
    """The lock file of this machine. The file stays; the lock on it ends with whoever holds it."""
    return Path(tempfile.gettempdir()) / LOCK_NAME


@contextlib.contextmanager
def only_recorder(what: str, lock: Path | None = None, *, wait_s: float = 0.0) -> Iterator[None]:
    """Nobody else records on this machine meanwhile. what: of what, as those that wait for us are told.

    wait_s: how long to wait for another recording's end. Raises BadSetting that names it when that is over."""
    path = lock or machine_lock()
    handle = _opened(path)
    try:
        _take(handle, path, what, time.monotonic() + wait_s)
        with contextlib.suppress(OSError):  # the file of another user: we hold it, but cannot sign it
            path.write_text(f"{what} {os.getpid()}")
        yield
    finally:
        os.close(handle)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _take(handle: int, path: Path, what: str, ends_s: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= ends_s:
                theirs, _, pid = path.read_text(errors="replace")[:MOST_TOLD].partition(" ")
                told = f" (process {pid})" if pid else ""
                raise BadSetting(
                    f"{path}: another recording of {theirs or what} is at work{told}; wait for its end"
                ) from error
        time.sleep(min(NAP_S, max(0.0, ends_s - time.monotonic())))
