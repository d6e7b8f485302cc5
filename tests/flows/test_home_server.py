"""A server of a home: it answers who shows its key, and no page but its own, and ends with its command."""

import asyncio
import json
import stat
from pathlib import Path

import httpx
import psutil
import pytest

from flows.engine.servers import (
    load_key,
    page_host,
    server_environment,
)
from tasks.errors import BadSetting

ROOT = Path(__file__).parents[2]
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
