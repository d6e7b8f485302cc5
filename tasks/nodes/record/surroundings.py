"""Programs that the recorder starts: where each runs, and how exactly it, and nothing else, is ended."""

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tasks.machine_groups import Group
from tasks.nodes.record.limits import end_processes
from tasks.workloads.record.programs.session import end_session, started, wait_for_end, write_down

# the process moves itself into the control groups before it becomes anything else
JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 97; shift; done; shift; exec "$@"'
REGISTER = "processes"
LOG_TAIL = 300
MOST_LOG_BYTES = 8_000_000
PLAIN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"}


@dataclass(frozen=True)
class Surroundings:
    """Where a program runs. folder: its working folder; namespace: of the network, by name, empty for the machine's;
    cores: processors that it may use, empty for all; register: where its id is written down for a later call;
    is_shared: its group holds other programs too, which live on when this one is ended."""

    folder: Path
    group: Group | None = None
    namespace: str = ""
    cores: tuple[int, ...] = ()
    register: Path | None = None
    is_shared: bool = False

    def command(self, words: Sequence[str]) -> list[str]:
        """The words, made to move into the surroundings first."""
        folders = dict.fromkeys(self.group.folders.values()) if self.group else {}
        joins = [str(folder / "cgroup.procs") for folder in folders]
        tied = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        entering = ["nsenter", f"--net=/run/netns/{self.namespace}", "--"] if self.namespace else []
        pinned = ["taskset", "-c", ",".join(map(str, self.cores))] if self.cores else []
        return ["/bin/sh", "-c", JOIN, "sh", *joins, "--", *tied, *entering, *pinned, *words]


@dataclass
class Running:
    """A program at work, in a session of its own. group: its own, None where it shares one."""

    process: "subprocess.Popen[bytes]"
    started: str
    out: Path
    group: Group | None
    began_s: float = field(default_factory=time.monotonic)
    ended_s: float = float("nan")

    @property
    def is_alive(self) -> bool:
        """Whether it, its first process, has not ended."""
        return self.process.poll() is None

    def wait(self, limit_s: float) -> bool:
        """Wait for its end; false if it lives on after limit_s."""
        has_ended = wait_for_end(self.process.pid, limit_s)
        self.ended_s = time.monotonic()
        return has_ended

    def end(self) -> int:
        """End all of it, whatever it has started; returns its exit status, negative for a signal."""
        end_session(self.process.pid, self.started, signal.SIGKILL)
        if self.group:
            end_processes(self.group)
        return self.process.wait()

    def said(self) -> str:
        """All that it wrote."""
        with contextlib.suppress(OSError), self.out.open("rb") as file:
            return file.read(MOST_LOG_BYTES).decode(errors="replace")
        return ""

    def last_words(self) -> str:
        """The last line that it wrote."""
        lines = self.said().strip().splitlines()
        return lines[-1][-LOG_TAIL:] if lines else "no message"


def start(words: Sequence[str], around: Surroundings, out: Path) -> Running:
    """Start a program. out: file for what it writes.

    Call it from a thread that outlives it: it is killed when that thread ends, however it ends."""
    with out.open("wb") as log:
        process = subprocess.Popen(
            around.command(words),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=around.folder,
            env=PLAIN | {"HOME": str(around.folder), "TMPDIR": str(around.folder)},
            start_new_session=True,
        )
    running = Running(process, started(process.pid) or "", out, None if around.is_shared else around.group)
    if around.register:
        write_down(around.register, process.pid)
    return running


def run(words: Sequence[str], around: Surroundings, out: Path, limit_s: float) -> tuple[Running, int | None]:
    """Run a program to its end; its exit status is None if it took longer than limit_s and was killed."""
    running = start(words, around, out)
    try:
        has_ended = running.wait(limit_s)
    finally:
        status = running.end()
    return running, status if has_ended else None
