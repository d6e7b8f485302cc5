"""`whorl serve` and the site beside it."""

import base64
import itertools
import os
import re
import signal
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flows.engine import serving
from flows.engine.servers import Child, NoPrefectServer, start_child
from flows.engine.serving import serve, serving_site
from tasks.machine import read_server_file, server_file, write_server_file
from tasks.settings import Settings
from tasks.warehouse.place import Warehouse

SERVER = """
import http.server, sys
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"true")
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Healthy).serve_forever()
"""
WAITING = "import time; time.sleep(600)"
KILLED_ONCE = """
import os, pathlib, signal, sys, time
mark = pathlib.Path(sys.argv[1])
if not mark.exists():
    mark.touch(); os.kill(os.getpid(), signal.SIGKILL)
time.sleep(600)
"""


def settings_of(home: Path, port: int = 4200) -> Settings:
    return Settings.model_validate({"whorl": {"home": str(home), "port": port}})


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts small programs in the place of Prefect's server and worker."""

    def put(server: str, worker: str, *arguments: str) -> None:
        def start(home: Path, host: str, port: int, log: Path) -> Child:
            return start_child("server", [sys.executable, "-c", server, str(port)], os.environ, log)

        monkeypatch.setattr(serving, "start_server", start)
        monkeypatch.setattr(serving, "_worker_command", lambda limit: [sys.executable, "-c", worker, *arguments])
        monkeypatch.setattr(serving, "_register", lambda *_: None)

    return put


def stopping_at(said: list[str], beginning: str) -> Callable[[str], None]:
    """Takes note of each line, and ends this process's serve at the line that begins so."""

    def say(line: str) -> None:
        said.append(line)
        if line.startswith(beginning):
            os.kill(os.getpid(), signal.SIGTERM)

    return say


def test_a_home_is_served_once(tmp_path: Path) -> None:
    write_server_file(tmp_path, "http://127.0.0.1:4200/api", os.getpid())
    expected = rf"{tmp_path}: process {os.getpid()} serves it already at http://127.0.0.1:4200/api; stop that one first"
    with pytest.raises(NoPrefectServer, match=expected):
        serve(settings_of(tmp_path))
    assert server_file(tmp_path).exists()


def test_a_taken_port_is_named_with_the_way_out(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(NoPrefectServer, match=rf"port {port} of 127.0.0.1 is taken .*whorl.port"):
            serve(settings_of(tmp_path, port))
    assert not server_file(tmp_path).exists()


def test_a_server_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path, stand_ins: Callable[..., None]) -> None:
    stand_ins("print('no module named prefect'); raise SystemExit(3)", WAITING)
    with pytest.raises(NoPrefectServer, match=r"Prefect's server ended: no module named prefect \(log: .*server.log\)"):
        serve(settings_of(tmp_path), port=0, say=lambda line: None)
    assert not server_file(tmp_path).exists()


def test_while_it_runs_its_commands_find_it_and_afterwards_not(tmp_path: Path, stand_ins: Callable[..., None]) -> None:
    stand_ins(SERVER, WAITING)
    said: list[str] = []
    found = []

    def say(line: str) -> None:
        found.append(read_server_file(tmp_path))
        stopping_at(said, "Prefect:")(line)

    old = signal.getsignal(signal.SIGTERM)
    serve(settings_of(tmp_path), port=0, say=say)
    assert found[-1] is None and found[-2] is not None and found[-2].pid == os.getpid()
    assert [line.partition(" on http://127.0.0.1:")[0] for line in said[1:4]] == [
        "starting Prefect's server",
        "registering the flows",
        "starting the worker",
    ]
    assert re.fullmatch(r"Reports: http://127.0.0.1:\d+ \(the same log-in; metrics at /metrics\)", said[0])
    assert re.fullmatch(rf"Prefect: http://127.0.0.1:\d+ \(log in with the line in {tmp_path}/api.key; .*", said[4])
    assert said[5:] == ["stopping the worker", "stopping the server"]  # a worker without a server does not end
    assert read_server_file(tmp_path) is None
    assert signal.getsignal(signal.SIGTERM) is old


def test_a_killed_worker_is_started_again(tmp_path: Path, stand_ins: Callable[..., None]) -> None:
    stand_ins(SERVER, KILLED_ONCE, str(tmp_path / "mark"))
    said: list[str] = []
    serve(settings_of(tmp_path), port=0, say=stopping_at(said, "the worker has ended (code -9)"))
    assert said[5:] == [
        "the worker has ended (code -9); starting another",
        "stopping the worker",
        "stopping the server",
    ]


def test_a_worker_that_gives_up_at_once_ends_serve_with_its_words(
    tmp_path: Path, stand_ins: Callable[..., None]
) -> None:
    stand_ins(SERVER, "print('work pool whorl not found'); raise SystemExit(1)")
    with pytest.raises(NoPrefectServer, match="Prefect's worker has ended: work pool whorl not found"):
        serve(settings_of(tmp_path), port=0, say=lambda line: None)
    assert not server_file(tmp_path).exists()


def test_flows_that_cannot_be_registered_end_serve_with_the_reason(
    tmp_path: Path, stand_ins: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    register = serving._register
    stand_ins(SERVER, WAITING)
    monkeypatch.setattr(serving, "_register", register)
    monkeypatch.setattr(serving, "REGISTER", "raise SystemExit('flows.jobs cannot be imported')")
    with pytest.raises(
        NoPrefectServer, match=r"could not be registered: flows.jobs cannot be imported \(log: .*deploy.log\)"
    ):
        serve(settings_of(tmp_path), port=0, say=lambda line: None)


KEY = "whorl:a-secret"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / "index.html").write_text("<p>hello")
    (reports / ".hidden.html").write_text("no")
    (tmp_path / "api.key").write_text(KEY)
    (tmp_path / "beside.html").write_text("of nobody else")
    (reports / "link.html").symlink_to(tmp_path / "beside.html")
    (reports / "data.parquet").write_text("no")
    with serving_site(Warehouse(home=tmp_path), KEY, "127.0.0.1", 0) as found:
        yield found


def answer(port: int, path: str, key: str | None = KEY) -> tuple[int, str, str]:
    """Status, text and content security policy."""
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if key:
        asked.add_header("Authorization", f"Basic {base64.b64encode(key.encode()).decode()}")
    try:
        with urllib.request.urlopen(asked, timeout=10) as told:
            return told.status, told.read().decode(), told.headers["Content-Security-Policy"]
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers["Content-Security-Policy"]


def test_who_shows_the_key_gets_the_index_under_a_strict_policy_and_metrics_without_a_warehouse(port: int) -> None:
    status, text, policy = answer(port, "/")
    assert (status, text) == (200, "<p>hello")
    assert "script-src 'self';" in policy
    assert "unsafe-eval" not in policy
    assert "whorl_up 0.0" in answer(port, "/metrics")[1]


def test_nobody_else_gets_anything(port: int) -> None:
    for path, key in itertools.product(("/", "/metrics", "/nothing"), (None, "whorl:other", "x")):
        assert answer(port, path, key)[0] == 401, (path, key)


def test_nothing_but_pages_of_the_site_is_given_out(port: int) -> None:
    hidden = ("../api.key", "%2e%2e/api.key", ".hidden.html", "link.html", "data.parquet", "none.html", "%00")
    assert {path: answer(port, f"/{path}")[0] for path in hidden} == dict.fromkeys(hidden, 404)
