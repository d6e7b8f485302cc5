"""Which running or just finished runs are late, and that each is told of once."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.binned import Binned
from tasks.jobs.outlook.late import COLUMNS, late_runs
from tasks.jobs.outlook.params import LateParams, OutlookParams

NOW = pd.Timestamp("2026-02-01 12:00")
PARAMS = LateParams(min_over_s=0)


def even(n):
    """Evenly spread from 0 to 100 s: the time of 95 % is 95 s."""
    return Binned([0.0, 1.0], np.ones((n, 1)), np.full(n, 100.0), "ratio")


def run(run_id, *, ago_s, runtime_s=np.nan, status=None):
    status = status or ("running" if np.isnan(runtime_s) else "completed")
    started_at = NOW - pd.Timedelta(seconds=ago_s)
    return {
        "run_id": run_id, "group_key": "etl", "status": status, "started_at": started_at, "runtime_s": runtime_s
    }  # fmt: skip


def late(*rows, params=PARAMS, told=()):
    frame = pd.DataFrame(list(rows))
    return late_runs(frame, even(len(frame)), NOW, params, OutlookParams(), told=told)


def test_a_running_job_is_late_once_it_is_beyond_its_95_percent_time():
    found = late(run("in-time", ago_s=94.9), run("late", ago_s=97))
    assert found["run_id"].tolist() == ["late"]
    row = found.iloc[0]
    assert (row["elapsed_s"], row["limit_s"], row["median_s"]) == pytest.approx((97, 95, 50))
    assert row["chance_so_long"] == pytest.approx(0.03)
    assert row["left_50_s"] == pytest.approx(1.5)  # half of those beyond 97 s end before 98.5 s
    assert row["late_since_at"] == NOW - pd.Timedelta(seconds=2)
    assert row["is_running"] and not row["is_beyond"]


def test_a_run_that_just_finished_late_is_told_of_and_one_of_last_week_is_not():
    found = late(
        run("just", ago_s=200, runtime_s=150.0),
        run("old", ago_s=7 * 86_400, runtime_s=150.0),
        run("in-time", ago_s=200, runtime_s=90.0),
    )
    assert found["run_id"].tolist() == ["just"]
    assert found["is_beyond"].item() and not found["is_running"].item()
    assert np.isnan(found["left_50_s"].item())


def test_no_run_is_told_of_twice():
    going = run("r", ago_s=120)
    assert late(going)["run_id"].tolist() == ["r"]
    assert late(going, told=["r"]).empty
    assert late(run("r", ago_s=300, runtime_s=250.0), told={"r"}).empty


def test_of_two_rows_of_a_run_the_finished_one_counts():
    found = late(run("r", ago_s=120), run("r", ago_s=120, runtime_s=110.0))
    assert found[["elapsed_s", "is_running"]].to_numpy().tolist() == [[110.0, False]]


def test_a_run_that_finished_in_time_is_not_late_because_an_old_row_says_it_runs():
    assert late(run("r", ago_s=120), run("r", ago_s=120, runtime_s=50.0)).empty


def test_the_most_surprising_comes_first_whatever_the_order():
    rows = [run("a", ago_s=96), run("b", ago_s=500), run("c", ago_s=98)]
    assert late(*rows)["run_id"].tolist() == late(*rows[::-1])["run_id"].tolist() == ["b", "c", "a"]


def test_jobs_of_seconds_stay_quiet():
    assert late(run("r", ago_s=150), params=LateParams(min_over_s=60)).empty
    assert len(late(run("r", ago_s=155), params=LateParams(min_over_s=60))) == 1


@pytest.mark.parametrize("status", ["pending", "failed", "unknown"])
def test_a_run_that_neither_runs_nor_has_a_runtime_is_no_evidence(status):
    assert late(run("r", ago_s=1e6, status=status)).empty


def test_a_run_without_a_start_is_left_out():
    row = run("r", ago_s=500) | {"started_at": pd.NaT}
    assert late(row, run("s", ago_s=500))["run_id"].tolist() == ["s"]


def test_of_runs_as_predicted_one_in_twenty_is_late():
    n = 4_000
    runtimes = even(n).sample(np.random.default_rng(3), 1)[:, 0]
    frame = pd.DataFrame([run(str(i), ago_s=200, runtime_s=x) for i, x in enumerate(runtimes)])
    found = late_runs(frame, even(n), NOW, PARAMS, OutlookParams())
    assert len(found) / n == pytest.approx(0.05, abs=0.011)


def test_without_a_late_run_the_table_is_empty_and_has_its_columns():
    assert late(run("r", ago_s=1)).columns.tolist() == list(COLUMNS)


def test_missing_columns_and_other_predictions_are_refused():
    frame = pd.DataFrame([run("r", ago_s=1)])
    with pytest.raises(BadInput, match="no column status"):
        late_runs(frame.drop(columns="status"), even(1), NOW, PARAMS, OutlookParams())
    with pytest.raises(BadInput, match="1 rows, 2 predictions"):
        late_runs(frame, even(2), NOW, PARAMS, OutlookParams())
