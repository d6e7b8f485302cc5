"""Servers of a home, their keys, and the processes that keep them."""

import asyncio
import base64
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from flows.engine import servers
from flows.engine.servers import (
    RUN_ID,
    Child,
    end_runs,
    key_file,
    load_key,
    page_host,
    running_server,
    server_environment,
    start_child,
    stop_child,
)
from tasks.errors import BadSetting
from tasks.machine import read_server_file, remove_server_file, server_file, write_server_file
from tests.loopback import Quiet, listening

LOGGED_BESIDE_A_FLOW = """
import logging, sys, pathlib
from flows.engine import servers
servers.prepare(pathlib.Path(sys.argv[1]))
from prefect.logging.configuration import setup_logging
setup_logging()
logging.getLogger("flows.cli.output").warning("left out")
"""
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


def test_stopping_what_has_ended_is_no_error_and_a_killed_process_is_told_from_one_that_gave_up(tmp_path: Path) -> None:
    short, killed = (
        start_child(name, [sys.executable, "-c", code], os.environ, tmp_path / name)
        for name, code in (("short", "print('done')"), ("killed", "import os; os.kill(os.getpid(), 9)"))
    )
    for one in (short, killed):
        one.process.wait(30)
        stop_child(one, patience_s=1)
    assert (short.was_killed, short.last_line()) == (False, "done")
    assert (killed.was_killed, killed.last_line()) == (True, "its log is empty")


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ends it")
def test_a_process_dies_with_the_one_that_started_it(tmp_path: Path) -> None:
    starter = f"""
import os, sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from flows.engine.servers import start_child
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

    class Api(Quiet, BaseHTTPRequestHandler):
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

    with listening(Api) as server:
        yield f"http://127.0.0.1:{server.server_port}/api", known


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


class Healthy(Quiet, BaseHTTPRequestHandler):
    """Answers as Prefect's health check does."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/api/health" else 404)
        self.end_headers()
        self.wfile.write(b"true")


@pytest.fixture
def api_url() -> Iterator[str]:
    with listening(Healthy) as server:
        yield f"http://127.0.0.1:{server.server_port}/api"


@pytest.fixture
def own_environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    variables: dict[str, str] = {}
    monkeypatch.setattr(servers.os, "environ", variables)
    return variables


def test_results_are_json_and_everything_lives_in_the_home(tmp_path: Path, own_environment: dict[str, str]) -> None:
    assert servers.prepare(tmp_path) is None
    assert own_environment["PREFECT_HOME"] == str(tmp_path / "prefect")
    assert own_environment["PREFECT_RESULTS_DEFAULT_SERIALIZER"] == "json"
    assert own_environment["DO_NOT_TRACK"] == "1"
    assert "PREFECT_API_URL" not in own_environment


def test_flows_use_the_server_that_the_user_names_else_the_running_one_of_their_home(
    tmp_path: Path, own_environment: dict[str, str], api_url: str
) -> None:
    write_server_file(tmp_path, api_url, os.getpid())
    assert servers.prepare(tmp_path) == own_environment["PREFECT_API_URL"] == api_url
    own_environment["PREFECT_API_URL"] = "http://prefect.example/api"
    assert servers.prepare(tmp_path) == "http://prefect.example/api"


def test_the_key_of_this_home_goes_to_its_own_server_and_that_of_the_user_to_others(
    tmp_path: Path, own_environment: dict[str, str], api_url: str
) -> None:
    write_server_file(tmp_path, api_url, os.getpid())
    own_environment |= {"PREFECT_API_AUTH_STRING": "ada:secret", "PREFECT_API_KEY": "pnu_1"}
    servers.prepare(tmp_path, api_url="http://prefect.example/api")
    assert (own_environment["PREFECT_API_AUTH_STRING"], own_environment["PREFECT_API_KEY"]) == ("ada:secret", "pnu_1")
    assert not key_file(tmp_path).exists()
    servers.prepare(tmp_path, api_url=api_url.replace("127.0.0.1", "localhost"))
    assert own_environment["PREFECT_API_AUTH_STRING"] == load_key(tmp_path)
    assert "PREFECT_API_KEY" not in own_environment  # it would come first
    assert own_environment["OTHER_PREFECT_API_AUTH_STRING"] == "ada:secret"
    servers.prepare(tmp_path)
    assert own_environment["OTHER_PREFECT_API_AUTH_STRING"] == "ada:secret"


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    key = load_key(tmp_path)
    assert re.fullmatch(r"whorl:[\w-]{43}", key)
    assert load_key(tmp_path) == key
    assert key_file(tmp_path).stat().st_mode & 0o777 == 0o600
    assert load_key(tmp_path / "other") != key


def test_a_key_that_others_may_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    load_key(tmp_path)
    key_file(tmp_path).chmod(0o640)
    with pytest.raises(BadSetting, match=r"api.key: others may read the key; .*; run chmod 600 on it"):
        load_key(tmp_path)
    key_file(tmp_path).chmod(0o600)
    key_file(tmp_path).write_text("whorl:\n")
    with pytest.raises(BadSetting, match="holds no key of a server; expected whorl:SECRET; delete it to get another"):
        load_key(tmp_path)


def test_a_worker_does_not_inherit_the_silence_of_the_command_line(
    tmp_path: Path, own_environment: dict[str, str]
) -> None:
    servers.prepare(tmp_path, is_quiet=True)
    assert own_environment["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] == "CRITICAL"
    url = "http://127.0.0.1:1/api"
    found = servers.child_environment(tmp_path, api_url=url, key="whorl:k", base=own_environment)
    assert "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL" not in found
    assert found["WHORL_HOME"] == str(tmp_path)


def test_the_environment_is_set_without_importing_prefect(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from flows.engine.servers import prepare; "
        f"prepare(Path({str(tmp_path)!r})); import flows.engine.serving; print('prefect' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_file_of_a_process_that_is_gone_is_stale(tmp_path: Path, api_url: str) -> None:
    gone = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    write_server_file(tmp_path, api_url, gone.pid)
    assert running_server(tmp_path) == api_url
    gone.communicate()
    assert running_server(tmp_path) is None
    write_server_file(tmp_path, "http://127.0.0.1:9/api", os.getpid())
    assert read_server_file(tmp_path) is not None and running_server(tmp_path) is None  # it does not answer
    content = json.loads(server_file(tmp_path).read_text())  # and its pid may be given to another process
    server_file(tmp_path).write_text(json.dumps({**content, "process_started_s": 1.0}))
    assert read_server_file(tmp_path) is None
    for _ in range(2):
        remove_server_file(tmp_path)
    assert not server_file(tmp_path).exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"url": "x"}', '{"url": 1, "pid": "x", "process_started_s": 0}'])
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    server_file(tmp_path).write_text(content)
    assert running_server(tmp_path) is None


FOREIGN = "http://evil.example"


def server() -> tuple[str, str]:
    """The API of the server of this session, and its key."""
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL

    return PREFECT_API_URL.value(), PREFECT_API_AUTH_STRING.value()


@pytest.mark.usefixtures("prefect_server")
def test_the_api_answers_who_shows_the_key_and_nobody_else() -> None:
    url, key = server()
    questions = [("GET", "/admin/version", None), ("POST", "/flow_runs/filter", {}), ("DELETE", "/flows/1", None)]
    for method, path, body in questions:
        for auth in (None, ("whorl", "guess")):
            answer = httpx.request(method, url + path, json=body, auth=auth, trust_env=False)
            assert answer.status_code == 401, (method, path)
    user, _, secret = key.partition(":")
    assert httpx.post(f"{url}/flow_runs/filter", json={}, auth=(user, secret), trust_env=False).status_code == 200


@pytest.mark.usefixtures("prefect_server")
def test_a_page_of_another_origin_may_neither_ask_nor_read() -> None:
    url, key = server()
    own = url.removesuffix("/api")
    auth = httpx.BasicAuth(*key.split(":"))
    for origin, allowed in ((FOREIGN, None), ("null", None), (own, own), (own.replace("127.0.0.1", "localhost"), ...)):
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        answers = (
            httpx.get(f"{url}/admin/version", headers=headers, auth=auth, trust_env=False),
            httpx.options(f"{url}/flow_runs/filter", headers=headers, trust_env=False),
        )
        for answer in answers:
            assert answer.headers.get("Access-Control-Allow-Origin") == (origin if allowed is ... else allowed)


@pytest.mark.usefixtures("prefect_server")
def test_a_socket_without_the_key_is_closed() -> None:
    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed, InvalidStatus

    async def emit(*protocols: str) -> str:
        address = server()[0].replace("http", "ws", 1) + "/events/in"
        async with connect(address, origin=FOREIGN, subprotocols=protocols or None) as socket:
            await socket.send(json.dumps({"type": "auth", "token": "guess"}))
            return str(await asyncio.wait_for(socket.recv(), 20))

    for protocols in ((), ("prefect",)):
        with pytest.raises((ConnectionClosed, InvalidStatus)):
            asyncio.run(emit(*protocols))


@pytest.mark.usefixtures("prefect_server")
def test_the_key_stands_in_no_argument_and_in_no_file_that_others_may_read() -> None:
    url, key = server()
    secret = key.partition(":")[2]
    port = url.removesuffix("/api").rpartition(":")[2]
    [found] = [one for one in psutil.Process().children() if port in one.cmdline()]
    assert not [one for one in (*found.cmdline(), *psutil.Process().cmdline()) if secret in one]
    home = Path(found.environ()["WHORL_HOME"])
    files = [file for file in home.rglob("*") if file.is_file() and file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)]
    assert files and not [file for file in files if secret.encode() in file.read_bytes()]


def test_a_server_for_the_network_has_a_key_and_the_origin_of_its_own_pages(tmp_path: Path) -> None:
    found = server_environment(tmp_path, "0.0.0.0", 4200)
    assert found["PREFECT_SERVER_API_AUTH_STRING"] == load_key(tmp_path) == found["PREFECT_API_AUTH_STRING"]
    assert found["PREFECT_API_URL"] == "http://127.0.0.1:4200/api"
    assert found["PREFECT_SERVER_UI_API_URL"] == f"http://{page_host('0.0.0.0')}:4200/api"
    assert f"http://{page_host('0.0.0.0')}:4200" in found["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"].split(",")
    (tmp_path / "api.key").write_text("")
    with pytest.raises(BadSetting, match="holds no key of a server"):
        server_environment(tmp_path, "0.0.0.0", 4200)


def test_what_a_command_says_after_its_flow_brings_no_warning_of_prefect(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOGGED_BESIDE_A_FLOW, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "UserWarning" not in ended.stderr
