"""The flows of workloads, run here and now as the command line and a worker run them."""

import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.sorting import FlowRunSort, TaskRunSort

from flows.engine.forms import call
from flows.workloads import (
    FingerprintFlowParams,
    WorkloadEvaluateParams,
    WorkloadIdentifyParams,
    WorkloadIngestParams,
    WorkloadTrainParams,
    WorkloadWatchParams,
    workloads_evaluate,
    workloads_fingerprint,
    workloads_identify,
    workloads_ingest,
    workloads_train,
    workloads_watch,
)
from tasks.errors import BadInput, MissingTool, NotFound
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.connection import fetch, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards
from tasks.warehouse.runs import list_runs, read_run
from tasks.workloads import steps
from tasks.workloads.intake import fetch_runs
from tasks.workloads.params import EvaluateParams, FanOutParams, IdentifyParams, ReadParams, TrainParams, WatchParams
from tests.flows.artifacts import artifact

pytestmark = pytest.mark.usefixtures("prefect_server")
Draw = Callable[..., Path]


def test_an_ingest_returns_keys_and_figures_and_publishes_what_it_read(
    warehouse: Warehouse, drawn_telemetry: Draw
) -> None:
    path = drawn_telemetry("night", n_runs=2)
    found = call(workloads_ingest, WorkloadIngestParams(telemetry=[str(path)], source="night", warehouse=warehouse))
    assert (found["n_runs"], found["n_quarantined"], len(found["batches"])) == (8, 0, 1)
    assert "night.parquet" in artifact("workloads-night-ingest")
    [run] = list_runs(warehouse).to_dict("records")
    kept = read_run(warehouse, run["run_id"])
    assert (kept["flow"], kept["word"], kept["figures"]["n_runs"]) == ("workloads-ingest", "workloads", 8)


def test_a_manifest_names_the_files_and_their_labels(warehouse: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("at_s,a,b\n" + "".join(f"{at},{at % 2},1\n" for at in range(9)))
    (tmp_path / "all.csv").write_text("path,workload,round\none.csv,redis,2\n")
    read = ReadParams(manifest=str(tmp_path / "all.csv"))
    assert call(workloads_ingest, WorkloadIngestParams(read=read, warehouse=warehouse))["n_runs"] == 1
    found = fetch(warehouse, "SELECT workload, round FROM workloads.runs").to_dict("records")
    assert found == [{"workload": "redis", "round": "2"}]


ALONE = TrainParams()
ROOT = Path(__file__).parents[2]


def pictures_in(page: str) -> int:
    """How many images an artifact holds, each small enough for Prefect's page."""
    found = re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", page)
    assert all(len(picture) * 3 / 4 < 100_000 for picture in found)
    return len(found)


def steps_of_last_run() -> list[str]:
    """The names of the steps that the latest flow run has run, in order."""
    with get_client(sync_client=True) as client:
        [run] = client.read_flow_runs(sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=1)
        of_it = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
        found = client.read_task_runs(flow_run_filter=of_it, sort=TaskRunSort.EXPECTED_START_TIME_ASC)
    return [one.name.rsplit("-", 1)[0] for one in found]


@pytest.mark.slow
def test_the_second_fingerprinting_does_less_than_the_first(workloads_log: Warehouse) -> None:
    params = FingerprintFlowParams(source="log", fan_out=FanOutParams(runs_per_part=10), warehouse=workloads_log)
    first = call(workloads_fingerprint, params)
    assert (first["n_runs"], first["n_new"], first["n_done"], first["n_parts"]) == (24, 24, 0, 3)
    assert steps_of_last_run().count("cut-phases") == 3
    page = artifact("workloads-log-fingerprints")
    assert "24 runs of 24 cut now, in 3 parts; 0 had their phases" in page
    assert "Runs by workload and input" in page
    assert Path(first["report"]).exists()
    parts = Path(workloads_log.landing_folder) / "fingerprints"
    assert [path for path in parts.rglob("*") if path.is_file()] == []
    second = call(workloads_fingerprint, params)
    assert (second["n_new"], second["n_done"], second["n_parts"]) == (0, 24, 0)
    assert "cut-phases" not in steps_of_last_run()


@pytest.mark.slow
def test_an_address_of_ray_without_prefect_ray_is_one_line(
    workloads_log: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prefect_ray", None)
    fan_out = FanOutParams(ray_address="ray://head:10001")
    told = r"'ray://head:10001', and the Python package prefect-ray is not installed; .*pip install .*\[ray\]"
    with pytest.raises(MissingTool, match=told):
        call(workloads_fingerprint, FingerprintFlowParams(source="log", fan_out=fan_out, warehouse=workloads_log))
    found = call(workloads_fingerprint, FingerprintFlowParams(source="log", warehouse=workloads_log))
    assert found["n_new"] == 24  # nothing was lost


def test_the_extra_that_the_line_names_is_declared_and_pinned() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["ray"]
    assert [line.split(">")[0] for line in declared] == ["prefect-ray"]
    assert re.search(r"^prefect-ray==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)


def test_a_training_shows_what_it_made_of_the_held_out_runs(
    workloads_log: Warehouse, quick_identify: IdentifyParams
) -> None:
    params = WorkloadTrainParams(source="log", identify=quick_identify, train=ALONE, warehouse=workloads_log)
    found = call(workloads_train, params)
    assert (found["champion_id"], found["held_out"]) == (found["model_id"], "round 3")
    page = artifact("workloads-log-model")
    assert "24 runs of 4 workloads" in page and "this model" in page
    assert "8 runs (round 3)" in page
    assert "What runs were taken for" in page and pictures_in(page) == 1
    assert Path(found["report"]).exists()
    [run] = list_runs(workloads_log).to_dict("records")
    assert read_run(workloads_log, run["run_id"])["figures"]["accuracy"] == found["accuracy"]
    assert cards(workloads_log.models)[0].run_id == run["run_id"]


def test_identifications_are_kept_and_shown_with_their_reasons(identifying_log: Warehouse) -> None:
    params = WorkloadIdentifyParams(source="log", warehouse=identifying_log)
    found = call(workloads_identify, params)
    assert (found["n_runs"], found["n_known"] + found["n_unknown"]) == (24, 24)
    assert fetch(identifying_log, "SELECT count(*) AS n FROM workloads.identifications")["n"].to_list() == [24]
    page = artifact("workloads-log-identifications")
    assert f"24 runs identified by {found['model_id']}" in page
    assert "| a-00 | a |" in page
    assert "What ran when" in page and pictures_in(page) == 1
    assert pictures_in(artifact("workloads-log-summary")) >= 1
    assert call(workloads_identify, params)["n_runs"] == 0
    assert "No run that had not been identified before" in artifact("workloads-log-identifications")
    one = call(workloads_identify, WorkloadIdentifyParams(source="log", run_ids=["b-01"], warehouse=identifying_log))
    assert one["run_ids"] == ["b-01"]


@pytest.mark.slow
def test_files_are_evaluated_without_being_kept(warehouse: Warehouse, drawn_telemetry: Callable[..., Path]) -> None:
    path = drawn_telemetry("evening")
    params = WorkloadEvaluateParams(telemetry=[str(path)], evaluate=EvaluateParams(repeats=1), warehouse=warehouse)
    assert call(workloads_evaluate, params)["n"] == 24
    assert "evening.parquet" in artifact("workloads-files-evaluation")
    assert fetch(warehouse, "SELECT count(*) AS n FROM workloads.runs")["n"].to_list() == [0]


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The events that flows emit about alarms while the test runs, as they are given to Prefect."""
    found: list[dict[str, Any]] = []
    monkeypatch.setattr("flows.engine.artifacts.emit_event", lambda **event: found.append(event))
    return found


@pytest.fixture
def identifying_log(identifying_log: Warehouse) -> Warehouse:
    """The same, as if its runs had been measured: what runs now is."""
    with writing(identifying_log) as connection, transaction(connection):
        connection.execute("UPDATE workloads.runs SET is_simulated = false")
    return identifying_log


@pytest.fixture
def runs_now(monkeypatch: pytest.MonkeyPatch, identifying_log: Warehouse) -> Callable[[str], None]:
    """A function that says which known run is what a recording of now finds."""
    known = {run.run_id: run for run in fetch_runs(identifying_log, "log")}

    def now(run_id: str) -> None:
        run = replace(known[run_id], run_id=f"live-{run_id}", workload=None, round=None)
        monkeypatch.setattr("tasks.workloads.record.bench.record_live", lambda *_: run)

    return now


@pytest.mark.slow
def test_what_should_not_run_is_one_alarm_and_one_event_however_often_it_is_looked_at(
    identifying_log: Warehouse, runs_now: Callable[[str], None], events: list[dict[str, Any]]
) -> None:
    params = WorkloadWatchParams(
        source="log", watch=WatchParams(expected=["b"], min_confidence=0), warehouse=identifying_log
    )
    runs_now("b-00")
    calm = call(workloads_watch, params)
    assert (calm["n_alarms"], calm["run_ids"]) == (0, ["live-b-00"])
    assert "Nothing runs that should not" in artifact("workloads-log-alarms")
    runs_now("a-05")  # of the same minute as it was recorded in, later than b-00
    found = call(workloads_watch, params)
    assert found["n_alarms"] == 1
    [event] = events
    assert event["event"] == "whorl.workloads.alarm"
    assert "1 new alarm" in artifact("workloads-log-alarms")
    assert "What ran when" in artifact("workloads-log-alarms")
    assert "data:image/png;base64," in artifact("workloads-log-alarms")
    assert call(workloads_watch, params)["n_alarms"] == 0
    assert len(events) == 1
    assert len(read_alarms(identifying_log)) == 1


def test_what_is_looked_at_is_kept_without_a_label(identifying_log: Warehouse, runs_now: Callable[[str], None]) -> None:
    runs_now("b-00")
    call(workloads_watch, WorkloadWatchParams(source="log", warehouse=identifying_log))
    found = fetch(identifying_log, "SELECT workload FROM workloads.runs WHERE run_id = 'live-b-00'")
    assert found["workload"].isna().to_list() == [True]
    files = list((identifying_log.home / "recordings" / "workloads-live").iterdir())
    assert len(files) == 1


@pytest.mark.slow
def test_the_newest_runs_of_a_source_are_looked_at_without_recording(
    identifying_log: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("recorded")

    monkeypatch.setattr("tasks.workloads.record.bench.record_live", refuse)
    watch = WatchParams(look_at="newest", newest=3, expected=["nothing"])
    found = call(workloads_watch, WorkloadWatchParams(source="log", watch=watch, warehouse=identifying_log))
    assert len(found["run_ids"]) == 3
    assert found["n_alarms"] >= 1


def test_nothing_is_recorded_that_nobody_can_identify(
    workloads_log: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.workloads.record.bench.record_live", lambda *_: pytest.fail("recorded"))
    with pytest.raises(NotFound, match="has no model of workloads yet"):
        call(workloads_watch, WorkloadWatchParams(source="log", warehouse=workloads_log))


def test_a_recording_that_is_there_is_not_made_again(
    identifying_log: Warehouse, runs_now: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs_now("b-00")
    record = WorkloadWatchParams(source="log", warehouse=identifying_log).record
    path = steps.record_live(identifying_log, "machine", 30, record, "one")
    monkeypatch.setattr("tasks.workloads.record.bench.record_live", lambda *_: pytest.fail("recorded again"))
    assert steps.record_live(identifying_log, "machine", 30, record, "one") == path
    batch = steps.land_telemetry(identifying_log, path, "log", "wide", ReadParams())
    steps.ingest_batch(identifying_log, batch)
    assert steps.runs_of_batch(identifying_log, "log", batch) == ["live-b-00"]
    assert Path(path).exists()


def test_a_machine_that_the_model_cannot_see_fails_the_watch_and_does_not_pass_for_quiet(
    workloads_log: Warehouse, quick_identify: IdentifyParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.train(workloads_log, "log", quick_identify, TrainParams(), [], "run")
    [run] = fetch_runs(workloads_log, "log", ["a-00"])
    counters = tuple(replace(one, name=f"other.{one.name}") for one in run.counters)
    bare = replace(run, run_id="live", workload=None, counters=counters)
    monkeypatch.setattr("tasks.workloads.record.bench.record_live", lambda *_: bare)
    with pytest.raises(BadInput, match="the model in use cannot see what runs: run live: lacks 6 of 6 counters"):
        call(workloads_watch, WorkloadWatchParams(source="log", warehouse=workloads_log))
