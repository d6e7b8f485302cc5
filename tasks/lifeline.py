"""A child that dies with its parent: no recorder, however it ends, leaves a process behind."""

import ctypes
import os
import shutil
import signal

PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int, signal_number: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send this process `signal_number` when its parent ends; nothing outside Linux."""
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "prctl"):
        libc.prctl(PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)
    if os.getppid() != parent_pid:  # it ended before the request
        os._exit(1)


def tied_to_parent(command: list[str]) -> list[str]:
    """The command, made to end with its parent where util-linux's setpriv is there."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--", *command] if setpriv else command
