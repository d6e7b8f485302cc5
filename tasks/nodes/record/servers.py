"""The servers that network benchmarks talk to: one a command, kept for the whole campaign, started again if need be."""

import contextlib
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

from tasks.errors import WhorlError
from tasks.nodes.record.surroundings import Running, Surroundings, start

READY_S, NAP_S = 5.0, 0.01
LISTENS = "0A"  # state of a socket in /proc/net/tcp
FIRST_PORT = 20_700  # in namespaces of our own nobody else has one


class NoServer(WhorlError):
    """A server of a benchmark that does not listen."""


@dataclass
class Servers:
    """Servers in one surrounding, by what they are for."""

    around: Surroundings
    ports: dict[str, int] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)

    def port_of(self, purpose: str) -> int:
        """The port that the server for this has, or will have."""
        if purpose not in self.ports:
            self.ports[purpose] = FIRST_PORT + len(self.ports) if self.around.namespace else free_port()
        return self.ports[purpose]

    def ready(self, purpose: str, words: list[str]) -> None:
        """Have the server for this listen on its port. Raises NoServer."""
        running, port = self.running.get(purpose), self.port_of(purpose)
        if running and running.is_alive:
            return
        self.stop(purpose)
        running = start(words, self.around, self.around.folder / f"server-{port}.log")
        self.running[purpose] = running
        ends_s = time.monotonic() + READY_S
        while not is_listening(running.process.pid, port):
            if not running.is_alive or time.monotonic() > ends_s:
                told = running.last_words()
                self.stop(purpose)
                raise NoServer(f"{words[0]}: does not listen on port {port} ({told})")
            time.sleep(NAP_S)

    def stop(self, purpose: str | None = None) -> None:
        """Stop the server for this, or all."""
        for one in list(self.running) if purpose is None else [purpose]:
            if one in self.running:
                self.running.pop(one).end()


def free_port() -> int:
    """A TCP port of the loopback device that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_listening(pid: int, port: int) -> bool:
    """Whether somebody listens on a TCP port in the network namespace of a process."""
    wanted = f":{port:04X}"
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[1].endswith(wanted) and fields[3] == LISTENS:
                    return True
    return False
