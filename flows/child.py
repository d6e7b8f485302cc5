"""One process that `whorl serve` keeps: started in a group of its own, logged to a file, and stopped for certain."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

TAIL_CHARS = 400
SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2); it outlives exec
BOUND = f"""
import ctypes, os, sys
ctypes.CDLL(None).prctl({SET_PARENT_DEATH_SIGNAL}, {int(signal.SIGKILL)})
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that started this one is gone already")
os.execvp(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class Child:
    """A running process, with the file that its output goes to."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def has_ended(self) -> bool:
        """Whether it is no longer there."""
        return self.process.poll() is not None

    @property
    def was_killed(self) -> bool:
        """Whether a signal ended it."""
        return self.has_ended and self.process.returncode < 0

    def last_line(self) -> str:
        """The end of its log, for an error message."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1][:TAIL_CHARS] if lines else "its log is empty"


def start(name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> Child:
    """Start a process that Ctrl-C at the terminal does not reach, and that dies with this one if that is killed."""
    log.parent.mkdir(parents=True, exist_ok=True)
    bound = [sys.executable, "-c", BOUND, str(os.getpid()), *command] if sys.platform == "linux" else list(command)
    with log.open("ab") as output:
        process = subprocess.Popen(
            bound,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Child(name, process, log)


def stop(child: Child, *, patience_s: float) -> None:
    """End a process and everything that it started: asked first, and after patience_s without asking."""
    family = _family(child.process.pid)
    with suppress(ProcessLookupError):
        os.kill(child.process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.process.wait(patience_s)
    family |= _family(child.process.pid)
    left = [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=patience_s)
    child.process.wait()


def _family(pid: int) -> set[psutil.Process]:
    try:
        parent = psutil.Process(pid)
        return {parent, *parent.children(recursive=True)}
    except psutil.Error:
        return set()
