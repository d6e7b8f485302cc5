"""The flows of jobs, run here and now as the command line and a worker run them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.sorting import FlowRunSort
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL

from flows import jobs
from flows.engine.forms import OfSourceParams, call
from flows.jobs import (
    CharacteriseFlowParams,
    EvaluateFlowParams,
    ExplainFlowParams,
    IngestParams,
    RecordFlowParams,
    SummaryFlowParams,
    TrainFlowParams,
    WatchFlowParams,
    WhatIfFlowParams,
    jobs_characterise,
    jobs_evaluate,
    jobs_explain,
    jobs_ingest,
    jobs_predict,
    jobs_record,
    jobs_summary,
    jobs_train,
    jobs_watch,
    jobs_whatif,
)
from tasks.errors import BadInput
from tasks.jobs.params import DriftParams, EvaluateParams, ExplainParams, WatchParams, WhatIfParams
from tasks.jobs.predict.training import train_source
from tasks.jobs.watch import watch_source
from tasks.warehouse.alarms import unannounced
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards
from tasks.warehouse.runs import compare_runs, list_runs, read_run
from tests.flows.artifacts import artifact

pytestmark = pytest.mark.usefixtures("prefect_server")


def flow_runs() -> list[Any]:
    """All flow runs of the server, the latest first."""
    with get_client(sync_client=True) as client:
        return client.read_flow_runs(sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=5)


def test_an_ingest_returns_keys_and_figures_and_publishes_its_report(warehouse: Warehouse, csv_log: Path) -> None:
    found = call(jobs_ingest, IngestParams(paths=[str(csv_log)], source="night", warehouse=warehouse))
    assert (found["n_rows"], found["n_quarantined"], len(found["batches"])) == (10, 0, 1)
    assert Path(found["report"]).exists()
    assert "runs.csv" in artifact("jobs-night-ingest")
    summary = artifact("jobs-night-summary")
    assert "10 runs of 1 jobs" in summary
    assert "data:image/png;base64," in summary
    assert len(summary) < 1_000_000
    run = flow_runs()[0]
    assert run.name == "ingest runs.csv into night" and set(run.tags) == {"whorl", "jobs"}
    [run] = list_runs(warehouse).to_dict("records")
    kept = read_run(warehouse, run["run_id"])
    assert (kept["flow"], kept["word"], kept["source"], kept["status"]) == ("jobs-ingest", "jobs", "night", "completed")
    assert (kept["parameters"]["paths"], kept["figures"]["n_rows"]) == ([str(csv_log)], 10)


def test_a_bad_file_is_one_line_and_does_not_hold_up_a_good_one(
    warehouse: Warehouse, csv_log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "zzz.csv"
    bad.write_text("no job log\n")
    params = IngestParams(paths=[str(csv_log), str(bad)], with_summary=False, reader="table", warehouse=warehouse)
    with pytest.raises(BadInput, match=r"zzz\.csv: .*; the other 1 of 2 files are loaded$") as raised:
        call(jobs_ingest, params)
    assert "\n" not in str(raised.value)
    assert fetch(warehouse, "SELECT count(*) AS n FROM jobs.runs")["n"].to_list() == [10]
    run = flow_runs()[0]
    assert run.state.type.value == "FAILED"
    assert str(raised.value) in run.state.message
    assert "Traceback" not in "".join(capfd.readouterr())
    assert list_runs(warehouse)["status"].to_list() == ["failed"]


def test_a_mistyped_path_leaves_no_empty_warehouse(warehouse: Warehouse) -> None:
    with pytest.raises(BadInput, match=r"nowhere\.csv: no such file"):
        call(jobs_ingest, IngestParams(paths=["/nowhere.csv"], warehouse=warehouse))
    assert not warehouse.file.exists()


def test_an_empty_inbox_is_no_error_on_a_schedule_and_what_lies_in_it_is_read(
    warehouse: Warehouse, csv_log: Path
) -> None:
    for paths in ([], [str(warehouse.home / "inbox")]):
        found = call(jobs_ingest, IngestParams(paths=paths, warehouse=warehouse))
        assert (found["batches"], found["report"]) == ([], "")
    inbox = warehouse.home / "inbox"
    inbox.mkdir(parents=True)
    (inbox / "runs.csv").write_text(csv_log.read_text())
    assert call(jobs_ingest, IngestParams(with_summary=False, warehouse=warehouse))["n_rows"] == 10


@pytest.mark.slow
def test_nothing_but_the_error_reaches_a_terminal(tmp_path: Path) -> None:
    """No log, no traceback, no word of Prefect about its folder or of DuckDB about what it lost at the exit."""
    (tmp_path / "bad.csv").write_text("no job log\n")
    server = {"PREFECT_API_URL": PREFECT_API_URL.value(), "PREFECT_API_AUTH_STRING": PREFECT_API_AUTH_STRING.value()}
    command = [sys.executable, "-m", "flows.cli", "jobs", "ingest", str(tmp_path / "bad.csv"), "--source", "log"]
    variables = os.environ | server | {"WHORL_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=400)
    assert (done.returncode, done.stdout) == (3, "")
    assert re.fullmatch(r"whorl: .*bad\.csv: no column run_id .*\n", done.stderr)


def test_a_recording_gets_a_folder_of_its_own_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    figures = {"isolation": "threads", "n_runs": 3, "own_cores_ratio": 0.01}
    monkeypatch.setattr(jobs, "record", lambda params, folder: {"folder": folder} | figures)
    found = [call(jobs_record, RecordFlowParams(folder=f"{tmp_path}/jobs-{{run}}")) for _ in range(2)]
    folders = [one["folder"] for one in found]
    assert found[0] == {"folder": folders[0]} | figures
    assert len(set(folders)) == 2
    assert all(json.dumps(folder) and "{" not in folder for folder in folders)
    assert flow_runs()[0].name == "record 5 minutes"


def test_a_training_names_its_shapes_and_shows_its_figures_beside_the_baselines(
    trained_log: Warehouse, quick_training: EvaluateParams
) -> None:
    first = cards(trained_log.models)[0]
    found = call(jobs_train, TrainFlowParams(source="log", evaluate=quick_training, warehouse=trained_log))
    assert found["champion_id"] == first.model_id != found["model_id"]
    assert [name.rsplit("-", 1)[0] for name in found["shapes"].values()] == ["ratio-2", "delta-2"]
    page = artifact("jobs-log-model")
    assert found["model_id"] in page
    assert f"{first.model_id}: no worse on the same runs" in page
    assert "On 144 later runs that were held out" in page
    assert found["report"] in page.replace("\\", "")
    assert "Predictors side by side" in Path(found["report"]).read_text()
    [run] = list_runs(trained_log).to_dict("records")
    kept = read_run(trained_log, run["run_id"])
    assert (kept["flow"], kept["figures"]["shapes"]) == ("jobs-train", found["shapes"])
    assert cards(trained_log.models)[-1].run_id == run["run_id"]


def test_predictions_are_written_and_the_riskiest_listed_first(trained_log: Warehouse) -> None:
    found = call(jobs_predict, OfSourceParams(source="log", warehouse=trained_log))
    assert found["n_jobs"] == 12
    rows = fetch(trained_log, "SELECT * FROM jobs.predictions ORDER BY exceeds_2x_share DESC")
    assert set(rows["model_id"]) == {found["model_id"]}
    page = artifact("jobs-log-predictions")
    assert page.index(rows["group_key"].iloc[0]) < page.index(rows["group_key"].iloc[-1])
    assert "Jobs and their next runs" in page
    assert found["report"] in page
    assert found["model_id"] in Path(found["report"]).read_text()


@pytest.mark.slow
def test_two_experiments_can_be_compared(trained_log: Warehouse, quick_training: EvaluateParams) -> None:
    longer = quick_training.model_copy(update={"baseline_trees": 10})
    for params in (quick_training, longer):
        figures = call(jobs_evaluate, EvaluateFlowParams(source="log", evaluate=params, warehouse=trained_log))
        assert figures["n"] == 720
        assert "predicted" in Path(figures["report"]).read_text()
    second, first = list_runs(trained_log)["run_id"]
    rows = compare_runs(trained_log, [first, second]).set_index("key")
    assert rows.loc["parameters.evaluate.baseline_trees", [first, second]].tolist() == [5, 10]
    assert "figures.predict.crps.lightgbm" in rows.index
    assert "figures.predict.crps.model" not in rows.index
    assert "How well the runtimes of source log are predicted" in artifact("jobs-log-evaluation")
    assert len(cards(trained_log.models)) == 1


@pytest.mark.slow
def test_logs_are_evaluated_without_being_kept(
    warehouse: Warehouse, tmp_path: Path, varied_runs: Callable[..., Any], quick_training: EvaluateParams
) -> None:
    runs = varied_runs(240)
    starts = pd.Timestamp("2026-01-01") + pd.to_timedelta(range(len(runs)), unit="min")
    file = tmp_path / "night.csv"
    runs.assign(run_id=range(len(runs)), started_at=starts).to_csv(file, index=False)
    found = call(jobs_evaluate, EvaluateFlowParams(logs=[str(file)], evaluate=quick_training, warehouse=warehouse))
    assert (found["n"], found["groups"]) == (240, 12)
    assert "night.csv" in artifact("jobs-logs-evaluation")
    assert list_runs(warehouse)["flow"].to_list() == ["jobs-evaluate"]
    assert fetch(warehouse, "SELECT count(*) AS n FROM jobs.runs")["n"].to_list() == [0]


def test_a_characterisation_shows_table_2_and_the_elbow(
    job_log: Callable[..., Warehouse], varied_runs: Callable[..., Any], quick_training: EvaluateParams
) -> None:
    warehouse = job_log(varied_runs(), source="shaped")
    found = call(
        jobs_characterise, CharacteriseFlowParams(source="shaped", evaluate=quick_training, warehouse=warehouse)
    )
    assert (found["n_groups"], found["k"]) == (12, {"ratio": 2, "delta": 2})
    page = artifact("jobs-shaped-shapes")
    assert "2 shapes (ratio) of 12 jobs with at least 10 runs in the history; the curve of inertia" in page
    assert "| shape | jobs | runs | outliers |" in page
    assert page.count("data:image/png;base64,") == 2  # the shapes of each kind
    assert len(page) < 1_000_000
    assert found["report"] in page
    assert Path(found["report"]).exists()


@pytest.mark.slow
def test_a_new_summary_writes_the_page_of_what_comes_next_anew_once_something_stands_on_it(
    trained_log: Warehouse,
) -> None:
    predicted = Path(call(jobs_predict, OfSourceParams(source="log", warehouse=trained_log))["report"])
    predicted.write_text("of the files of then")
    found = call(jobs_summary, SummaryFlowParams(source="log", warehouse=trained_log))
    assert found["report"] == str(predicted)
    assert found["data_version"] in predicted.read_text()


def test_a_source_of_which_nothing_is_predicted_has_a_page_too(job_log: Callable[..., Warehouse]) -> None:
    warehouse = job_log([{"runtime_s": float(i)} for i in range(1, 9)], source="plain")
    found = call(jobs_summary, SummaryFlowParams(source="plain", warehouse=warehouse))
    assert found["report"] == str(warehouse.home / "reports" / "jobs-plain.html")
    assert Path(found["report"]).exists()


EXPLAIN = ExplainParams(n_longest=4, n_riskiest=3)


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.slow
def test_the_longest_runs_and_the_riskiest_jobs_get_reasons(trained_log: Warehouse) -> None:
    params = ExplainFlowParams(source="log", explain=EXPLAIN, warehouse=trained_log)
    found = call(jobs_explain, params)
    reasons = fetch(trained_log, "SELECT * FROM jobs.reasons")
    assert (found["n_runs"], found["n_next"], found["n_reasons"]) == (4, 3, len(reasons))
    assert set(reasons["model_id"]) == {found["model_id"]}
    past = reasons[reasons["run_id"].notna() & (reasons["question"] == "runtime") & (reasons["rank"] == 1)]
    assert (past["runtime_s"] > past["usual_s"]).all()
    page = artifact("jobs-log-reasons")
    assert "## Why single runs were long" in page
    assert "## What makes runs long" in page
    assert found["report"] in page.replace("\\", "")
    assert "whorl jobs explain --source log" not in Path(found["report"]).read_text()  # nothing lacks
    assert call(jobs_explain, params) == found
    assert len(fetch(trained_log, "SELECT * FROM jobs.reasons")) == len(reasons)


PARAMS = WhatIfParams()
N_PAIRS = 24


def with_spare(runs: pd.DataFrame) -> pd.DataFrame:
    """The same runs, of which half find no spare tokens and take three times as long; then pairs of it."""
    spare = np.where(np.random.default_rng(4).random(len(runs)) < 0.5, 3.0, 0.0)
    log = runs.assign(requested_cpus=2.0, spare_tokens_available=spare, spare_tokens_used=spare / 2)
    log = log.assign(runtime_s=log["runtime_s"] * np.where(spare > 0, 1, 3), run_id=[f"r{i}" for i in range(len(log))])
    last = log[log["spare_tokens_available"] > 0].tail(N_PAIRS)
    parts = [log]
    for kind, factor, spare_tokens in (("baseline", 1.0, 3.0), ("no_spare", 3.0, 0.0)):
        partner = last["run_id"] if kind == "baseline" else last["run_id"] + "-baseline"
        changed = {"runtime_s": last["runtime_s"] * factor, "spare_tokens_available": spare_tokens}
        parts.append(last.assign(what_if=kind, matched_run_id=partner, run_id=last["run_id"] + f"-{kind}", **changed))
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(submitted_at=pd.Timestamp("2026-01-01") + pd.to_timedelta(range(len(frame)), unit="min"))


@pytest.fixture(scope="module")
def spare_home(
    tmp_path_factory: pytest.TempPathFactory,
    job_log_at: Callable[[Path], Any],
    varied_runs: Callable[..., pd.DataFrame],
    quick_training: EvaluateParams,
) -> Path:
    """A source `log` with spare tokens, runs done again without them, and a model."""
    home = tmp_path_factory.mktemp("spare") / "home"
    train_source(job_log_at(home)(with_spare(varied_runs())), "log", quick_training, run_id="test")
    return home


@pytest.fixture
def spare_log(spare_home: Path) -> Warehouse:
    return Warehouse(home=spare_home, memory_mb=256, threads=1)


@pytest.mark.usefixtures("prefect_server")
def test_scenarios_are_answered_written_and_told_and_what_the_log_has_not_is_a_line(spare_log: Warehouse) -> None:
    params = WhatIfFlowParams(source="log", whatif=PARAMS, sets=["spare_multiplier=1", "input=x2"], warehouse=spare_log)
    found = call(jobs_whatif, params)
    assert found["scenarios"] == ["no_spare", "spare_multiplier=1, input=x2"]
    assert set(found["refused"]) == {"newest_sku", "steady_load"}
    assert found["right_share"]["no_spare"] == pytest.approx(1.0, abs=0.1)
    rows = fetch(spare_log, "SELECT scenario, measure, model_id FROM jobs.what_ifs")
    assert set(rows["scenario"]) == set(found["scenarios"])
    assert set(rows["model_id"]) == {found["model_id"]}
    page = artifact("jobs-log-whatif")
    assert "What if: no_spare" in page.replace("\\", "")
    assert "Mind: " in page  # what the figures do not support
    assert "the log says nothing of kinds of machine" in page
    assert page.count("data:image/png;base64,") == 2  # who moves where, for each answer
    assert found["report"] in page.replace("\\", "")
    assert "spare_multiplier=1" in Path(found["report"]).read_text()
    again = call(jobs_whatif, params)
    assert again == found
    assert len(fetch(spare_log, "SELECT 1 FROM jobs.what_ifs")) == len(rows)


@pytest.mark.usefixtures("prefect_server")
def test_a_log_that_no_scenario_fits_is_one_line(trained_log: Warehouse) -> None:
    with pytest.raises(BadInput, match=r"^what-if spare_multiplier=0: this log tells nothing of spare tokens"):
        call(jobs_whatif, WhatIfFlowParams(source="log", whatif=PARAMS, warehouse=trained_log))


START = pd.Timestamp("2026-01-01")
Fill = Callable[..., Warehouse]


@pytest.fixture
def alarm_events(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The events that flows emit about alarms while the test runs, as they are given to Prefect."""
    found: list[dict[str, Any]] = []
    monkeypatch.setattr("flows.engine.artifacts.emit_event", lambda **event: found.append(event))
    return found


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
    job_log: Fill, alarm_events: list[dict[str, Any]]
) -> None:
    params = WatchFlowParams(source="log", warehouse=job_log(the_log()))
    n_alarms = call(jobs_watch, params)["n_alarms"]
    told = {event["payload"]["subject"]: event for event in alarm_events}
    assert len(told) == len(alarm_events)
    n_events = len(alarm_events)  # of many alarms the rest is one event
    assert told["going"]["resource"]["whorl.kind"] == "slow-run"
    assert told["going"]["payload"]["message"].startswith("hourly_copy: run going goes on since 1 h, ")
    [drift] = [event["payload"] for event in alarm_events if event["resource"]["whorl.kind"] == "drift"]
    assert drift["message"].startswith("nightly_load: changed; median ")
    slow = {subject for subject, event in told.items() if event["resource"]["whorl.kind"] == "slow-run"} - {"going"}
    assert sum(subject.startswith("nightly_load-") for subject in slow) >= len(slow) - 2  # about two are false
    page = artifact("jobs-log-alarms")
    assert f"{n_alarms} new alarms" in page
    assert "goes on since 1 h" in page
    assert call(jobs_watch, params)["n_alarms"] == 0
    assert len(alarm_events) == n_events
    assert "No run was slow, and no job stopped or drifted" in artifact("jobs-log-alarms")


def test_what_a_killed_run_has_raised_is_announced_by_the_next(
    job_log: Fill, alarm_events: list[dict[str, Any]]
) -> None:
    warehouse = job_log(the_log())
    raised = watch_source(warehouse, "log", WatchParams(), DriftParams())
    assert len(raised) >= 2  # and the run was killed here
    assert sorted(unannounced(warehouse, "jobs", "log")) == sorted(raised)
    found = call(jobs_watch, WatchFlowParams(source="log", warehouse=warehouse))
    assert sorted(found["alarms"]) == sorted(raised)
    assert 2 <= len(alarm_events) <= len(raised)
    assert unannounced(warehouse, "jobs", "log") == []
