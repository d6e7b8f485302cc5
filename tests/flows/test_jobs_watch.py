"""jobs-watch run here and now: slow runs and drifting jobs are alarms with events, each told once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from flows.jobs import alarms_page, watch_jobs
from flows.parameters import WatchFlowParams
from tasks.jobs.params import DriftParams, WatchParams
from tasks.jobs.watch import watch_source
from tasks.warehouse.alarms import read_alarms, unannounced
from tasks.warehouse.place import Warehouse

pytestmark = pytest.mark.usefixtures("prefect_server")
START = pd.Timestamp("2026-01-01")
Fill = Callable[..., Warehouse]


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The events that flows emit about alarms while the test runs, as they are given to Prefect."""
    found: list[dict[str, Any]] = []
    monkeypatch.setattr("flows.engine.alarms.emit_event", lambda **event: found.append(event))
    return found


def artifact(key: str) -> str:
    """The latest artifact under a key."""
    from prefect.artifacts import Artifact

    found: Any = Artifact.get(key)
    assert found is not None
    return str(found.data)


def the_log() -> list[dict[str, Any]]:
    """Four weeks: one job twice as slow in the last one, one steady, one run of it still going on after an hour."""
    rng = np.random.default_rng(3)
    rows = []
    for job in ("nightly_load", "hourly_copy"):
        for i in range(28 * 4):
            is_slower = job == "nightly_load" and i >= 21 * 4
            runtime_s = 100 * np.exp(0.05 * rng.normal()) * (2 if is_slower else 1)
            at = START + pd.Timedelta(hours=6 * i)
            rows.append({"run_id": f"{job}-{i}", "group_key": job, "submitted_at": at, "runtime_s": runtime_s})
    at = START + pd.Timedelta(days=28)
    going = {"run_id": "going", "group_key": "hourly_copy", "submitted_at": at, "status": "running"}
    event = {"run_id": "event", "group_key": "other", "submitted_at": at + pd.Timedelta(hours=1), "runtime_s": 0.0}
    return [*rows, going, event]


def test_a_slow_run_and_a_drifting_job_are_an_alarm_and_an_event_once(
    job_log: Fill, events: list[dict[str, Any]]
) -> None:
    params = WatchFlowParams(source="log", warehouse=job_log(the_log()))
    n_alarms = watch_jobs(params)["n_alarms"]
    told = {event["payload"]["subject"]: event for event in events}
    assert len(told) == len(events)
    n_events = len(events)  # of many alarms the rest is one event
    assert told["going"]["resource"]["whorl.kind"] == "slow-run"
    assert told["going"]["payload"]["message"].startswith("hourly_copy: run going goes on since 1 h, ")
    [drift] = [event["payload"] for event in events if event["resource"]["whorl.kind"] == "drift"]
    assert drift["message"].startswith("nightly_load: changed; median ")
    slow = {subject for subject, event in told.items() if event["resource"]["whorl.kind"] == "slow-run"} - {"going"}
    assert sum(subject.startswith("nightly_load-") for subject in slow) >= len(slow) - 2  # about two are false
    page = artifact("jobs-log-alarms").replace("\\", "")
    assert f"{n_alarms} new alarms" in page
    assert "goes on since 1 h" in page
    assert watch_jobs(params)["n_alarms"] == 0
    assert len(events) == n_events
    assert "No run was slow, and no job stopped or drifted" in artifact("jobs-log-alarms")


def test_what_a_killed_run_has_raised_is_announced_by_the_next(job_log: Fill, events: list[dict[str, Any]]) -> None:
    warehouse = job_log(the_log())
    raised = watch_source(warehouse, "log", WatchParams(), DriftParams())
    assert len(raised) >= 2  # and the run was killed here
    assert sorted(unannounced(warehouse, "jobs", "log")) == sorted(raised)
    found = watch_jobs(WatchFlowParams(source="log", warehouse=warehouse))
    assert sorted(found["alarms"]) == sorted(raised)
    assert 2 <= len(events) <= len(raised)
    assert unannounced(warehouse, "jobs", "log") == []


def test_switched_off_the_watch_looks_for_slow_runs_alone(job_log: Fill) -> None:
    off = WatchFlowParams(
        source="log",
        drift=DriftParams(is_watched=False),
        warehouse=job_log(the_log()),
    )
    watch_jobs(off)
    assert set(read_alarms(off.warehouse)["kind"]) == {"slow-run"}


def test_the_page_says_of_each_alarm_its_kind_and_as_of_when(job_log: Fill) -> None:
    slow = {"run_id": "slow", "group_key": "nightly_load", "submitted_at": START + pd.Timedelta(days=28)}
    warehouse = job_log([*the_log(), {**slow, "runtime_s": 9000.0}])
    watch_source(warehouse, "log", WatchParams(), DriftParams())
    lines = alarms_page("log", read_alarms(warehouse)).replace("\\", "").splitlines()
    ends = {kind: next(line for line in lines if f"| {kind} |" in line) for kind in ("slow-run", "drift")}
    assert ends["slow-run"].endswith("| 2026-01-29 02:30 | 2.5 h |")
    assert ends["drift"].endswith("| 2026-01-29 01:00 | 3.4 min |")
