"""Flows that are at work when `whorl serve` stops: ended, and never left Running for ever."""

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import psutil
import pytest

from flows.engine.processes import (
    RUN_ID,
    end_runs,
)

KEY = "whorl:secret"
WORKER = f"""
import os, subprocess, sys
run = [sys.executable, "-c", "import time; time.sleep(600)"]
print(subprocess.Popen(run, env=os.environ | {{{RUN_ID!r}: "run-1"}}).pid, flush=True)
print(subprocess.Popen(run).pid, flush=True)  # something else that the worker started
import time; time.sleep(600)
"""


@pytest.fixture
def api() -> Iterator[tuple[str, dict[str, Any]]]:
    """The two calls of Prefect's API that matter, and the state that run-1 is in."""
    known: dict[str, Any] = {"state_type": "RUNNING"}

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer({"state_type": known["state_type"]})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            known.update(asked["state"], path=self.path, state_type=asked["state"]["type"])
            self.answer({"status": "ACCEPT"})

        def answer(self, content: dict[str, Any]) -> None:
            has_key = self.headers["Authorization"] == f"Basic {base64.b64encode(KEY.encode()).decode()}"
            self.send_response(200 if has_key else 401)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = HTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/api", known
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def worker() -> Iterator[tuple[int, psutil.Process, psutil.Process]]:
    """The pid of a worker, the process of its run, and another process of its."""
    process = subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    run, other = (psutil.Process(int(process.stdout.readline())) for _ in range(2))
    yield process.pid, run, other
    for left in (run, other):
        if left.is_running():
            left.kill()
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_run_that_cannot_say_how_it_ended_becomes_crashed(
    api: tuple[str, dict[str, Any]], worker: tuple[int, psutil.Process, psutil.Process]
) -> None:
    url, known = api
    pid, run, other = worker
    assert end_runs(pid, url, KEY, patience_s=0.5) == ["run-1"]
    assert not run.is_running() or run.status() == psutil.STATUS_ZOMBIE
    assert other.is_running()
    assert (known["state_type"], known["path"]) == ("CRASHED", "/api/flow_runs/run-1/set_state")
    assert "retry it to continue" in known["message"]


def test_a_run_that_told_its_end_keeps_its_own_words(
    api: tuple[str, dict[str, Any]], worker: tuple[int, psutil.Process, psutil.Process]
) -> None:
    url, known = api
    known["state_type"] = "COMPLETED"
    assert end_runs(worker[0], url, KEY, patience_s=0.5) == ["run-1"]
    assert known == {"state_type": "COMPLETED"}


def test_a_server_that_is_gone_does_not_hold_up_the_end(worker: tuple[int, psutil.Process, psutil.Process]) -> None:
    assert end_runs(worker[0], "http://127.0.0.1:9/api", KEY, patience_s=0.5) == ["run-1"]


def test_a_worker_without_runs_has_nothing_to_end(api: tuple[str, dict[str, Any]]) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert end_runs(process.pid, api[0], KEY, patience_s=0.5) == []
    finally:
        process.communicate()
    assert end_runs(process.pid, api[0], KEY, patience_s=0.5) == []  # nor has one that is gone
