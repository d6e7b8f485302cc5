"""A workload to record: its inputs, what it needs, how it is prepared, run and stopped; and where it runs: a temporary
folder, its own control group, an unprivileged user, loopback ports."""

import contextlib
import importlib.util
import json
import os
import pwd
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import Literal

from tasks import machine
from tasks.errors import BadSetting, MissingTool, WhorlError
from tasks.record.processes import LOOPBACK, NAP_S, end_registered, free_port, last_words, start_in, wait_for_end

Option = str | int | float
Options = Mapping[str, Option]
Inputs = Mapping[str, Options]  # ways to load a workload (data size, mix, concurrency), by name
Client = subprocess.Popen[bytes]
N_USUAL = 2  # inputs of a workload that are recorded and learned; more are recorded only as a condition
Role = Literal["workload", "unlearned", "load", "idle"]
LONGEST_S = 3_600  # for clients that want to know how long: no run is that long
READY_S = 30.0
STEP_S = 120.0
SCRIPTS = Path(__file__).parent / "loads.py"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# the loop waits in the background, so that SIGTERM is heard at once and takes the commands of the moment along
LOOP = """trap 'kill -KILL 0' TERM
while :; do
{body}
done &
wait $!
"""
USER = "nobody"
OPEN_TO_ENTER = 0o711  # the data in it belong to another user
READS_ALL = "-all,+dac_read_search"


class ProgramFailed(WhorlError):
    """A workload's program ended with an error, or was never ready."""


class Stopped(Exception):
    """The place was stopped: whoever starts something in it gives up, and that is no error."""


@dataclass(frozen=True)
class ProgramPlace:
    """One workload's surroundings. folder: owned by the user that runs it, in one that the recorder alone writes to and
    keeps logs in; joins: the `cgroup.procs` files of the control groups that its processes move into; seed: of
    everything random, the run's number; facts: such as the port of the server that started last."""

    folder: Path
    joins: tuple[Path, ...] = ()
    seed: int = 1
    facts: dict[str, int] = field(default_factory=dict, compare=False)
    processes: list[Client] = field(default_factory=list, compare=False)
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
    ) -> Client:
        """Start a process in a session of its own, in the control groups, as the unprivileged user.

        Call it from a thread that outlives it: it gets `first_signal` when that thread ends, however it ends.
        reads_all: it may read, never write, what only root may read (a Python in root's home).
        Raises Stopped once the place is stopped."""
        with self.lock, self.log(name).open("ab") as log:
            if self.is_stopped.is_set():
                raise Stopped
            inside = machine.joining(self.joins, machine.tied_to_parent(command, first_signal, _rights(reads_all)))
            more = {**dict.fromkeys(THREADS, "1"), **(environment or {})}
            process = start_in(self.folder, inside, log, self.register, first=first_signal, environment=more)
            self.processes.append(process)
        return process

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


def _rights(reads_all: bool) -> list[str]:
    if shutil.which("setpriv") is None:
        raise ProgramFailed(machine.not_installed("setpriv"))
    if os.geteuid() != 0:
        return []
    group = str(pwd.getpwnam(USER).pw_gid)
    user = ["--reuid", USER, "--regid", group, "--clear-groups"]
    capability = ["--inh-caps", READS_ALL, "--ambient-caps", READS_ALL, "--bounding-set", READS_ALL]
    return [*user, *(capability if reads_all else ["--no-new-privs"])]


def make_place(folder: Path, seed: int = 1) -> ProgramPlace:
    """A place in a folder of ours, made if need be: its data lie in one that belongs to the unprivileged user alone.

    Raises BadSetting where that user cannot enter it, or others can write to it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not machine.is_ours(folder):
        raise BadSetting(f"{folder}: others may write there; expected a folder of this user alone; choose another")
    closed = [parent for parent in folder.resolve().parents if not parent.stat().st_mode & stat.S_IXOTH]
    if closed and os.geteuid() == 0:
        raise BadSetting(f"{folder}: the user {USER} may not enter {closed[0]}; choose a folder below {gettempdir()}")
    folder.chmod(OPEN_TO_ENTER)
    data = folder / "data"
    data.mkdir(mode=0o700, exist_ok=True)
    place = ProgramPlace(data, seed=seed)
    place.give(data)
    return place


@dataclass(frozen=True)
class Need:
    """A program, a Python module or a file. names: the first that is there counts; package: where it comes from."""

    names: tuple[str, ...]
    package: str
    kind: Literal["program", "module", "file"] = "program"

    def find(self) -> str | None:
        """The path of the program or file, or the name of the module; None where it is not installed."""
        if self.kind == "program":
            return machine.find_tool(*self.names)
        if self.kind == "file":
            return next((name for name in self.names if Path(name).exists()), None)
        return next((name for name in self.names if importlib.util.find_spec(name)), None)

    def path(self) -> str:
        """The path of the program or file. Raises MissingTool, with the package, where it is not installed."""
        path = self.find()
        if path is None:
            raise MissingTool(self.lack())
        return path

    def lack(self) -> str:
        """One line that says what is not installed and what to do."""
        if self.kind == "module":
            return f"{self.names[0]} is not installed (pip install {self.package})"
        return machine.not_installed(self.names[0], self.package)


def lacks(needs: Sequence[Need]) -> list[str]:
    """One line for each need that is not met."""
    return [need.lack() for need in needs if need.find() is None]


def inputs_of(options: str, **rows: tuple[Option, ...]) -> Inputs:
    """Inputs as a table. options: their names, with spaces between; rows: a value for each option."""
    return {name: dict(zip(options.split(), row, strict=True)) for name, row in rows.items()}


class Program(ABC):
    """A workload whose run is: `start` its servers, if it has any, then `load` them with one client process.

    Servers start within the run, with the load, and stop at its end: start-up is part of what is recorded, and no
    run finds the warm caches of the one before. Only what lies on disk stays from `prepare` on. Servers and clients
    are spawned alike, so both belong to the workload.

    name: as it stands in recordings. inputs: ways to load it; those of a workload after the first two are recorded only
    as a condition. needs: what must be installed. role: a workload to learn, one that is never learned, a load that
    only disturbs, or nothing."""

    name: str
    inputs: Inputs
    needs: tuple[Need, ...]
    role: Role = "workload"

    def fill(self, place: ProgramPlace) -> None:  # noqa: B027 - not every workload has data
        """Make the data on disk."""

    def start(self, place: ProgramPlace) -> None:  # noqa: B027 - not every workload has a server
        """Start the servers and wait until they answer."""

    @abstractmethod
    def load(self, place: ProgramPlace, options: Options) -> Client:
        """Start the client, under the name `load`; it goes on until it is killed."""

    def prepare(self, place: ProgramPlace) -> None:
        """Make the data on disk, once a round; no process is left. Raises MissingTool or ProgramFailed."""
        place.open()
        try:
            for need in self.needs:
                need.path()
            self.fill(place)
        except Stopped:
            return
        finally:
            place.stop()

    def run(self, place: ProgramPlace, options: Options, seconds: float) -> None:
        """Start everything, load it until `seconds` have passed, stop everything.

        Returns early, without an error, once `stop` is called from elsewhere. Raises ProgramFailed if it fails."""
        place.open()
        ends = time.monotonic() + seconds
        try:
            self.start(place)
            client = self.load(place, options)
            if wait_for_end(client.pid, ends - time.monotonic()):
                raise self.failure(place, "load", f"ended too early, with status {client.wait()}")
        except Stopped:
            return
        except ProgramFailed:
            if not place.is_stopped.is_set():  # what was stopped may well fail
                raise
        finally:
            place.stop()

    def failure(self, place: ProgramPlace, name: str, problem: str) -> ProgramFailed:
        """The error of a process, with its last words."""
        return ProgramFailed(f"{self.name}: {name} {problem}: {place.last_words(name)}; see {place.log(name)}")

    def finish(self, place: ProgramPlace, need: Need, flags: str, **values: Option) -> None:
        """Run one step of a preparation to its end. Raises ProgramFailed if it fails or takes too long."""
        name = need.names[0]
        process = place.spawn(command_of(place, need, flags, values), name=name)
        if not wait_for_end(process.pid, STEP_S):
            raise self.failure(place, name, f"took more than {STEP_S:.0f} s")
        if process.wait() != 0:
            raise self.failure(place, name, f"ended with status {process.returncode}")

    def serve(
        self, place: ProgramPlace, need: Need, flags: str, first: signal.Signals = signal.SIGKILL, *, port: int = 0
    ) -> None:
        """Start a server on a loopback port, wait until it takes connections, and remember the port.

        Raises ProgramFailed if it ends first or is late."""
        place.facts["port"] = port or free_port()
        address = (LOOPBACK, place.facts["port"])
        server = place.spawn(command_of(place, need, flags, {}), name=need.names[0], first_signal=first)

        def is_ready() -> bool:
            with contextlib.suppress(OSError), socket.create_connection(address, timeout=1):
                return True
            return False

        self.wait_until(place, server, need.names[0], is_ready)

    def wait_until(self, place: ProgramPlace, server: Client, name: str, is_ready: Callable[[], bool]) -> None:
        """Wait for a server. Raises ProgramFailed if it ends first or is late."""
        late = time.monotonic() + READY_S
        while not is_ready():
            if wait_for_end(server.pid, NAP_S):
                raise self.failure(place, name, "ended before it was ready")
            if time.monotonic() > late:
                raise self.failure(place, name, f"did not listen after {READY_S:.0f} s")


def command_of(place: ProgramPlace, need: Need, flags: str, values: Options) -> list[str]:
    """A program's command line. flags: with {folder}, {seed}, {address}, {port}, {longest} (seconds) and these values
    to be filled in; those that an empty value leaves empty are dropped. Raises MissingTool."""
    known = {"folder": place.folder, "seed": place.seed, "address": LOOPBACK, "longest": LONGEST_S}
    filled = [(flag, flag.format(**known, **place.facts, **values)) for flag in shlex.split(flags)]
    return [need.path(), *(word for flag, word in filled if word or not flag)]


def spawn_client(place: ProgramPlace, need: Need, flags: str, options: Options) -> Client:
    """Start what loads a workload, under the name `load`; flags as in `command_of`."""
    return place.spawn(command_of(place, need, flags, options), name="load")


def spawn_loop(place: ProgramPlace, body: str) -> Client:
    """Repeat a piece of shell script, under the name `load`, until the place is stopped or a command fails."""
    return place.spawn(["/bin/sh", "-e", "-c", LOOP.format(body=body)], name="load", first_signal=signal.SIGTERM)


def spawn_python(place: ProgramPlace, load: str, options: Options) -> Client:
    """Start a load of `loads` in a Python of its own, told its options; threads: what numpy and torch may use."""
    load_options = {"seed": place.seed, "threads": 1, **options}
    # -P: the folder of the scripts is no place to import from
    command = [sys.executable, "-P", "-B", str(SCRIPTS), load, json.dumps(load_options)]
    return place.spawn(
        command, name="load", reads_all=True, environment=dict.fromkeys(THREADS, str(load_options["threads"]))
    )


class Command(Program):
    """One command that goes on until it is killed, and the server that it loads, if any. flags, server_flags: as in
    `command_of`. client: its program; a module, or none, for a load of `loads` that is called after the program."""

    def __init__(
        self,
        name: str,
        client: Need | None,
        flags: str,
        inputs: Inputs,
        *,
        role: Role = "workload",
        server: Need | None = None,
        server_flags: str = "",
        first: signal.Signals = signal.SIGKILL,
    ) -> None:
        self.name, self.client, self.flags, self.inputs, self.role = name, client, flags, inputs, role
        self.server, self.server_flags, self.first = server, server_flags, first
        self.needs = tuple(dict.fromkeys(need for need in (server, client) if need))

    def start(self, place: ProgramPlace) -> None:
        """Start the server."""
        if self.server:
            self.serve(place, self.server, self.server_flags, self.first)

    def load(self, place: ProgramPlace, options: Options) -> Client:
        """Start the command."""
        if self.client is None or self.client.kind == "module":
            return spawn_python(place, self.name, {**place.facts, **options})
        return spawn_client(place, self.client, self.flags, options)
