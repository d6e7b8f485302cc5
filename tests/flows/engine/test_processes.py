"""Processes that are kept, stopped for certain, and the flow runs in them."""

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from flows.engine.processes import RUN_ID, Child, end_runs, start_child, stop_child

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
)
PARENT = f"""
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", {STUBBORN!r}]).pid, flush=True)
import time; time.sleep(600)
"""


def lines_of(one: Child, n_lines: int) -> list[str]:
    """The first lines of its log, as soon as they are there."""
    while len(lines := one.log.read_text().split()) < n_lines:
        assert not one.has_ended
    return lines


def test_a_process_that_ignores_the_signal_and_its_child_are_ended(tmp_path: Path) -> None:
    started = start_child("parent", [sys.executable, "-c", PARENT], os.environ, tmp_path / "log")
    pid = int(lines_of(started, 2)[0])
    assert psutil.pid_exists(pid)
    stop_child(started, patience_s=1)
    assert started.has_ended
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_stopping_what_has_ended_is_no_error(tmp_path: Path) -> None:
    started = start_child("short", [sys.executable, "-c", "print('done')"], os.environ, tmp_path / "log")
    started.process.wait(30)
    stop_child(started, patience_s=1)
    assert started.last_line() == "done"
    assert not started.was_killed


def test_a_killed_process_is_told_from_one_that_gave_up(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
    killed = start_child("killed", command, os.environ, tmp_path / "log")
    killed.process.wait(30)
    assert killed.was_killed
    assert killed.last_line() == "its log is empty"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ends it")
def test_a_process_dies_with_the_one_that_started_it(tmp_path: Path) -> None:
    starter = f"""
import os, sys
from pathlib import Path
from flows.engine.processes import start_child
command = [sys.executable, "-c", "import time; time.sleep(600)"]
one = start_child("left", command, os.environ, Path({str(tmp_path)!r}) / "log")
print(one.process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", starter], capture_output=True, text=True, check=False)
    pid = int(done.stdout)
    if psutil.pid_exists(pid):
        _, alive = psutil.wait_procs([psutil.Process(pid)], timeout=10)
        assert [one for one in alive if one.status() != psutil.STATUS_ZOMBIE] == []


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
