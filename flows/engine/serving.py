"""`whorl serve`: Prefect's server, the registered flows, a worker and the site of the home until Ctrl-C or SIGTERM.

This process imports no prefect: it starts the parts, watches them, and stops the worker before the server, since a
worker without a server does not end."""

import base64
import hmac
import http.server
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from flows.engine.servers import (
    LOOPBACK,
    Child,
    NoPrefectServer,
    api_url,
    child_environment,
    end_runs,
    free_port,
    key_file,
    load_key,
    page_host,
    start_child,
    start_server,
    stop_child,
    wait_until_healthy,
)
from flows.engine.shared_server import end, taken_over
from tasks.errors import WhorlError
from tasks.machine import ServerFile, read_server_file, remove_server_file, write_server_file
from tasks.settings import Settings
from tasks.warehouse.connection import reading
from tasks.warehouse.faults import check_home
from tasks.warehouse.place import Warehouse

logger = logging.getLogger(__name__)
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".png": "image/png", ".md": "text/plain"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "frame-ancestors 'none'"
)
METRICS = "text/plain; version=0.0.4"


@contextmanager
def serving_site(warehouse: Warehouse, key: str, host: str, port: int) -> Iterator[int]:
    """Serve reports/ and /metrics in a thread for the duration of the block; gives the port. key: user:secret."""
    folder, wanted = warehouse.home / "reports", f"Basic {base64.b64encode(key.encode()).decode()}"

    class Handler(http.server.BaseHTTPRequestHandler):
        """One request; nothing outside the folder, and no kind of file that pages do not need."""

        server_version, sys_version = "whorl", ""

        def do_GET(self) -> None:
            shown = self.headers.get("Authorization", "")
            if not hmac.compare_digest(shown.encode(), wanted.encode()):
                self._answer(HTTPStatus.UNAUTHORIZED, b"log in with the line in api.key of the home folder\n")
            elif urlsplit(self.path).path == "/metrics":
                self._metrics()
            elif (path := _file(folder, self.path)) is None:
                self._answer(HTTPStatus.NOT_FOUND, b"no such page; whorl report writes them\n")
            else:
                self._answer(HTTPStatus.OK, path.read_bytes(), KINDS[path.suffix])

        do_HEAD = do_GET  # noqa: N815

        def _metrics(self) -> None:
            try:
                self._answer(HTTPStatus.OK, metrics_text(warehouse), METRICS)
            except WhorlError as error:
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n".encode())

        def _answer(self, status: HTTPStatus, content: bytes, kind: str = "text/plain") -> None:
            self.send_response(status)
            if status == HTTPStatus.UNAUTHORIZED:
                self.send_header("WWW-Authenticate", 'Basic realm="whorl", charset="UTF-8"')
            self.send_header("Content-Type", f"{kind}; charset=utf-8" if kind.startswith("text/") else kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-cache")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            logger.debug(format, *args)

    server = http.server.ThreadingHTTPServer((host, port), Handler)
    thread = threading.Thread(target=server.serve_forever, name="site", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _file(folder: Path, address: str) -> Path | None:
    """The file of the site that an address names; None for any other. The first page is the index."""
    name = unquote(urlsplit(address).path).lstrip("/") or "index.html"
    if any(part.startswith(".") for part in name.split("/")) or "\0" in name:
        return None
    path = (folder / name).resolve()
    is_ours = path.is_relative_to(folder.resolve()) and path.suffix in KINDS and path.is_file()
    return path if is_ours else None


POOL = "whorl"
LOOK_EVERY_S = 0.5
SHORT_LIFE_S = 30.0  # a worker that gives up sooner would give up again
RUNS_PATIENCE_S = 20.0
WORKER_PATIENCE_S = 20.0
SERVER_PATIENCE_S = 20.0
REGISTER = "import sys; from flows.engine.deploying import deploy_settings; deploy_settings(sys.stdin.read())"


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
    if (other := read_server_file(home)) and not other.is_shared:
        raise NoPrefectServer(f"{home}: process {other.pid} serves it already at {other.url}; stop that one first")
    server_port = free_port(host, settings.whorl.port if port is None else port)
    url, key = api_url(host, server_port), load_key(home)
    environment = child_environment(home, api_url=url, key=key)
    logs = home / "prefect" / "logs"
    page = f"http://{page_host(host)}:{server_port}"
    wanted = (0 if port == 0 else settings.whorl.reports_port) if reports_port is None else reports_port
    with _stop_signals() as stopped, serving_site(settings.warehouse, key, host, free_port(host, wanted)) as pages:
        site = f"http://{page_host(host)}:{pages}"
        say(f"Reports: {site} (the same log-in; metrics at /metrics)")
        say(f"starting Prefect's server on {page} (logs in {logs})")
        with taken_over(home, stopped, say):
            server = start_server(home, host, server_port, logs / "server.log")
            write_server_file(home, url, os.getpid(), pages=site)
        try:
            wait_until_healthy(server, url, stopped)
            if not stopped.is_set():
                say("registering the flows")
            _register(settings, environment, logs / "deploy.log", stopped)
            if not stopped.is_set():
                say("starting the worker")
                say(f"Prefect: {page} (log in with the line in {key_file(home)}; Ctrl-C stops)")
                worker = partial(start_child, "worker", _worker_command(limit), environment, logs / "worker.log")
                _work(server, url, key, worker, stopped, say)
        finally:
            remove_server_file(home)
            say("stopping the server")
            stop_child(server, patience_s=SERVER_PATIENCE_S)


def stop_serving(home: Path) -> ServerFile:
    """End what serves a home, `whorl serve` or the server that commands share; returns what it was. Raises NoServer."""
    server = read_server_file(home)
    if server is None:
        raise NoPrefectServer(f"{home}: no server runs; nothing to stop")
    end(server)
    return server


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
                raise NoPrefectServer(f"Prefect's {part.name} has ended: {part.last_line()} (log: {part.log})")
            if worker.has_ended:
                say(f"the worker has ended (code {worker.process.returncode}); starting another")
                worker, started_s = start_worker(), time.monotonic()
    finally:
        say("stopping the worker")
        # the runs first, so that their end is written down; one that has begun meanwhile is ended as well
        while not worker.has_ended and end_runs(worker.process.pid, url, key, patience_s=RUNS_PATIENCE_S):
            pass
        stop_child(worker, patience_s=WORKER_PATIENCE_S)


def _worker_command(limit: int) -> list[str]:
    return [sys.executable, *f"-m prefect worker start --pool {POOL} --type process --limit {limit}".split()]


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
        raise NoPrefectServer(f"the flows could not be registered: {lines[-1]} (log: {log})")


MOST_JOBS = 50  # with a series of their own, the likeliest to be late; more would burden a server of metrics
OF_NODE, OF_JOB = ("source", "node", "aspect"), ("source", "job")
RISKS = f"""
SELECT source, group_key, {{value}} FROM jobs.predictions WHERE exceeds_2x_share IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY source ORDER BY exceeds_2x_share DESC, group_key) <= {MOST_JOBS} ORDER BY ALL
"""
UNKNOWN = """
WITH latest AS (
    SELECT source, is_known FROM workloads.identifications
    QUALIFY row_number() OVER (PARTITION BY source, run_id ORDER BY identified_at DESC, model_id DESC) = 1
)
SELECT source, avg((NOT is_known)::INT) FROM latest GROUP BY source ORDER BY source
"""
AGES = """
SELECT word, source, greatest(0, epoch(now()) - epoch(max(landed_at)))
FROM ops.files WHERE landed_at IS NOT NULL GROUP BY ALL ORDER BY ALL
"""
STATES = """
SELECT source, node, aspect, list_position(['healthy', 'cleared', 'suspected', 'confirmed'], state) - 1
FROM nodes.states ORDER BY ALL
"""
# What each metric is called and says, its labels, and the question for these and the value.
GAUGES = (
    ("whorl_node_score", "Score of a node, 1: as the reference", OF_NODE,
     "SELECT source, node, aspect, score FROM nodes.scores ORDER BY ALL"),
    ("whorl_node_state", "0 healthy, 1 cleared, 2 suspected, 3 confirmed", OF_NODE, STATES),
    ("whorl_workloads_unknown_ratio", "Share of runs called unknown", ("source",), UNKNOWN),
    ("whorl_job_twice_usual_ratio", "Chance that the next run takes twice the usual", OF_JOB,
     RISKS.format(value="exceeds_2x_share")),
    ("whorl_job_p95_seconds", "What 95 % of next runs stay under", OF_JOB, RISKS.format(value="p95_s")),
    ("whorl_data_age_seconds", "Since a file was last read", ("word", "source"), AGES),
)  # fmt: skip
ALARMS = "SELECT word, source, kind, count(*) FROM ops.alarms GROUP BY ALL ORDER BY ALL"


def metrics_text(warehouse: Warehouse) -> bytes:
    """All metrics of a home; only `whorl_up` where it has no warehouse yet. Raises WarehouseBusy."""
    registry = CollectorRegistry()
    Gauge("whorl_up", "Whether this home has a warehouse", registry=registry).set(int(warehouse.file.exists()))
    if warehouse.file.exists():
        metrics: list[tuple[Gauge | Counter, str]] = [
            *((Gauge(name, words, labels, registry=registry), sql) for name, words, labels, sql in GAUGES),
            (Counter("whorl_alarms", "Alarms raised so far", ("word", "source", "kind"), registry=registry), ALARMS),
        ]
        with reading(warehouse) as connection:
            for metric, sql in metrics:
                for *of, value in connection.execute(sql).fetchall():
                    metric.labels(*of).inc(value)
    return bytes(generate_latest(registry))
