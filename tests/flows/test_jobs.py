"""The flows about jobs, run here and now as the command line runs them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.jobs import (
    ingest_jobs,
    record_jobs,
    summarise_jobs,
    watch_jobs,
)
from flows.parameters import IngestParams, RecordFlowParams, SummaryFlowParams, WatchFlowParams
from tasks.errors import BadInput, NotFound
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.runs import list_runs, read_run

pytestmark = pytest.mark.usefixtures("prefect_server")


@pytest.fixture
def events() -> Iterator[list[Any]]:
    """The events that flows emit while the test runs."""
    from prefect.events.clients import AssertingEventsClient
    from prefect.events.worker import EventsWorker

    EventsWorker.set_client_override(AssertingEventsClient)
    found: list[Any] = []
    try:
        yield found
    finally:
        EventsWorker.set_client_override(None)
        AssertingEventsClient.reset()


def emitted(name: str) -> list[Any]:
    """Events of this name, after the worker has sent what it holds."""
    from prefect.events.clients import AssertingEventsClient
    from prefect.events.worker import EventsWorker

    EventsWorker.instance().wait_until_empty()
    all_of_them = [event for client in AssertingEventsClient.all for event in client.events]
    return [event for event in all_of_them if event.event == name]


def flow_runs() -> list[Any]:
    """All flow runs of the server, the latest first."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import FlowRunSort

    with get_client(sync_client=True) as client:
        return client.read_flow_runs(sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=5)


def artifact(key: str) -> str:
    """The latest artifact under a key."""
    from prefect.artifacts import Artifact

    found = Artifact.get(key)
    assert found is not None
    assert isinstance(found.data, str)
    return found.data


def test_an_ingest_returns_keys_and_figures_and_publishes_its_report(warehouse: Warehouse, csv_log: Path) -> None:
    found = ingest_jobs(IngestParams(paths=[str(csv_log)], source="night", warehouse=warehouse))
    assert (found["n_rows"], found["n_quarantined"], len(found["batches"])) == (10, 0, 1)
    assert Path(found["report"]).exists()
    assert "runs.csv" in artifact("jobs-night-ingest").replace("\\", "")
    summary = artifact("jobs-night-summary")
    assert "10 runs of 1 jobs" in summary
    assert "data:image/png;base64," in summary
    assert len(summary) < 1_000_000


def test_a_run_says_what_it_does_and_carries_its_tags(warehouse: Warehouse, csv_log: Path) -> None:
    ingest_jobs(IngestParams(paths=[str(csv_log)], source="named", with_summary=False, warehouse=warehouse))
    run = flow_runs()[0]
    assert run.name == "ingest runs.csv into named"
    assert set(run.tags) == {"whorl", "jobs"}


def test_an_ingest_is_kept_with_its_parameters_and_figures(warehouse: Warehouse, csv_log: Path) -> None:
    ingest_jobs(IngestParams(paths=[str(csv_log)], source="kept", with_summary=False, warehouse=warehouse))
    [run] = list_runs(warehouse).to_dict("records")
    kept = read_run(warehouse, run["run_id"])
    assert (kept["flow"], kept["word"], kept["source"], kept["status"]) == ("jobs-ingest", "jobs", "kept", "completed")
    assert kept["parameters"]["paths"] == [str(csv_log)]
    assert kept["figures"]["n_rows"] == 10


@pytest.mark.slow
def test_the_same_log_twice_adds_nothing(warehouse: Warehouse, csv_log: Path) -> None:
    params = IngestParams(paths=[str(csv_log)], with_summary=False, warehouse=warehouse)
    assert ingest_jobs(params)["batches"] == ingest_jobs(params)["batches"]
    assert fetch(warehouse, "SELECT count(*) AS n FROM jobs.runs")["n"].to_list() == [10]


def test_a_bad_file_is_one_line_and_does_not_hold_up_a_good_one(
    warehouse: Warehouse, csv_log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "zzz.csv"
    bad.write_text("no job log\n")
    params = IngestParams(paths=[str(csv_log), str(bad)], with_summary=False, reader="own", warehouse=warehouse)
    with pytest.raises(BadInput, match=r"zzz\.csv: .*; the other 1 of 2 files are loaded$") as raised:
        ingest_jobs(params)
    assert "\n" not in str(raised.value)
    assert fetch(warehouse, "SELECT count(*) AS n FROM jobs.runs")["n"].to_list() == [10]
    run = flow_runs()[0]
    assert run.state.type.value == "FAILED"
    assert str(raised.value) in run.state.message
    assert "Traceback" not in "".join(capfd.readouterr())
    assert list_runs(warehouse)["status"].to_list() == ["failed"]


def test_several_bad_files_are_one_line_with_their_number(warehouse: Warehouse, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("no job log\n")
    paths = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    with pytest.raises(BadInput, match=r"^2 of 2 files: could not be read, the first: .*a\.csv"):
        ingest_jobs(IngestParams(paths=paths, reader="own", warehouse=warehouse))


def test_a_mistyped_path_leaves_no_empty_warehouse(warehouse: Warehouse) -> None:
    with pytest.raises(BadInput, match=r"nowhere\.csv: no such file"):
        ingest_jobs(IngestParams(paths=["/nowhere.csv"], warehouse=warehouse))
    assert not warehouse.file.exists()


def test_an_empty_inbox_is_no_error_on_a_schedule(warehouse: Warehouse) -> None:
    for paths in ([], [str(warehouse.home / "inbox")]):
        found = ingest_jobs(IngestParams(paths=paths, warehouse=warehouse))
        assert (found["batches"], found["report"]) == ([], "")


def test_what_lies_in_the_inbox_is_read(warehouse: Warehouse, csv_log: Path) -> None:
    inbox = warehouse.home / "inbox"
    inbox.mkdir(parents=True)
    (inbox / "runs.csv").write_text(csv_log.read_text())
    assert ingest_jobs(IngestParams(with_summary=False, warehouse=warehouse))["n_rows"] == 10


@pytest.mark.slow
def test_a_summary_of_nothing_names_the_sources_there_are(warehouse: Warehouse, csv_log: Path) -> None:
    ingest_jobs(IngestParams(paths=[str(csv_log)], source="there", with_summary=False, warehouse=warehouse))
    with pytest.raises(NotFound, match="'elsewhere' has no job runs; sources that have some: 'there'"):
        summarise_jobs(SummaryFlowParams(source="elsewhere", warehouse=warehouse))
    found = summarise_jobs(SummaryFlowParams(source="there", warehouse=warehouse))
    assert (found["n_runs"], found["n_groups"]) == (10, 1)


@pytest.mark.slow
def test_nothing_but_the_error_reaches_a_terminal(warehouse: Warehouse) -> None:
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL

    code = (
        "import sys; from pathlib import Path; from flows.engine.servers import prepare; home = Path(sys.argv[1]); "
        "prepare(home); from flows.jobs import summarise_jobs; from flows.parameters import SummaryFlowParams; "
        "from tasks.errors import NotFound; from tasks.warehouse.place import Warehouse\n"
        "try: summarise_jobs(SummaryFlowParams(source='nowhere', warehouse=Warehouse(home=home)))\n"
        "except NotFound as error: print(error)"
    )
    server = {"PREFECT_API_URL": PREFECT_API_URL.value(), "PREFECT_API_AUTH_STRING": PREFECT_API_AUTH_STRING.value()}
    variables = os.environ | server
    command = [sys.executable, "-c", code, str(warehouse.home)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.startswith("source 'nowhere' has no job runs")
    assert done.stderr == ""  # no log, no traceback, no word of DuckDB about what it lost at the exit


def test_a_slow_run_is_an_alarm_once_with_an_event_that_tells_it(
    warehouse: Warehouse, long_csv_log: Path, events: list[Any]
) -> None:
    ingest_jobs(IngestParams(paths=[str(long_csv_log)], source="slow", with_summary=False, warehouse=warehouse))
    params = WatchFlowParams(source="slow", warehouse=warehouse)
    assert watch_jobs(params)["n_alarms"] >= 1
    told = emitted("whorl.jobs.alarm")
    [event] = [one for one in told if "run r10 " in one.payload["message"]]
    assert event.payload["evidence"]["runtime_s"] == 6000
    assert event.resource["whorl.source"] == "slow"
    assert "r10" in artifact("jobs-slow-alarms")
    assert watch_jobs(params)["n_alarms"] == 0
    assert len(emitted("whorl.jobs.alarm")) == len(told)
    assert "No run was slow" in artifact("jobs-slow-alarms")


def test_a_recording_gets_a_folder_of_its_own_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from flows import jobs

    figures = {"isolation": "threads", "n_runs": 3, "own_cores_ratio": 0.01}
    monkeypatch.setattr(jobs, "record", lambda params, folder: {"folder": folder} | figures)
    found = [record_jobs(RecordFlowParams(folder=f"{tmp_path}/jobs-{{run}}")) for _ in range(2)]
    folders = [one["folder"] for one in found]
    assert found[0] == {"folder": folders[0]} | figures
    assert len(set(folders)) == 2
    assert all(json.dumps(folder) and "{" not in folder for folder in folders)
    assert flow_runs()[0].name == "record 5 minutes"
