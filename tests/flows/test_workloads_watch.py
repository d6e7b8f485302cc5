"""workloads-watch run here and now: what should not run is an alarm with an event, told once, and no kill loses one."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.parameters import WorkloadWatchParams
from flows.workloads import watch_workloads
from tasks.errors import BadInput, NotFound
from tasks.warehouse.alarms import read_alarms, unannounced
from tasks.warehouse.connection import fetch, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.workloads import model_steps, steps, watch_steps
from tasks.workloads.identify.params import IdentifyParams, TrainParams
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.stored import fetch_runs
from tasks.workloads.watch_params import WatchParams

pytestmark = pytest.mark.usefixtures("prefect_server")


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The events that flows emit about alarms while the test runs, as they are given to Prefect."""
    found: list[dict[str, Any]] = []
    monkeypatch.setattr("flows.engine.alarms.emit_event", lambda **event: found.append(event))
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
        monkeypatch.setattr("tasks.workloads.record.live.record_live", lambda *_: run)

    return now


def artifact(key: str) -> str:
    """The latest artifact under a key, as it reads."""
    from prefect.artifacts import Artifact

    found: Any = Artifact.get(key)
    assert found is not None
    return str(found.data).replace("\\", "")


@pytest.mark.slow
def test_what_should_not_run_is_one_alarm_and_one_event_however_often_it_is_looked_at(
    identifying_log: Warehouse, runs_now: Callable[[str], None], events: list[dict[str, Any]]
) -> None:
    params = WorkloadWatchParams(
        source="log", watch=WatchParams(expected=["b"], min_confidence=0), warehouse=identifying_log
    )
    runs_now("b-00")
    calm = watch_workloads(params)
    assert (calm["n_alarms"], calm["run_ids"]) == (0, ["live-b-00"])
    assert "Nothing runs that should not" in artifact("workloads-log-alarms")
    runs_now("a-05")  # of the same minute as it was recorded in, later than b-00
    found = watch_workloads(params)
    assert found["n_alarms"] == 1
    [event] = events
    assert event["event"] == "whorl.workloads.alarm"
    assert "1 new alarm" in artifact("workloads-log-alarms")
    assert "What ran when" in artifact("workloads-log-alarms")
    assert "data:image/png;base64," in artifact("workloads-log-alarms")
    assert watch_workloads(params)["n_alarms"] == 0
    assert len(events) == 1
    assert len(read_alarms(identifying_log)) == 1


def test_what_is_looked_at_is_kept_without_a_label(identifying_log: Warehouse, runs_now: Callable[[str], None]) -> None:
    runs_now("b-00")
    watch_workloads(WorkloadWatchParams(source="log", warehouse=identifying_log))
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

    monkeypatch.setattr("tasks.workloads.record.live.record_live", refuse)
    watch = WatchParams(look_at="newest", newest=3, expected=["nothing"])
    found = watch_workloads(WorkloadWatchParams(source="log", watch=watch, warehouse=identifying_log))
    assert len(found["run_ids"]) == 3
    assert found["n_alarms"] >= 1


def test_what_a_killed_watch_has_raised_is_announced_by_the_next(
    identifying_log: Warehouse, events: list[dict[str, Any]]
) -> None:
    watch = WatchParams(look_at="newest", newest=3, expected=["nothing"])
    run_ids = model_steps.newest(identifying_log, "log", 3)
    model_steps.identify(identifying_log, "log", run_ids, "all")
    raised = watch_steps.watch(identifying_log, "log", run_ids, watch)
    assert raised and events == []  # and it was killed here
    found = watch_workloads(WorkloadWatchParams(source="log", watch=watch, warehouse=identifying_log))
    assert sorted(found["alarms"]) == sorted(raised)
    assert len(events) == len(raised)
    assert unannounced(identifying_log, "workloads", "log") == []


def test_nothing_is_recorded_that_nobody_can_identify(
    workloads_log: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.workloads.record.live.record_live", lambda *_: pytest.fail("recorded"))
    with pytest.raises(NotFound, match="has no model of workloads yet"):
        watch_workloads(WorkloadWatchParams(source="log", warehouse=workloads_log))


def test_a_recording_that_is_there_is_not_made_again(
    identifying_log: Warehouse, runs_now: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs_now("b-00")
    record = WorkloadWatchParams(source="log", warehouse=identifying_log).record
    path = watch_steps.record_live(identifying_log, "machine", 30, record, "one")
    monkeypatch.setattr("tasks.workloads.record.live.record_live", lambda *_: pytest.fail("recorded again"))
    assert watch_steps.record_live(identifying_log, "machine", 30, record, "one") == path
    batch = steps.land_telemetry(identifying_log, path, "log", "wide", ReadParams())
    steps.ingest_batch(identifying_log, batch)
    assert watch_steps.runs_of_batch(identifying_log, "log", batch) == ["live-b-00"]
    assert Path(path).exists()


def test_a_machine_that_the_model_cannot_see_fails_the_watch_and_does_not_pass_for_quiet(
    workloads_log: Warehouse, quick_identify: IdentifyParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_steps.train(workloads_log, "log", quick_identify, TrainParams(), [], "run")
    [run] = fetch_runs(workloads_log, "log", ["a-00"])
    counters = tuple(replace(one, name=f"other.{one.name}") for one in run.counters)
    bare = replace(run, run_id="live", workload=None, counters=counters)
    monkeypatch.setattr("tasks.workloads.record.live.record_live", lambda *_: bare)
    with pytest.raises(BadInput, match="the model in use cannot see what runs: run live: lacks 6 of 6 counters"):
        watch_workloads(WorkloadWatchParams(source="log", warehouse=workloads_log))
