"""Prefect's flow-run history read from a real server that has just run real flows."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.prefect_api import PrefectApiReader

pytestmark = pytest.mark.slow
STARTED_WITHIN_S, STOPPED_WITHIN_S, RAN_WITHIN_S = 180, 30, 300
TRIED_EVERY_S = 0.5
PASSWORD = "ada:lovelace"
FLOWS = """
import os, time
from prefect import flow

@flow
def load_orders():
    time.sleep(0.4)

@flow(retries=1, retry_delay_seconds=1)
def flaky_export(marker):
    time.sleep(0.2)
    if not os.path.exists(marker):
        open(marker, "w").close()
        raise RuntimeError("the first try fails")

@flow
def broken():
    raise ValueError("no such table")

if __name__ == "__main__":
    load_orders()
    load_orders()
    flaky_export("marker")
    broken(return_state=True)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """The API's address and the environment in which clients reach it; its history holds four flow runs."""
    home = tmp_path_factory.mktemp("prefect")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")},
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_API_AUTH_STRING": PASSWORD,
        "PREFECT_API_AUTH_STRING": PASSWORD,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_TELEMETRY_ENABLE_RESOURCE_METRICS": "false",
        "DO_NOT_TRACK": "1",
    }
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", port]
    with (home / "server.log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=home, start_new_session=True)
    url = f"http://127.0.0.1:{port}/api"
    try:
        wait_for(url, process, home / "server.log")
        (home / "flows.py").write_text(FLOWS)
        client = environment | {"PREFECT_API_URL": url}
        subprocess.run([sys.executable, "flows.py"], env=client, cwd=home, check=True, timeout=RAN_WITHIN_S)
        yield url, client
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + STARTED_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{url}/health", auth=tuple(PASSWORD.split(":")), trust_env=False).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(TRIED_EVERY_S)
    pytest.fail(f"the server did not start: {log.read_text()[-2000:]}")


def read(url: str, page_runs: int = 200) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(PrefectApiReader(page_runs=page_runs).read(url, ReadParams()))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


@pytest.mark.parametrize("page_runs", [1, 3, 200])
def test_a_real_servers_runs_are_read_whole(
    server: tuple[str, dict[str, str]], page_runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", PASSWORD)
    rows, refused = read(server[0], page_runs)
    assert refused.empty
    told = rows[["name", "status"]].to_dict("split")["data"]
    names = ["load-orders", "load-orders", "flaky-export", "broken"]
    assert told == list(map(list, zip(names, ["completed", "completed", "completed", "failed"], strict=True)))
    runtimes = rows.set_index("name")["runtime_s"]
    assert (runtimes["load-orders"] >= 0.4).all()
    flaky = rows.set_index("name").loc["flaky-export"]
    between_tries_s = 1
    assert 0.4 <= flaky["runtime_s"] < (flaky["ended_at"] - flaky["started_at"]).total_seconds() - between_tries_s / 2


def test_a_real_server_refuses_who_has_no_password(
    server: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PREFECT_API_AUTH_STRING", raising=False)
    with pytest.raises(BadInput, match=r"the server refuses to answer \(401\)"):
        read(server[0])


def test_a_real_server_without_api_in_the_address_is_told(
    server: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", PASSWORD)
    with pytest.raises(BadInput, match=r"no Prefect API at this address .*did you forget /api\?"):
        read(server[0].removesuffix("/api"))
