"""Prefect's environment, and how the server of a home is found."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from flows import environment
from flows.server_file import (
    read_server_file,
    remove_server_file,
    running_server,
    server_file,
    write_server_file,
)


class Healthy(BaseHTTPRequestHandler):
    """Answers as Prefect's health check does."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/api/health" else 404)
        self.end_headers()
        self.wfile.write(b"true")

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def api_url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Healthy)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/api"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def own_environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    variables: dict[str, str] = {}
    monkeypatch.setattr(environment.os, "environ", variables)
    return variables


def test_results_are_json_and_everything_lives_in_the_home(tmp_path: Path, own_environment: dict[str, str]) -> None:
    assert environment.prepare(tmp_path) is None
    assert own_environment["PREFECT_HOME"] == str(tmp_path / "prefect")
    assert own_environment["PREFECT_RESULTS_DEFAULT_SERIALIZER"] == "json"
    assert own_environment["DO_NOT_TRACK"] == "1"
    assert "PREFECT_API_URL" not in own_environment


def test_flows_use_the_running_server_of_their_home(
    tmp_path: Path, own_environment: dict[str, str], api_url: str
) -> None:
    write_server_file(tmp_path, api_url, os.getpid())
    assert environment.prepare(tmp_path) == api_url
    assert own_environment["PREFECT_API_URL"] == api_url


def test_a_server_that_the_user_names_comes_first(
    tmp_path: Path, own_environment: dict[str, str], api_url: str
) -> None:
    own_environment["PREFECT_API_URL"] = "http://prefect.example/api"
    write_server_file(tmp_path, api_url, os.getpid())
    assert environment.prepare(tmp_path) == "http://prefect.example/api"


def test_a_worker_does_not_inherit_the_silence_of_the_command_line(
    tmp_path: Path, own_environment: dict[str, str]
) -> None:
    environment.prepare(tmp_path, is_quiet=True)
    assert own_environment["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] == "CRITICAL"
    found = environment.child_environment(tmp_path, api_url="http://127.0.0.1:1/api", base=own_environment)
    assert "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL" not in found
    assert found["WHORL_HOME"] == str(tmp_path)


def test_the_environment_is_set_without_importing_prefect(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from flows.environment import prepare; "
        f"prepare(Path({str(tmp_path)!r})); import flows.serve; print('prefect' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_file_of_a_process_that_is_gone_is_stale(tmp_path: Path, api_url: str) -> None:
    gone = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    write_server_file(tmp_path, api_url, gone.pid)
    assert running_server(tmp_path) == api_url
    gone.communicate()
    assert running_server(tmp_path) is None


def test_a_pid_that_was_given_to_another_process_is_stale(tmp_path: Path, api_url: str) -> None:
    write_server_file(tmp_path, api_url, os.getpid())
    content = json.loads(server_file(tmp_path).read_text())
    server_file(tmp_path).write_text(json.dumps({**content, "process_started_s": 1.0}))
    assert read_server_file(tmp_path) is None


def test_a_server_that_does_not_answer_is_not_used(tmp_path: Path) -> None:
    write_server_file(tmp_path, "http://127.0.0.1:9/api", os.getpid())
    assert read_server_file(tmp_path) is not None
    assert running_server(tmp_path) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"url": "x"}', '{"url": 1, "pid": "x", "process_started_s": 0}'])
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    server_file(tmp_path).write_text(content)
    assert running_server(tmp_path) is None


def test_removing_the_file_twice_is_no_error(tmp_path: Path) -> None:
    write_server_file(tmp_path, "http://127.0.0.1:9/api", os.getpid())
    remove_server_file(tmp_path)
    remove_server_file(tmp_path)
    assert not server_file(tmp_path).exists()
