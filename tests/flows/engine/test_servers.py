"""The server of a home: its file, its key, the environment, and one for a single command."""

import asyncio
import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import psutil
import pytest

from flows.engine import servers
from flows.engine.servers import (
    key_file,
    load_key,
    page_host,
    read_server_file,
    remove_server_file,
    running_server,
    server_environment,
    server_file,
    write_server_file,
)
from tasks.errors import BadSetting


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
    monkeypatch.setattr(servers.os, "environ", variables)
    return variables


def test_results_are_json_and_everything_lives_in_the_home(tmp_path: Path, own_environment: dict[str, str]) -> None:
    assert servers.prepare(tmp_path) is None
    assert own_environment["PREFECT_HOME"] == str(tmp_path / "prefect")
    assert own_environment["PREFECT_RESULTS_DEFAULT_SERIALIZER"] == "json"
    assert own_environment["DO_NOT_TRACK"] == "1"
    assert "PREFECT_API_URL" not in own_environment


def test_flows_use_the_running_server_of_their_home(
    tmp_path: Path, own_environment: dict[str, str], api_url: str
) -> None:
    write_server_file(tmp_path, api_url, os.getpid())
    assert servers.prepare(tmp_path) == api_url
    assert own_environment["PREFECT_API_URL"] == api_url


def test_a_server_that_the_user_names_comes_first(
    tmp_path: Path, own_environment: dict[str, str], api_url: str
) -> None:
    own_environment["PREFECT_API_URL"] = "http://prefect.example/api"
    write_server_file(tmp_path, api_url, os.getpid())
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


ROOT = Path(__file__).parents[3]
FOREIGN = "http://evil.example"
START_S = 180.0
ENDS_WITHIN_S = 10.0


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
