"""Prefect servers of a home and the processes that keep them: the file that names the one that runs, its key, and the
environment of what talks to it. Nothing here imports prefect."""

import base64
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tasks.errors import BadSetting, WhorlError
from tasks.intake.http_server import FOR_OTHER_SERVERS, is_same_server
from tasks.machine import read_server_file

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
        return last_line(self.log) or "its log is empty"


def last_line(log: Path) -> str:
    """The last line with anything on it; "" without one."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return text.rstrip().rpartition("\n")[2].strip()[:TAIL_CHARS]


def start_child(name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> Child:
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


def stop_child(child: Child, *, patience_s: float) -> None:
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


RUN_ID = "PREFECT__FLOW_RUN_ID"  # the worker sets it in the environment of a run's process
FINAL = {"COMPLETED", "FAILED", "CANCELLED", "CRASHED"}
REQUEST_TIMEOUT_S = 10.0
LOOK_EVERY_S = 0.2
MESSAGE = "Stopped together with 'whorl serve'; retry it to continue after its last finished step"


def end_runs(worker_pid: int, api_url: str, key: str, *, patience_s: float) -> list[str]:
    """End every flow run that this worker runs now; returns their ids. key: that of the server.

    The run or its worker gets patience_s to write down the end; after that it is written from here."""
    by_run = _runs_of(worker_pid)
    processes = [process for family in by_run.values() for process in family]
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    _, left = psutil.wait_procs(processes, timeout=patience_s)
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    deadline = time.monotonic() + patience_s
    open_ids = list(by_run)
    while open_ids := [
        run_id
        for run_id in open_ids
        if (run := _ask(f"{api_url}/flow_runs/{run_id}", key)) is not None and run.get("state_type") not in FINAL
    ]:
        if time.monotonic() > deadline:
            break
        time.sleep(LOOK_EVERY_S)
    for run_id in open_ids:
        state = {"type": "CRASHED", "name": "Crashed", "message": MESSAGE}
        _ask(f"{api_url}/flow_runs/{run_id}/set_state", key, {"state": state, "force": True})
    return list(by_run)


def _runs_of(worker_pid: int) -> dict[str, list[psutil.Process]]:
    runs: dict[str, list[psutil.Process]] = {}
    with suppress(psutil.Error):
        for process in psutil.Process(worker_pid).children(recursive=True):
            with suppress(psutil.Error):
                run_id = process.environ().get(RUN_ID)
                runs.setdefault(run_id or "", []).append(process)
    runs.pop("", None)
    return runs


def _ask(url: str, key: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """The answer of the API; None if it gives none (the server is going, too)."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {base64.b64encode(key.encode()).decode()}"}
    request = urllib.request.Request(url, data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S) as answer:
            reply: dict[str, Any] = json.load(answer)
            return reply
    except (urllib.error.URLError, OSError, ValueError):
        return None


OK = 200
HEALTH_TIMEOUT_S = 5.0
USER, KEY_BYTES = "whorl", 32
KEY = re.compile(USER + r":[\w-]{40,}")


class NoPrefectServer(WhorlError):
    """There is no Prefect server to talk to, or it could not be started."""

    exit_code = 9


def key_file(home: Path) -> Path:
    """Where the key is: the line to log in with."""
    return home / "api.key"


def load_key(home: Path) -> str:
    """The key of this home's servers, `whorl:` and a secret; made on first use, readable by its owner only.

    Raises BadSetting if others may read it, or if the file holds no key."""
    from tasks.storage import private_content

    path = key_file(home)
    content = private_content(path, lambda: f"{USER}:{secrets.token_urlsafe(KEY_BYTES)}\n".encode())
    key = content.decode("utf-8", "replace").strip()
    if not KEY.fullmatch(key):
        raise BadSetting(f"{path}: holds no key of a server; expected {USER}:SECRET; delete it to get another one")
    return key


def key_for(home: Path, api_url: str) -> str | None:
    """The key of this home if its own server answers at this address; None for any other: nobody else gets it.

    Raises BadSetting as load_key."""
    server = read_server_file(home)
    return load_key(home) if server and is_same_server(server.url, api_url) else None


def running_server(home: Path) -> str | None:
    """The API of the server of this home, if it runs and answers."""
    server = read_server_file(home)
    return server.url if server and is_healthy(server.url) else None


def is_healthy(api_url: str) -> bool:
    """Whether a Prefect server answers at this address."""
    try:
        with urllib.request.urlopen(f"{api_url}/health", timeout=HEALTH_TIMEOUT_S) as answer:
            return bool(answer.status == OK and answer.read().strip() == b"true")
    except (urllib.error.URLError, OSError, ValueError):
        return False


HEARTBEATS = "PREFECT_FLOWS_HEARTBEAT_FREQUENCY"
FLOW_VARIABLES = {
    "PREFECT_RESULTS_DEFAULT_SERIALIZER": "json",  # never pickle: nothing that executes code is loaded
    "PREFECT_LOGGING_EXTRA_LOGGERS": "tasks,flows",  # what the steps log appears in the run's log
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",  # what a command says after its flow is in no run
    HEARTBEATS: "30",  # the shortest that Prefect allows
    "PREFECT_TELEMETRY_ENABLE_RESOURCE_METRICS": "false",
    "DO_NOT_TRACK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
SERVER_VARIABLES = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",  # Prefect would start one without a key that outlives a kill
}
QUIET = {"PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL"}  # the command line prints its own line


def prefect_variables(home: Path, *, api_url: str | None = None) -> dict[str, str]:
    """The variables that every Prefect process of this home runs with."""
    place = {"PREFECT_HOME": str(home / "prefect")}
    return place | FLOW_VARIABLES | SERVER_VARIABLES | ({"PREFECT_API_URL": api_url} if api_url else {})


def prepare(home: Path, *, is_quiet: bool = True, api_url: str | None = None) -> str | None:
    """Set this process up for flows and return the API that they will use; None: there is no server yet.

    The API is api_url, else PREFECT_API_URL if it is set, else that of the running server of this home, which gets its
    key; another server gets what the user has set. Call it before anything that imports prefect: what prefect has read
    already stays as it is. Raises BadSetting for a key that cannot be used."""
    url = api_url or os.environ.get("PREFECT_API_URL") or running_server(home)
    os.environ.update(prefect_variables(home, api_url=url))
    if is_quiet:
        os.environ.update(QUIET)
    if url and (key := key_for(home, url)):
        use_key(os.environ, key)
    return url


def use_key(variables: MutableMapping[str, str], key: str) -> None:
    """Let Prefect show this key to the server that the variables name; what the user has set is for other servers."""
    for theirs, ours in FOR_OTHER_SERVERS.items():
        variables.setdefault(ours, variables.get(theirs, ""))
    variables.pop("PREFECT_API_KEY", None)
    variables["PREFECT_API_AUTH_STRING"] = key


def child_environment(home: Path, *, api_url: str, key: str, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a server or worker of this home. key: that of the server at api_url."""
    inherited = {name: value for name, value in (base or os.environ).items() if name not in QUIET}
    use_key(inherited, key)
    return inherited | prefect_variables(home, api_url=api_url) | {"WHORL_HOME": str(home)}


LOOPBACK = "127.0.0.1"
ALLOWED_ORIGINS = "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"
ROOT = Path(__file__).parents[2]
ANY_ADDRESS = ("0.0.0.0", "::")
START_WAIT_S = 180.0  # measured: healthy after 10 to 27 s on a busy machine with 2 cores, longer for a new database
HEALTH_EVERY_S = 0.1


def server_environment(home: Path, host: str, port: int) -> dict[str, str]:
    """The environment of a server of this home: it answers who shows its key, and to pages of no other server.

    Raises BadSetting for a key that cannot be used."""
    names = dict.fromkeys([page_host(host), *((LOOPBACK, "localhost") if host in (LOOPBACK, *ANY_ADDRESS) else ())])
    key = load_key(home)
    return child_environment(home, api_url=api_url(host, port), key=key) | {
        "PREFECT__SERVER_FINAL": "1",
        "PREFECT_SERVER_API_AUTH_STRING": key,
        ALLOWED_ORIGINS: ",".join(f"http://{name}:{port}" for name in names),
        "PREFECT_SERVER_UI_API_URL": f"http://{page_host(host)}:{port}/api",
    }


def start_server(home: Path, host: str, port: int, log: Path, **variables: str) -> Child:
    """Prefect's server of this home at an address; it dies with this process. variables: beside those of the home.

    Raises BadSetting as server_environment."""
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(ROOT), "--factory", f"{__name__}:prefect_app"]
    where = ["--host", host, "--port", str(port), "--log-level", "error", "--lifespan", "on"]
    return start_child("server", [*command, *where], server_environment(home, host, port) | variables, log)


def prefect_app() -> Callable[..., Awaitable[None]]:
    """Prefect's API and UI; the pages of the UI may ask this server alone, not those that measure its use."""
    from prefect.server.api.server import create_app

    app, ours = create_app(), os.environ[ALLOWED_ORIGINS].replace(",", " ")
    policy = f"connect-src 'self' data: blob: {ours} {ours.replace('http:', 'ws:')}".encode()

    async def answer(scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        async def send_with_policy(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"content-security-policy", policy)]
            await send(message)

        await app(scope, receive, send_with_policy)

    return answer


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
            raise NoPrefectServer(
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
            raise NoPrefectServer(f"Prefect's server {state}: {server.last_line()} (log: {server.log})")
        stopped.wait(HEALTH_EVERY_S)
