"""`whorl serve`: Prefect's server, the registered flows and a worker until Ctrl-C or SIGTERM.

This process imports no prefect: it starts the parts, watches them, and stops the worker before the server, since a
worker without a server does not end."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from flows import child
from flows.child import Child
from flows.environment import child_environment
from flows.home_server import LOOPBACK, api_url, free_port, page_host, server_environment, wait_until_healthy
from flows.interruption import end_runs
from flows.server_file import NoServer, key_file, load_key, read_server_file, remove_server_file, write_server_file
from flows.site_server import serving_site
from tasks.settings import Settings
from tasks.warehouse.faults import check_home

POOL = "whorl"
LOOK_EVERY_S = 0.5
SHORT_LIFE_S = 30.0  # a worker that gives up sooner would give up again
RUNS_PATIENCE_S = 20.0
WORKER_PATIENCE_S = 20.0
SERVER_PATIENCE_S = 20.0
REGISTER = "import sys; from flows.deploy import deploy_settings; deploy_settings(sys.stdin.read())"


def serve(
    settings: Settings,
    *,
    host: str = LOOPBACK,
    port: int | None = None,
    reports_port: int | None = None,
    limit: int = 2,
    say: Callable[[str], None] = print,
) -> None:
    """Run server and worker until this process is told to stop; then no process is left.

    host: the address to listen on. port: by default that of the settings; 0: a free one; reports_port: of the pages, in
    the same way. limit: flow runs at a time. A worker that was killed is started again. say: takes
    each line about what is waited for, and how to log in.
    Raises NoServer if the home is served already, if the port is taken, if a part does not start, or if the server ends
    by itself; BadSetting if the home cannot be written to, or its key is no key of its owner alone."""
    home = settings.warehouse.home
    check_home(home)
    if other := read_server_file(home):
        raise NoServer(f"{home}: process {other.pid} serves it already at {other.url}; stop that one first")
    chosen = free_port(host, settings.whorl.port if port is None else port)
    url, key = api_url(host, chosen), load_key(home)
    environment = child_environment(home, api_url=url, key=key)
    logs = home / "prefect" / "logs"
    page = f"http://{page_host(host)}:{chosen}"
    wanted = (0 if port == 0 else settings.whorl.reports_port) if reports_port is None else reports_port
    with _stop_signals() as stopped, serving_site(settings.warehouse, key, host, free_port(host, wanted)) as pages:
        say(f"Reports: http://{page_host(host)}:{pages} (the same log-in; metrics at /metrics)")
        say(f"starting Prefect's server on {page} (logs in {logs})")
        command = _server_command(host, chosen)
        server = child.start("server", command, server_environment(home, host, chosen), logs / "server.log")
        try:
            wait_until_healthy(server, url, stopped)
            write_server_file(home, url, os.getpid())
            if not stopped.is_set():
                say("registering the flows")
            _register(settings, environment, logs / "deploy.log", stopped)
            if not stopped.is_set():
                say("starting the worker")
                say(f"Prefect: {page} (log in with the line in {key_file(home)}; Ctrl-C stops)")
                _work(server, url, key, lambda: _start_worker(limit, environment, logs), stopped, say)
        finally:
            remove_server_file(home)
            say("stopping the server")
            child.stop(server, patience_s=SERVER_PATIENCE_S)


def _work(
    server: Child,
    url: str,
    key: str,
    start_worker: Callable[[], Child],
    stopped: threading.Event,
    say: Callable[[str], None],
) -> None:
    """Keep a worker until told to stop; raises NoServer if the server ends, or if no worker lives for long."""
    worker, started_s = start_worker(), time.monotonic()
    try:
        while not stopped.wait(LOOK_EVERY_S):
            gave_up = worker.has_ended and not worker.was_killed and time.monotonic() - started_s < SHORT_LIFE_S
            if server.has_ended or gave_up:
                part = server if server.has_ended else worker
                raise NoServer(f"Prefect's {part.name} has ended: {part.last_line()} (log: {part.log})")
            if worker.has_ended:
                say(f"the worker has ended (code {worker.process.returncode}); starting another")
                worker, started_s = start_worker(), time.monotonic()
    finally:
        say("stopping the worker")
        _stop_worker(worker, url, key)


def _start_worker(limit: int, environment: dict[str, str], logs: Path) -> Child:
    return child.start("worker", _worker_command(limit), environment, logs / "worker.log")


def _server_command(host: str, port: int) -> list[str]:
    return [sys.executable, "-m", "prefect", "server", "start", "--host", host, "--port", str(port)]


def _worker_command(limit: int) -> list[str]:
    return [
        sys.executable,
        "-m",
        "prefect",
        "worker",
        "start",
        "--pool",
        POOL,
        "--type",
        "process",
        "--limit",
        str(limit),
    ]


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, for the duration of the block."""
    stopped = threading.Event()

    old = {number: signal.signal(number, lambda *_: stopped.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _register(settings: Settings, environment: dict[str, str], log: Path, stopped: threading.Event) -> None:
    """Deploy in a process of its own, so that this one needs no prefect."""
    if stopped.is_set():
        return
    command = [sys.executable, "-c", REGISTER]
    done = subprocess.run(command, input=settings.model_dump_json(), env=environment, capture_output=True, text=True)
    log.write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.returncode and not stopped.is_set():
        lines = (done.stdout + done.stderr).strip().splitlines() or ["no message"]
        raise NoServer(f"the flows could not be registered: {lines[-1]} (log: {log})")


def _stop_worker(worker: Child, url: str, key: str) -> None:
    """End the runs first and let that be written down; a run that has begun meanwhile is ended as well."""
    while not worker.has_ended and end_runs(worker.process.pid, url, key, patience_s=RUNS_PATIENCE_S):
        pass
    child.stop(worker, patience_s=WORKER_PATIENCE_S)
