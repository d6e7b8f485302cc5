"""Where a workload runs: a temporary folder, its own control group, an unprivileged user, loopback ports."""

import os
import pwd
import shutil
import signal
import stat
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir

from tasks.errors import BadSetting, WhorlError
from tasks.machine import is_ours, joining, not_installed
from tasks.record.processes import end_registered, last_words, write_down

USER = "nobody"
OPEN_TO_ENTER = 0o711  # the data in it belong to another user
READS_ALL = "-all,+dac_read_search"


class ProgramFailed(WhorlError):
    """A workload's program ended with an error, or was never ready."""


class Stopped(Exception):
    """The place was stopped: whoever starts something in it gives up, and that is no error."""


@dataclass(frozen=True)
class Place:
    """One workload's surroundings. folder: owned by the user that runs it, in one that the recorder alone writes to and
    keeps logs in; joins: the `cgroup.procs` files of the control groups that its processes move into; seed: of
    everything random, the run's number; facts: such as the port of the server that started last."""

    folder: Path
    joins: tuple[Path, ...] = ()
    seed: int = 1
    facts: dict[str, int] = field(default_factory=dict, compare=False)
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list, compare=False)
    is_stopped: threading.Event = field(default_factory=threading.Event, compare=False)
    lock: threading.Lock = field(default_factory=threading.Lock, compare=False)

    @property
    def register(self) -> Path:
        """The file that names every process started here: id, start, first signal; for whoever comes after us."""
        return self.folder.parent / "processes"

    def log(self, name: str) -> Path:
        """Where the process of this name writes what it says."""
        return self.folder.parent / f"{name}.log"

    def spawn(
        self,
        command: Sequence[str],
        *,
        name: str,
        first_signal: signal.Signals = signal.SIGKILL,
        environment: Mapping[str, str] | None = None,
        reads_all: bool = False,
    ) -> "subprocess.Popen[bytes]":
        """Start a process in a session of its own, in the control groups, as the unprivileged user.

        Call it from a thread that outlives it: it gets `first_signal` when that thread ends, however it ends.
        reads_all: it may read, never write, what only root may read (a Python in root's home).
        Raises Stopped once the place is stopped."""
        with self.lock, self.log(name).open("ab") as log:
            if self.is_stopped.is_set():
                raise Stopped
            process = subprocess.Popen(
                joining(self.joins, [*_demoted(first_signal, reads_all), *command]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self._environment() | dict(environment or {}),
                start_new_session=True,
            )
            self.processes.append(process)
            write_down(self.register, process.pid, first_signal)
        return process

    def _environment(self) -> dict[str, str]:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        plain = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "LANG": "C.UTF-8", "TZ": "UTC"}
        return plain | threads | {"HOME": str(self.folder), "TMPDIR": str(self.folder)}

    def open(self) -> None:
        """Let processes start here, again after a stop."""
        self.is_stopped.clear()

    def stop(self) -> None:
        """End every process that was started here, the last first, also by another recorder; may be called twice."""
        self.is_stopped.set()
        with self.lock:
            end_registered(self.register, self.folder, ours=[process.pid for process in self.processes])
            while self.processes:
                self.processes.pop().wait()

    def last_words(self, name: str) -> str:
        """The last line that a process wrote."""
        return last_words(self.log(name))

    def give(self, path: Path) -> None:
        """Make a file or folder, and what is in it, the unprivileged user's own."""
        if os.geteuid() == 0:
            user = pwd.getpwnam(USER)
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
            for _, folders, files, inside in os.fwalk(path):  # not into links: they lead to the system's own
                for name in (*folders, *files):
                    os.chown(name, user.pw_uid, user.pw_gid, dir_fd=inside, follow_symlinks=False)

    def write(self, name: str, text: str) -> Path:
        """A new file of the unprivileged user in the folder; what lay there under its name, a link too, goes."""
        path = self.folder / name
        path.unlink(missing_ok=True)
        with path.open("x") as file:  # never through a link
            file.write(text)
            if os.geteuid() == 0:
                user = pwd.getpwnam(USER)
                os.fchown(file.fileno(), user.pw_uid, user.pw_gid)
        return path


def _demoted(first_signal: signal.Signals, reads_all: bool) -> list[str]:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise ProgramFailed(not_installed("setpriv"))
    death = ["--pdeathsig", first_signal.name.removeprefix("SIG")]
    if os.geteuid() != 0:
        return [setpriv, *death, "--"]
    group = str(pwd.getpwnam(USER).pw_gid)
    user = ["--reuid", USER, "--regid", group, "--clear-groups"]
    capability = ["--inh-caps", READS_ALL, "--ambient-caps", READS_ALL, "--bounding-set", READS_ALL]
    return [setpriv, *user, *(capability if reads_all else ["--no-new-privs"]), *death, "--"]


def make_place(folder: Path, *, joins: Sequence[Path] = (), seed: int = 1) -> Place:
    """A place in a folder of ours, made if need be: its data lie in one that belongs to the unprivileged user alone.

    Raises BadSetting where that user cannot enter it, or others can write to it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_ours(folder):
        raise BadSetting(f"{folder}: others may write there; expected a folder of this user alone; choose another")
    closed = [one for one in folder.resolve().parents if not one.stat().st_mode & stat.S_IXOTH]
    if closed and os.geteuid() == 0:
        raise BadSetting(f"{folder}: the user {USER} may not enter {closed[0]}; choose a folder below {gettempdir()}")
    folder.chmod(OPEN_TO_ENTER)
    data = folder / "data"
    data.mkdir(mode=0o700, exist_ok=True)
    place = Place(data, tuple(joins), seed)
    place.give(data)
    return place
