"""A workload to record: what it is, its inputs, what it needs, and how it is prepared, run and stopped."""

import contextlib
import importlib.util
import json
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tasks import machine
from tasks.errors import MissingTool
from tasks.record.processes import LOOPBACK, NAP_S, wait_for_end
from tasks.workloads.record.programs.place import Place, ProgramFailed, Stopped

Option = str | int | float
Role = Literal["workload", "unlearned", "load", "idle"]
LONGEST_S = 3_600  # for clients that want to know how long: no run is that long
READY_S = 30.0
STEP_S = 120.0
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
SCRIPTS = Path(__file__).parent / "loads.py"
# the loop waits in the background, so that SIGTERM is heard at once and takes the commands of the moment along
LOOP = """trap 'kill -KILL 0' TERM
while :; do
{body}
done &
wait $!
"""


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
        found = self.find()
        if found is None:
            raise MissingTool(self.lack())
        return found

    def lack(self) -> str:
        """One line that says what is not installed and what to do."""
        if self.kind == "module":
            return f"{self.names[0]} is not installed (pip install {self.package})"
        return machine.not_installed(self.names[0], self.package)


def lacks(needs: Sequence[Need]) -> list[str]:
    """One line for each need that is not met."""
    return [need.lack() for need in needs if need.find() is None]


@dataclass(frozen=True)
class Input:
    """One way to load a workload: data size, mix or concurrency. words: one line of what it is."""

    name: str
    options: Mapping[str, Option]
    words: str


def inputs_of(options: str, *rows: tuple[Option, ...]) -> tuple[Input, ...]:
    """Inputs as a table. options: their names, with spaces between; rows: name, a value for each option, words."""
    names = options.split()
    return tuple(Input(str(row[0]), dict(zip(names, row[1:-1], strict=True)), str(row[-1])) for row in rows)


class Program(ABC):
    """A workload whose run is: `start` its servers, if it has any, then `load` them with one client process.

    Servers start within the run, with the load, and stop at its end: start-up is part of what is recorded, and no
    run finds the warm caches of the one before. Only what lies on disk stays from `prepare` on. Servers and clients
    are spawned alike, so both belong to the workload.

    Attributes:
        name: As it stands in recordings.
        title: What it is, in one line.
        inputs: Ways to load it, two at least of a workload.
        needs: What must be installed.
        kin: The workload that it resembles most, by design; None where there is none.
        other_inputs: More ways, recorded only as a condition.
        role: A workload to learn, one that is never learned, a load that only disturbs, or nothing.
    """

    name: str
    title: str
    inputs: tuple[Input, ...]
    needs: tuple[Need, ...]
    kin: str | None = None
    other_inputs: tuple[Input, ...] = ()
    role: Role = "workload"

    def fill(self, place: Place) -> None:  # noqa: B027 - not every workload has data
        """Make the data on disk."""

    def start(self, place: Place) -> None:  # noqa: B027 - not every workload has a server
        """Start the servers and wait until they answer."""

    @abstractmethod
    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start the client, under the name `load`; it goes on until it is killed."""

    def prepare(self, place: Place) -> None:
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

    def run(self, place: Place, input: Input, seconds: float) -> None:
        """Start everything, load it until `seconds` have passed, stop everything.

        Returns early, without an error, once `stop` is called from elsewhere. Raises ProgramFailed if it fails."""
        place.open()
        ends = time.monotonic() + seconds
        try:
            self.start(place)
            client = self.load(place, input)
            if wait_for_end(client.pid, ends - time.monotonic()):
                raise self.failure(place, "load", f"ended too early, with status {client.wait()}")
        except Stopped:
            return
        except ProgramFailed:
            if not place.is_stopped.is_set():  # what was stopped may well fail
                raise
        finally:
            place.stop()

    def stop(self, place: Place) -> None:
        """End every process of the place at once, also those of a recorder that was killed; may be called twice."""
        place.stop()

    def failure(self, place: Place, name: str, problem: str) -> ProgramFailed:
        """The error of a process, with its last words."""
        return ProgramFailed(f"{self.name}: {name} {problem}: {place.last_words(name)}; see {place.log(name)}")

    def finish(self, place: Place, name: str, command: Sequence[str]) -> None:
        """Run one step of a preparation to its end. Raises ProgramFailed if it fails or takes too long."""
        process = place.spawn(command, name=name)
        if not wait_for_end(process.pid, STEP_S):
            raise self.failure(place, name, f"took more than {STEP_S:.0f} s")
        if process.wait() != 0:
            raise self.failure(place, name, f"ended with status {process.returncode}")

    def serve(
        self, place: Place, name: str, command: Sequence[str], port: int, first: signal.Signals = signal.SIGKILL
    ) -> None:
        """Start a server, wait until it takes connections on a loopback port, and remember the port.

        Raises ProgramFailed if it ends first or is late."""
        server = place.spawn(command, name=name, first_signal=first)
        late = time.monotonic() + READY_S
        while time.monotonic() < late:
            with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1):
                place.facts["port"] = port
                return
            if wait_for_end(server.pid, NAP_S):
                raise self.failure(place, name, "ended before it was ready")
        raise self.failure(place, name, f"did not listen after {READY_S:.0f} s")


def spawn_loop(place: Place, body: str) -> "subprocess.Popen[bytes]":
    """Repeat a piece of shell script, under the name `load`, until the place is stopped or a command fails."""
    return place.spawn(["/bin/sh", "-e", "-c", LOOP.format(body=body)], name="load", first_signal=signal.SIGTERM)


def spawn_python(
    place: Place, load: str, options: Mapping[str, Option], *, threads: int = 1
) -> "subprocess.Popen[bytes]":
    """Start a load of `loads` in a Python of its own, told its options as JSON.

    threads: what numpy and torch may use."""
    told = json.dumps({"seed": place.seed, "threads": threads, **options})
    # -P: the folder of the scripts is no place to import from
    command = [sys.executable, "-P", "-B", str(SCRIPTS), load, told]
    return place.spawn(command, name="load", reads_all=True, environment=dict.fromkeys(THREADS, str(threads)))
