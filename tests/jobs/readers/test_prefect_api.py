"""Prefect's flow-run history against answers captured from a real server, and, where slow tests run, against one."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.intake import http_server
from tasks.intake.http_server import Patience
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.prefect_api import PrefectApiReader

URL = "http://127.0.0.1:4200/api"
CAPTURED = json.loads((Path(__file__).parent / "fixtures" / "prefect_api.json").read_text())
NOW = datetime.fromisoformat(CAPTURED["now"])
Run = dict[str, Any]
Answer = Callable[[httpx.Request], httpx.Response]
PATIENCE = Patience(timeout_s=30, tries=3, backoff_s=0)
BROKEN_RUNS = [
    ("id", "run-1", "id: Input should be a valid UUID"),
    ("id", None, "id: UUID input should be a string"),
    ("flow_id", 7, "flow_id: UUID input should be a string"),
    ("start_time", "yesterday", "start_time: Input should be a valid datetime"),
    ("end_time", "2026-11-21T02:02:16", "end_time: Input should have timezone info"),
    ("expected_start_time", None, "expected_start_time: Input should be a valid datetime"),
    ("state_type", "FUNNY", "state_type: Input should be 'SCHEDULED'"),
    ("total_run_time", None, "total_run_time: Input should be a valid number"),
    ("total_run_time", "long", "total_run_time: Input should be a valid number"),
    ("total_run_time", float("inf"), "total_run_time: Input should be a finite number"),
    ("end_time", None, "no runtime and no end time"),
    ("created_by", "ada", "created_by: Input should be"),
]
FIRST_PAGE = json.dumps(CAPTURED["flow_runs"][:2])
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


class CapturedServer:
    """Answers with the captured objects, filtered, sorted and cut as a real server does it."""

    def __init__(self) -> None:
        self.objects = json.loads(json.dumps({kind: CAPTURED[kind] for kind in ("flow_runs", "flows", "deployments")}))
        self.questions: list[httpx.Request] = []

    @property
    def runs(self) -> list[Run]:
        return self.objects["flow_runs"]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.questions.append(request)
        kind = request.url.path.removeprefix("/api/").removesuffix("/filter")
        if kind not in self.objects:
            return httpx.Response(404, json=CAPTURED["refusals"]["404"])
        question = json.loads(request.content)
        wanted = question.get(kind, {})
        ids, times = wanted.get("id", {}), wanted.get("expected_start_time", {})
        found = [one for one in self.objects[kind] if one["id"] in ids.get("any_", [one["id"]])]
        found = [one for one in found if one["id"] not in ids.get("not_any_", [])]
        if kind == "flow_runs":
            found.sort(key=lambda run: moment(run["expected_start_time"]))
            found = [run for run in found if moment(run["expected_start_time"]) <= moment(times["before_"])]
            found = [run for run in found if "after_" not in times or is_since(run, times["after_"])]
        return httpx.Response(200, content=json.dumps(found[: question["limit"]]))  # Infinity passes, as from Python


def moment(text: str | None) -> datetime:
    """A time of the server; what is no time comes first, so that a broken run is handed out."""
    try:
        return datetime.fromisoformat(text or "")
    except ValueError:
        return datetime.fromisoformat("2000-01-01T00:00:00Z")


def is_since(run: Run, after: str) -> bool:
    return moment(run["expected_start_time"]) >= moment(after)


@pytest.fixture
def server() -> CapturedServer:
    return CapturedServer()


def read(answer: Answer, url: str = URL, page_runs: int = 200) -> tuple[pd.DataFrame, pd.DataFrame]:
    reader = PrefectApiReader(httpx.MockTransport(answer), lambda: NOW, PATIENCE, page_runs)
    chunks = list(reader.read(url, ReadParams()))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


def test_the_captured_runs_become_rows_with_their_status(server: CapturedServer) -> None:
    rows, refused = read(server)
    assert refused.empty
    assert rows["status"].value_counts().to_dict() == {
        "completed": 5,
        "failed": 2,  # one that failed, one that crashed
        "timeout": 1,
        "cancelled": 1,
        "running": 3,  # running, paused, cancelling
        "pending": 3,  # pending, late, awaiting its retry
    }
    assert rows["place"].to_list() == list(range(1, 16))  # by expected start; two are only scheduled for later


def test_an_answer_that_is_nested_too_deeply_is_one_line() -> None:
    with pytest.raises(BadInput, match=r"malformed JSON \(nested too deeply\)"):
        read(lambda request: httpx.Response(200, content="[" * 100_000))


def test_a_retried_run_counts_its_running_time_not_the_wait_between_tries(server: CapturedServer) -> None:
    row = read(server)[0].set_index("name").loc["flaky-export"]
    # total_run_time 1.363417; from the first start 02:02:18.629186 to the end 02:02:21.085699 it is 2.456513
    assert row["runtime_s"] == 1.363417
    assert (row["ended_at"] - row["started_at"]).total_seconds() == pytest.approx(2.456513)
    assert row["wait_s"] == pytest.approx(18.629186 - 18.599098)
    assert row["submitted_at"] == pd.Timestamp("2026-11-21T02:02:18.599098")


def test_a_job_is_named_after_flow_and_deployment_never_after_the_run(server: CapturedServer) -> None:
    rows, _ = read(server)
    assert set(rows["name"]) == {
        *("load-orders", "flaky-export", "parent", "broken", "too-slow"),
        *("load-orders/nightly", "broken/nightly"),  # two jobs, although both deployments are called nightly
    }
    by_id = rows.set_index("run_id")["name"]
    assert not any(run["name"] in by_id.get(run["id"], "") for run in server.runs)
    assert set(rows["queue"].dropna()) == {"cluster/default", "cluster/urgent"}


def test_runs_that_have_not_ended_have_no_runtime(server: CapturedServer) -> None:
    rows, _ = read(server)
    assert rows.loc[rows["status"].isin(["running", "pending"]), "runtime_s"].isna().all()
    assert rows.loc[rows["status"].isin(["completed", "failed", "timeout"]), "runtime_s"].notna().all()


def test_a_run_cancelled_before_it_began_has_neither_start_nor_runtime(server: CapturedServer) -> None:
    row = read(server)[0].set_index("status").loc["cancelled"]  # Prefect says that it started when it was cancelled
    assert row[["started_at", "runtime_s", "wait_s"]].isna().all() and row["ended_at"] > row["submitted_at"]


def test_a_person_is_the_user_and_a_schedule_is_not(server: CapturedServer) -> None:
    for run, kind, who in zip(server.runs, ["USER", "SCHEDULE"], ["ada", "IntervalSchedule"], strict=False):
        run["created_by"] = {"id": None, "type": kind, "display_value": who}
    assert read(server)[0]["user_name"].dropna().to_list() == ["ada"]


def test_a_flow_that_was_deleted_leaves_its_runs_without_a_name(server: CapturedServer) -> None:
    server.objects["flows"] = [flow for flow in server.objects["flows"] if flow["name"] != "parent"]
    assert read(server)[0]["name"].isna().sum() == 1


def test_a_run_started_by_hand_before_its_time_waited_for_nothing(server: CapturedServer) -> None:
    run = next(run for run in server.runs if run["state_name"] == "Completed")
    run["expected_start_time"] = "2026-11-21T02:02:39Z"
    assert read(server)[0].set_index("run_id").loc[run["id"], "wait_s"] == 0


@pytest.mark.parametrize("page_runs", [1, 2, 7, 200])
def test_pages_of_any_size_give_each_run_once(server: CapturedServer, page_runs: int) -> None:
    expected = read(CapturedServer())[0]["run_id"].to_list()
    assert read(server, page_runs=page_runs)[0]["run_id"].to_list() == expected


def test_runs_that_start_at_the_same_time_are_each_read_once(server: CapturedServer) -> None:
    for run in server.runs:
        run["expected_start_time"] = "2026-11-21T02:00:00Z"
    rows, _ = read(server, page_runs=4)
    assert sorted(rows["run_id"]) == sorted(run["id"] for run in server.runs)


def test_runs_added_and_deleted_while_paging_shift_nothing(server: CapturedServer) -> None:
    before = read(CapturedServer())[0]["run_id"].to_list()

    def busy(request: httpx.Request) -> httpx.Response:
        answer = server(request)
        if len(server.questions) == 1:  # an early run goes, so that offsets would skip one, and a new one comes
            server.runs.remove(min(server.runs, key=lambda run: moment(run["expected_start_time"])))
            server.runs.append(
                {**server.runs[0], "id": str(os.urandom(16).hex()), "expected_start_time": "2026-11-22Z"}
            )
        return answer

    assert read(busy, page_runs=3)[0]["run_id"].to_list() == before


def test_a_server_that_fails_for_a_moment_is_asked_again(server: CapturedServer) -> None:
    failures = iter([httpx.Response(503), httpx.Response(429), None])

    def shaky(request: httpx.Request) -> httpx.Response:
        return next(failures, None) or server(request)

    assert len(read(shaky)[0]) == 15


def test_the_key_is_sent_and_passwords_are_not_told(server: CapturedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_KEY", "pnu_1")
    read(server)
    assert {question.headers["authorization"] for question in server.questions} == {"Bearer pnu_1"}
    monkeypatch.delenv("PREFECT_API_KEY")
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "ada:secret")
    with pytest.raises(BadInput) as told:
        read(lambda request: httpx.Response(401), "http://ada:secret@127.0.0.1:4200/api?key=secret")
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("path", "is_prefect"),
    [
        ("http://127.0.0.1:4200/api", True),
        ("http://127.0.0.1:4200", True),
        ("https://api.prefect.cloud/api/accounts/1/workspaces/2", True),
        ("https://example.org/jobs.csv", False),
        ("s3://bucket/api", False),
        ("/data/http/api", False),
    ],
)
def test_an_http_address_that_names_no_file_is_an_api(path: str, is_prefect: bool) -> None:
    assert PrefectApiReader().sniff(b"", path) is is_prefect


@pytest.mark.parametrize(("field", "value", "reason"), BROKEN_RUNS)
def test_a_broken_run_is_refused_alone(server: CapturedServer, field: str, value: object, reason: str) -> None:
    run = next(run for run in server.runs if run["state_name"] == "Completed")
    run |= {field: value, "parameters": {"password": "secret"}}

    rows, refused = read(server)
    assert (len(rows), len(refused)) == (14, 1)
    assert reason in refused["reason"].iloc[0]
    assert json.dumps(field) in refused["raw"].iloc[0] and "secret" not in refused["raw"].iloc[0]


def refuse_connection(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("[Errno 111] Connection refused", request=request)


def never_answer(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadTimeout("timed out", request=request)


def saying(status: int, content: str = "", **headers: str) -> Answer:
    return lambda request: httpx.Response(status, content=content, headers=headers)


BROKEN_SERVERS: list[tuple[str, Answer, str]] = [
    ("not running", refuse_connection, "no connection ([Errno 111] Connection refused), 3 times; expected the API"),
    ("silent", never_answer, "no answer within 30 s, 3 times"),
    ("failing", saying(500, "database is locked"), "the server fails (500) database is locked, 3 times"),
    ("no /api", saying(404, json.dumps(CAPTURED["refusals"]["404"])), "no Prefect API at this address (404)"),
    ("static pages", saying(405), "did you forget /api? A local server's address is http://127.0.0.1:4200/api"),
    ("a web page", saying(200, "<!doctype html><html>"), "a web page instead of JSON"),
    ("no key", saying(401, "Unauthorized"), "the server refuses to answer (401) 'Unauthorized'; expected a key"),
    ("wrong key", saying(403), "set PREFECT_API_KEY (Prefect Cloud) or PREFECT_API_AUTH_STRING (own server)"),
    ("another version", saying(422, json.dumps(CAPTURED["refusals"]["422"])), "refuses the question (422)"),
    ("cut off", saying(200, FIRST_PAGE[:-9]), "malformed JSON"),
    ("one object", saying(200, "{}"), "an answer that is no list of objects"),
    ("numbers", saying(200, "[1, 2]"), "an answer that is no list of objects"),
    ("moved", saying(307, location="https://new.example.org/api"), "redirects to https://new.example.org/api"),
    ("repeating itself", saying(200, FIRST_PAGE), "the same page of flow runs again and again"),
]


@pytest.mark.parametrize(
    ("answer", "message"), [case[1:] for case in BROKEN_SERVERS], ids=[c[0] for c in BROKEN_SERVERS]
)
def test_a_server_that_cannot_be_read_is_one_clear_line(answer: Answer, message: str) -> None:
    with pytest.raises(BadInput) as told:
        read(answer, page_runs=2)
    assert message in str(told.value)
    assert str(told.value).startswith(f"{URL}: ") and "\n" not in str(told.value)


def test_an_endless_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MAX_ANSWER_BYTES", 1000)
    with pytest.raises(BadInput, match="an answer of more than 1,000 bytes"):
        read(saying(200, FIRST_PAGE))


@pytest.mark.parametrize("url", ["http://", "http:///api", "http://[::1/api"])
def test_an_address_without_a_server_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="no address"):
        read(saying(200, "[]"), url)


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


@pytest.mark.slow
@pytest.mark.parametrize("page_runs", [1, 3, 200])
def test_a_real_servers_runs_are_read_whole_by_who_has_the_password(
    real_server: str, page_runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = PrefectApiReader(page_runs=page_runs)
    monkeypatch.delenv("PREFECT_API_AUTH_STRING", raising=False)
    with pytest.raises(BadInput, match=r"the server refuses to answer \(401\)"):
        list(reader.read(real_server, ReadParams()))
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", PASSWORD)
    chunks = list(reader.read(real_server, ReadParams()))
    rows = pd.concat([chunk.rows for chunk in chunks])
    assert not any(len(chunk.refused) for chunk in chunks)
    told = rows[["name", "status"]].to_dict("split")["data"]
    names = ["load-orders", "load-orders", "flaky-export", "broken"]
    assert told == list(map(list, zip(names, ["completed", "completed", "completed", "failed"], strict=True)))
    runtimes = rows.set_index("name")["runtime_s"]
    assert (runtimes["load-orders"] >= 0.4).all()
    flaky = rows.set_index("name").loc["flaky-export"]
    between_tries_s = 1
    assert 0.4 <= flaky["runtime_s"] < (flaky["ended_at"] - flaky["started_at"]).total_seconds() - between_tries_s / 2


@pytest.fixture(scope="module")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The API's address; its history holds four flow runs."""
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
        yield url
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
