"""One recording at a time on a machine, whichever word it is for: a second one would be measured by the first.

The lock is the name of an abstract Unix socket. It lies in no folder: there is no file that another user could have put
there, as a link or otherwise, none to sign and none to clean up; the kernel gives the name back when its holder ends,
however that ends, and says who holds it. It counts for all users in one network namespace."""

import contextlib
import errno
import os
import pwd
import socket
import struct
import time
from collections.abc import Iterator

import psutil

from tasks.errors import BadSetting

LOCK = "whorl-recorders"
NAP_S = 0.5
ASK_S = 1.0
COMMAND_CHARS = 80
CREDENTIALS = struct.Struct("3i")  # process, user and group, as the kernel knows them


@contextlib.contextmanager
def only_recorder(what: str, lock: str | None = None, *, wait_s: float = 0.0) -> Iterator[None]:
    """Nobody else records on this machine meanwhile. what: of what; lock: another name than that of the machine.

    wait_s: how long to wait for another recording's end. Raises BadSetting that names it when that is over."""
    address, ends_s = f"\0{lock or LOCK}", time.monotonic() + wait_s
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
    with contextlib.suppress(OSError, psutil.Error, KeyError), socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(ASK_S)
        asking.connect(address)
        told = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        pid, user, _ = CREDENTIALS.unpack(told)
        command = " ".join(" ".join(psutil.Process(pid).cmdline()).split())[:COMMAND_CHARS]
        other = "" if user == os.geteuid() else f" of user {pwd.getpwuid(user).pw_name}"
        return f" (process {pid}{other}: {command})"
    return ""
