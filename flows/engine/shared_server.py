"""The Prefect server that the commands of a home share: the first that runs a flow starts it, and it ends when idle.

A keeper, a small process of its own, starts the server, names it in server.json, and watches one lock file: every
command holds it shared for as long as it lives, so none needs to say goodbye, and one that is killed no longer counts.
Nothing here imports prefect."""

import argparse
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import IO

from flows.engine.servers import (
    HEARTBEATS,
    LOOPBACK,
    ROOT,
    Child,
    NoPrefectServer,
    api_url,
    free_port,
    is_healthy,
    last_line,
    load_key,
    prepare,
    start_server,
    stop_child,
    wait_until_healthy,
)
from tasks.machine import ServerFile, read_server_file, remove_server_file, write_server_file

CLIENTS, STARTING, LOG = "clients.lock", "starting.lock", "logs/command.log"  # below <home>/prefect
LOOK_EVERY_S = 0.2
START_WAIT_S = 200.0
END_WAIT_S = 60.0
SERVER_PATIENCE_S = 5.0
# what needs `whorl serve`
WITHOUT_SCHEDULES = {"PREFECT__SERVER_EPHEMERAL": "1", "PREFECT_SERVER_UI_ENABLED": "false"}
_held: dict[Path, IO[bytes]] = {}
_joined: list[ServerFile] = []


def ready_for_flows(home: Path, *, idle_s: float, is_quiet: bool = True) -> None:
    """Set this process up for flows: with the server that PREFECT_API_URL names, else with that of this home.

    Raises what `join` and `prepare` do."""
    if os.environ.get("PREFECT_API_URL"):
        prepare(home, is_quiet=is_quiet)
        return

    def import_prefect(server: ServerFile) -> None:
        prepare(home, is_quiet=is_quiet, api_url=server.url)
        if server.is_shared:  # nobody would miss the heartbeats of a run, which ends a second sooner without
            os.environ.pop(HEARTBEATS, None)
        import flows.engine.forms  # noqa: F401  # it takes seconds, and a server as long to start

    load_key(home)
    _joined.append(join(home, idle_s=idle_s, meanwhile=import_prefect))


def is_shared() -> bool:
    """Whether this process works with a server that only commands of this machine work with."""
    return any(server.is_shared for server in _joined)


def version() -> str:
    """What a server must have been started by to be shared: this whorl, of this environment."""
    return f"{metadata.version('whorl')} {sys.prefix}"


def join(home: Path, *, idle_s: float, meanwhile: Callable[[ServerFile], None] = lambda _: None) -> ServerFile:
    """The server of this home, started if none runs; this process counts as its client until it ends.

    Commands that start at once wait for each other, so they make one. One that another version of whorl has started is
    started anew once nobody works with it. idle_s: how long a server that is started here outlives its last client;
    meanwhile: what is worth doing while it starts. Raises NoServer if it does not start, or does not answer."""
    with _locked(home, STARTING):
        server = read_server_file(home)
        if server and server.is_shared and server.version != version() and not has_clients(home):
            end(server)
        hold(home)
        keeper = None if read_server_file(home) else _start_keeper(home, idle_s)
        server = _named(home, keeper)
        meanwhile(server)
        deadline = time.monotonic() + START_WAIT_S
        while not is_healthy(server.url):
            if not server.is_alive or time.monotonic() > deadline:
                state = "does not answer" if server.is_alive else "has ended"
                raise NoPrefectServer(
                    f"{home}: its server {state} ({server.url}, process {server.pid}); {_last_words(home)}"
                )
            time.sleep(LOOK_EVERY_S)
    return server


def hold(home: Path) -> None:
    """Count this process as a client of the home's server from now on; waits while a server is ending."""
    if home not in _held:
        file = _file(home, CLIENTS)
        fcntl.flock(file, fcntl.LOCK_SH)
        _held[home] = file


def has_clients(home: Path) -> bool:
    """Whether any process works with the server of this home."""
    with _alone(home) as is_alone:
        return not is_alone


def end(server: ServerFile) -> None:
    """Stop the process that serves a home, and what it has started. Raises NoServer if it does not end."""
    with suppress(ProcessLookupError):
        os.kill(server.pid, signal.SIGTERM)
    deadline = time.monotonic() + END_WAIT_S
    while server.is_alive:
        if time.monotonic() > deadline:
            raise NoPrefectServer(f"process {server.pid} at {server.url} does not end within {END_WAIT_S:g} s; kill it")
        time.sleep(LOOK_EVERY_S)


@contextmanager
def taken_over(home: Path, stopped: threading.Event, say: Callable[[str], None]) -> Iterator[None]:
    """A block that starts another server in place of the one that commands share, when no command works with it.

    Commands that begin meanwhile wait for the block to end. say: takes one line where it has to wait."""
    is_announced = False
    while not stopped.is_set():
        with _alone(home) as is_alone, _locked(home, STARTING, is_patient=False) as is_ours:
            if is_alone and is_ours:
                if (other := read_server_file(home)) and other.is_shared:
                    end(other)
                yield
                return
        if not is_announced:
            say("waiting for the commands that run flows in this home")
        is_announced = True
        stopped.wait(LOOK_EVERY_S)
    yield


def keep(home: Path, idle_s: float) -> None:
    """Run a server until nobody has worked with it for idle_s, the home is gone, or SIGTERM comes; then none is left.

    Raises NoServer if it does not start."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    port = free_port(LOOPBACK, 0)
    url = api_url(LOOPBACK, port)
    write_server_file(home, url, os.getpid(), is_shared=True, version=version())
    server = start_server(home, LOOPBACK, port, home / "prefect" / LOG, **WITHOUT_SCHEDULES)
    try:
        wait_until_healthy(server, url, stopped)
        last_s = time.monotonic()
        while not (stopped.wait(LOOK_EVERY_S) or server.has_ended or _is_forgotten(home)):
            with _alone(home) as is_alone:
                if not is_alone:
                    last_s = time.monotonic()
                elif time.monotonic() - last_s >= idle_s:
                    _end(home, server)  # who comes now waits for the lock, and then finds no server
                    return
    finally:
        _end(home, server)


def _end(home: Path, server: Child) -> None:
    if not _is_forgotten(home):
        remove_server_file(home)
    stop_child(server, patience_s=SERVER_PATIENCE_S)


def _is_forgotten(home: Path) -> bool:
    """Whether the home no longer names this process: the folder was removed, or put back from a copy."""
    server = read_server_file(home)
    return server is None or server.pid != os.getpid()


def _start_keeper(home: Path, idle_s: float) -> "subprocess.Popen[bytes]":
    log = home / "prefect" / LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "flows.engine.shared_server", str(home), str(idle_s)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _named(home: Path, keeper: "subprocess.Popen[bytes] | None") -> ServerFile:
    """The server that the home names, once it does."""
    while (server := read_server_file(home)) is None:
        if keeper is None or keeper.poll() is not None:
            raise NoPrefectServer(f"{home}: Prefect's server does not start; {_last_words(home)}")
        time.sleep(LOOK_EVERY_S)
    return server


def _last_words(home: Path) -> str:
    log = home / "prefect" / LOG
    return f"the end of {log}: {last_line(log) or 'it is empty'}"


@contextmanager
def _alone(home: Path) -> Iterator[bool]:
    """Whether no process holds the home's server; for the duration of the block none gets it then."""
    with _locked(home, CLIENTS, is_patient=False) as is_alone:
        yield is_alone


@contextmanager
def _locked(home: Path, name: str, *, is_patient: bool = True) -> Iterator[bool]:
    """A block that has a lock file alone; without patience it may have to do without, which it is given."""
    with _file(home, name) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if is_patient else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def _file(home: Path, name: str) -> IO[bytes]:
    path = home / "prefect" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("ab")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("idle_s", type=float)
    given = parser.parse_args()
    keep(given.home, given.idle_s)
