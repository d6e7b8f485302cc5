"""The watch of a source with a trained model: its limits and shapes are asked, and not missed when they are broken."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.outlook.params import DriftParams, LateParams, OutlookParams
from tasks.jobs.params import WatchParams
from tasks.jobs.predict.params import EvaluateParams, PredictParams
from tasks.jobs.predict.training import train_source
from tasks.jobs.shape_params import (
    BinParams,
    CharacteriseParams,
    ShapeParams,
)
from tasks.jobs.watch import watch_source
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.connection import transaction, writing

START = pd.Timestamp("2026-01-01")
DAYS, PER_DAY, SINCE_DAY = 40, 4, 33
END = START + pd.Timedelta(days=DAYS)
NARROW, WIDE = 0.05, 0.5
TINY = EvaluateParams(
    predict=PredictParams(
        characterise=CharacteriseParams(bins=BinParams(n_bins=40, ranges="data"), shapes=ShapeParams(k=2)),
        n_rounds=5,
        n_trees=10,
    ),
    baseline_trees=5,
)


def minutes_later(minutes):
    return END + pd.Timedelta(minutes=minutes)


def run(job, at, size, runtime_s, **more):
    name = f"{job}-{at:%d-%H%M%S}"
    known = {"run_id": name, "group_key": job, "submitted_at": at, "started_at": at, "input_bytes": 1e6 * size}
    return {**known, "runtime_s": runtime_s, "status": "completed", **more}


def the_log():
    """Narrow and wide jobs in turn, whose runtime is 100 s times their input; the first becomes wide on SINCE_DAY."""
    rng = np.random.default_rng(2)
    rows = []
    for number in range(8):
        for day in range(DAYS):
            for i in range(PER_DAY):
                at = START + pd.Timedelta(days=day + (i + rng.random()) / PER_DAY).round("s")
                has_drifted = number == 0 and day >= SINCE_DAY
                spread = WIDE if number % 2 or has_drifted else NARROW
                size = np.exp(rng.normal(0, 1)) if number == 7 else 1.0
                rows.append(run(f"job {number}", at, size, float(100 * size * np.exp(spread * rng.normal()))))
    return rows


@pytest.fixture(scope="module")
def trained(job_log_at, tmp_path_factory):
    """The home of the log with its champion, made once; tests copy it."""
    fill = job_log_at(tmp_path_factory.mktemp("trained") / "home")
    warehouse = fill(the_log())
    train_source(warehouse, "log", TINY, run_id="test")
    return warehouse


@pytest.fixture
def source(trained, tmp_path):
    """A function that puts more runs into a copy of that home."""
    warehouse = trained.model_copy(update={"home": tmp_path / "home"})
    shutil.copytree(trained.home, warehouse.home)

    def put(*runs):
        rows = pd.DataFrame(list(runs)).assign(source="log", batch_id="batch-000", is_simulated=False)
        if runs:
            with writing(warehouse) as connection, transaction(connection):
                connection.register("more_runs", rows)
                connection.execute("INSERT INTO jobs.runs BY NAME SELECT * FROM more_runs").fetchall()
        return warehouse

    return put


def watch(warehouse, *, late=True, drift=False):
    asked = LateParams(is_watched=late), DriftParams(is_watched=drift), OutlookParams()
    ids = watch_source(warehouse, "log", WatchParams(outlier_ratio=1e6, outlier_delta_s=1e9), *asked)
    found = read_alarms(warehouse, ids=ids)
    return {row["subject"]: json.loads(row["evidence"]) for row in found.to_dict("records")}


def going(run_id, job, *, size=1.0):
    return run(job, END, size, np.nan, run_id=run_id, status="running")


def heard_of(at):
    """A run of no time that says until when the log goes."""
    return run("other", at, 1.0, 0.0)


def test_the_limit_of_a_running_run_is_that_of_the_model_which_knows_its_input(source):
    # job 7 takes 100 s times its input: 600 s are a matter of course for the one and late for the other
    warehouse = source(
        going("large", "job 7", size=6.0), going("small", "job 7", size=0.5), heard_of(minutes_later(10))
    )
    found = watch(warehouse)
    assert list(found) == ["small"]
    assert found["small"]["predictor"].startswith("runtime-")
    assert found["small"]["n_history"] == DAYS * PER_DAY
    assert found["small"]["is_running"]
    assert 50 < found["small"]["limit_s"] < 400
    assert watch(warehouse) == {}


def test_a_job_that_the_model_has_never_seen_is_predicted_all_the_same(source):
    found = watch(source(going("first", "new job"), heard_of(END + pd.Timedelta(days=2))))
    assert found["first"]["predictor"].startswith("runtime-")
    assert found["first"]["n_history"] == 0


def test_a_run_that_has_ended_late_or_in_a_timeout_is_told_as_well(source):
    ended = [
        run("job 2", END, 1.0, 500.0, run_id=status, status=status, ended_at=minutes_later(500 / 60))
        for status in ("completed", "timeout", "failed")
    ]
    found = watch(source(*ended, heard_of(minutes_later(10))))
    assert sorted(found) == ["completed", "timeout"]
    assert found["timeout"]["runtime_s"] == 500


def test_the_job_that_drifts_to_another_shape_is_told_once_with_both_shapes(source):
    warehouse = source()
    [(subject, evidence)] = watch(warehouse, late=False, drift=True).items()
    assert subject.startswith("job 0 @ 2026-02-09")
    assert (evidence["shape_before"], evidence["shape_after"]) == (0, 1)
    assert evidence["shapes_of"].startswith("runtime-")
    message = read_alarms(warehouse)["message"].iloc[0]
    assert message.startswith("job 0: drifted from shape 0 to shape 1; median")
    assert watch(warehouse, late=False, drift=True) == {}


def test_a_change_within_a_shape_is_told_only_where_there_is_no_model(source):
    warehouse = source()
    with writing(warehouse) as connection:
        since_at = START + pd.Timedelta(days=SINCE_DAY)
        connection.execute(
            "UPDATE jobs.runs SET runtime_s = 1.07 * runtime_s WHERE group_key = 'job 2' AND submitted_at >= $at",
            {"at": since_at.to_pydatetime()},
        )
    assert [subject.split(" @")[0] for subject in watch(warehouse, late=False, drift=True)] == ["job 0"]
    shutil.rmtree(warehouse.models)
    assert [subject.split(" @")[0] for subject in watch(warehouse, late=False, drift=True)] == ["job 2"]


@pytest.mark.parametrize("broken", ["predictor.json", "shapes-ratio.json", "model.json"])
def test_a_model_that_cannot_be_read_is_a_warning_and_the_history_answers(source, broken, caplog):
    warehouse = source(going("small", "job 2"), heard_of(minutes_later(15)))
    [file] = warehouse.models.glob(f"jobs/*/{broken}")
    file.write_text("{}")
    found = watch(warehouse, drift=True)
    assert found["small"]["predictor"] == "history"
    assert [name.split(" @")[0] for name in found if " @" in name] == ["job 0"]
    assert sum("without its model" in line for line in caplog.messages) == 1
    assert broken in caplog.text or "train again" in caplog.text


def test_a_model_of_another_source_is_not_asked(source):
    warehouse = source()
    with writing(warehouse) as connection:
        connection.execute("UPDATE jobs.runs SET source = 'copy'")
        connection.execute("UPDATE ops.files SET source = 'copy'")
    ids = watch_source(warehouse, "copy", WatchParams(), LateParams(), DriftParams(), OutlookParams())
    kinds = [
        (row["kind"], "shapes_of" in row["evidence"]) for row in read_alarms(warehouse, ids=ids).to_dict("records")
    ]
    assert ("drift", False) in kinds
    assert ("drift", True) not in kinds
