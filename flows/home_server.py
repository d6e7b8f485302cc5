"""A Prefect server of this home: on one address, with the home's key, and gone with the process that started it.

Nothing here imports prefect."""

import atexit
import os
import socket
import sys
import threading
import time
from pathlib import Path

from flows import child
from flows.child import Child
from flows.environment import child_environment, prepare, use_key
from flows.server_file import NoServer, is_healthy, load_key

LOOPBACK = "127.0.0.1"
ANY_ADDRESS = ("0.0.0.0", "::")
START_WAIT_S = 180.0  # measured: healthy after 10 to 27 s on a busy machine with 2 cores, longer for a new database
LOOK_EVERY_S = 0.1
OWN_PATIENCE_S = 5.0
FOR_ONE_COMMAND = {"PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1", "PREFECT_SERVER_UI_ENABLED": "false"}
_own: list[Child] = []


def server_environment(home: Path, host: str, port: int) -> dict[str, str]:
    """The environment of a server of this home: it answers who shows its key, and to pages of no other server.

    Raises BadSetting for a key that cannot be used."""
    names = dict.fromkeys([page_host(host), *((LOOPBACK, "localhost") if host in (LOOPBACK, *ANY_ADDRESS) else ())])
    key = load_key(home)
    return child_environment(home, api_url=api_url(host, port), key=key) | {
        "PREFECT_SERVER_API_AUTH_STRING": key,
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": ",".join(f"http://{name}:{port}" for name in names),
        "PREFECT_SERVER_UI_API_URL": f"http://{page_host(host)}:{port}/api",
    }


def api_url(host: str, port: int) -> str:
    """Where processes of this machine reach a server that listens on this address."""
    return f"http://{LOOPBACK if host in ANY_ADDRESS else host}:{port}/api"


def page_host(host: str) -> str:
    """The host in the address of the UI."""
    return socket.getfqdn() if host in ANY_ADDRESS else host


def free_port(host: str, wanted: int) -> int:
    """The wanted port, or any free one for 0. Raises NoServer if another process listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, wanted))
        except OSError as error:
            raise NoServer(
                f"port {wanted} of {host} is taken ({error.strerror}); stop what listens there, or choose another "
                "with --port or the setting whorl.port"
            ) from error
        return int(probe.getsockname()[1])


def wait_until_healthy(server: Child, url: str, stopped: threading.Event | None = None) -> None:
    """Return as soon as the server answers, or `stopped` is set. Raises NoServer if it ends, or does not answer."""
    stopped = stopped or threading.Event()
    deadline = time.monotonic() + START_WAIT_S
    while not stopped.is_set() and not is_healthy(url):
        if server.has_ended or time.monotonic() > deadline:
            state = "ended" if server.has_ended else f"does not answer after {START_WAIT_S:g} s"
            raise NoServer(f"Prefect's server {state}: {server.last_line()} (log: {server.log})")
        stopped.wait(LOOK_EVERY_S)


def has_own_server() -> bool:
    """Whether this process works with a server that is its own, and nobody else's."""
    return bool(_own)


def ready_for_flows(home: Path, *, is_quiet: bool = True) -> None:
    """Set this process up for flows: with the server that `prepare` names, else with one that ends when it ends.

    Raises NoServer if that one does not start, and what `prepare` raises."""
    if prepare(home, is_quiet=is_quiet):
        return
    server, url = start_own(home)
    atexit.register(child.stop, server, patience_s=OWN_PATIENCE_S)  # first in, last out: Prefect sends until its exit
    os.environ["PREFECT_API_URL"] = url
    use_key(os.environ, load_key(home))
    _own.append(server)
    import flows.forms  # noqa: F401  # prefect takes seconds to import, and the server as long to start

    wait_until_healthy(server, url)


def start_own(home: Path) -> tuple[Child, str]:
    """A server without UI and schedules that dies with this process, and its API; it takes seconds until it answers."""
    port = free_port(LOOPBACK, 0)
    environment = server_environment(home, LOOPBACK, port) | FOR_ONE_COMMAND
    command = [sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app"]
    where = ["--host", LOOPBACK, "--port", str(port), "--log-level", "error", "--lifespan", "on"]
    log = home / "prefect" / "logs" / "command.log"
    return child.start("server", [*command, *where], environment, log), api_url(LOOPBACK, port)
