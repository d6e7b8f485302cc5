"""What every workload shares: start, load until the time is over, stop, and say what went wrong."""

import contextlib
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

from tasks.workloads.record.programs.need import Need
from tasks.workloads.record.programs.place import LOOPBACK, Place, ProgramFailed, Stopped
from tasks.workloads.record.programs.program import Input, Role
from tasks.workloads.record.programs.session import NAP_S, wait_for_end

LONGEST_S = 3_600  # for clients that want to know how long: no run is that long
READY_S = 30.0
STEP_S = 120.0


class Service(ABC):
    """A workload whose run is: `start` its servers, if it has any, then `load` them with one client process."""

    name: str
    title: str
    inputs: tuple[Input, ...]
    needs: tuple[Need, ...]
    kin: str | None = None
    other_inputs: tuple[Input, ...] = ()
    role: Role = "workload"

    def prepare(self, place: Place) -> None:
        """Make the data on disk; no process is left."""
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
        """Start, load until `seconds` have passed, stop."""
        place.open()
        ends = time.monotonic() + seconds
        try:
            self.start(place)
            client = self.load(place, input)
            has_ended = wait_for_end(client.pid, ends - time.monotonic())
            if has_ended:
                raise failure(self.name, place, "load", f"ended too early, with status {client.wait()}")
        except Stopped:
            return
        except ProgramFailed:
            if not place.is_stopped.is_set():  # what was stopped may well fail
                raise
        finally:
            place.stop()

    def stop(self, place: Place) -> None:
        """End every process of the place."""
        place.stop()

    def fill(self, place: Place) -> None:  # noqa: B027 - not every workload has data
        """Make the data on disk."""

    def start(self, place: Place) -> None:  # noqa: B027 - not every workload has a server
        """Start the servers and wait until they answer."""

    @abstractmethod
    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start the client, under the name `load`; it goes on until it is killed."""


def failure(workload: str, place: Place, name: str, problem: str) -> ProgramFailed:
    """The error of a process, with its last words."""
    return ProgramFailed(f"{workload}: {name} {problem}: {place.last_words(name)}; see {place.log(name)}")


def wait_until_it_listens(workload: str, place: Place, name: str, server: "subprocess.Popen[bytes]", port: int) -> None:
    """Wait until a server takes connections on a loopback port. Raises ProgramFailed if it ends first or is late."""
    late = time.monotonic() + READY_S
    while time.monotonic() < late:
        with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1):
            return
        if wait_for_end(server.pid, NAP_S):
            raise failure(workload, place, name, "ended before it was ready")
    raise failure(workload, place, name, f"did not listen after {READY_S:.0f} s")


def finish(workload: str, place: Place, name: str, command: Sequence[str]) -> None:
    """Run one step of a preparation to its end. Raises ProgramFailed if it fails or takes too long."""
    process = place.spawn(command, name=name)
    if not wait_for_end(process.pid, STEP_S):
        raise failure(workload, place, name, f"took more than {STEP_S:.0f} s")
    if process.wait() != 0:
        raise failure(workload, place, name, f"ended with status {process.returncode}")
