"""Alarms for slow runs: which runs are slow, against which history, and each of them once."""

import json
from datetime import datetime

import pandas as pd
import pytest

from tasks.jobs.params import WatchParams
from tasks.jobs.watch import watch_runs
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.hashes import hash_tables

PARAMS = WatchParams()


def log_of(*runtimes_s):
    times = pd.date_range("2026-01-01", periods=len(runtimes_s), freq="D")
    rows = zip(runtimes_s, times, strict=True)
    return [{"runtime_s": float(x), "submitted_at": at, "run_id": f"run-{i}"} for i, (x, at) in enumerate(rows)]


def slow_ids(warehouse, params=PARAMS):
    ids = watch_runs(warehouse, "log", params)
    found = read_alarms(warehouse, ids=ids).set_index("alarm_id")
    return found.loc[ids, "subject"].tolist()


@pytest.mark.parametrize(
    ("last_s", "is_slow"),
    [(100, True), (99.9, False)],  # ten times the median of 10
)
def test_a_run_is_slow_from_ten_times_the_median_on(job_log, last_s, is_slow):
    assert slow_ids(job_log(log_of(10, 10, 10, last_s))) == (["run-3"] if is_slow else [])


@pytest.mark.parametrize(("last_s", "is_slow"), [(1900.5, True), (1900, False)])
def test_a_run_of_a_long_job_is_slow_when_more_than_900_s_above_the_median(job_log, last_s, is_slow):
    assert slow_ids(job_log(log_of(1000, 1000, 1000, last_s))) == (["run-3"] if is_slow else [])


def test_two_earlier_runs_are_not_enough_to_call_a_run_slow(job_log):
    assert slow_ids(job_log(log_of(10, 10, 5000))) == []


def test_a_slow_run_does_not_hide_itself_in_its_own_history(job_log):
    # over all runs the median is 10, too, but over the three before the third slow one it is 1000
    assert slow_ids(job_log(log_of(10, 10, 10, 1000, 1000, 1000, 1000, 10))) == ["run-3", "run-4", "run-5"]


def test_runs_that_were_slow_at_the_same_time_all_raise_an_alarm(job_log):
    rows = log_of(10, 10, 10)
    start = pd.Timestamp("2026-01-04")
    rows += [{"runtime_s": 1000.0, "submitted_at": start, "run_id": f"burst-{i}"} for i in range(9)]
    assert slow_ids(job_log(rows)) == [f"burst-{i}" for i in range(9)]


def test_failed_runs_are_no_history_and_timeouts_are_looked_at(job_log):
    rows = log_of(10, 10, 10, 1, 1, 1, 1, 100)
    statuses = ["completed"] * 3 + ["failed"] * 4 + ["timeout"]
    rows = [{**row, "status": status} for row, status in zip(rows, statuses, strict=True)]
    warehouse = job_log(rows)
    assert slow_ids(warehouse) == ["run-7"]
    evidence = json.loads(read_alarms(warehouse)["evidence"].iloc[0])
    assert (evidence["history_median_s"], evidence["n_history"], evidence["runtime_s"]) == (10, 3, 100)
    assert (evidence["started_at"], evidence["ended_at"]) == ("2026-01-08T00:00:00Z", "2026-01-08T00:01:40Z")


def test_only_the_last_days_of_the_log_are_looked_at(job_log):
    warehouse = job_log(log_of(10, 10, 10, 500, *[10] * 8))
    assert slow_ids(warehouse, WatchParams(look_back_days=7)) == []
    assert slow_ids(warehouse, WatchParams(look_back_days=9)) == ["run-3"]


def test_a_median_of_zero_has_no_ratio_but_still_a_delta(job_log):
    assert slow_ids(job_log(log_of(0, 0, 0, 5, 1000))) == ["run-4"]


def test_jobs_do_not_share_their_history(job_log):
    rows = [{**row, "group_key": "short"} for row in log_of(10, 10, 10)]
    rows += [{**row, "run_id": f"long-{i}", "group_key": "long"} for i, row in enumerate(log_of(800, 800, 800, 800))]
    assert slow_ids(job_log(rows)) == []


def test_watching_twice_raises_nothing_new_and_touches_no_row(job_log):
    warehouse = job_log(log_of(10, 10, 10, 500))
    assert len(watch_runs(warehouse, "log", PARAMS, now=datetime(2026, 2, 1))) == 1
    before = hash_tables(warehouse)
    assert watch_runs(warehouse, "log", PARAMS, now=datetime(2026, 3, 1)) == []
    assert hash_tables(warehouse) == before


def test_a_later_slow_run_raises_its_own_alarm_only(job_log):
    warehouse = job_log(log_of(10, 10, 10, 500))
    watch_runs(warehouse, "log", PARAMS)
    job_log([{"runtime_s": 700.0, "submitted_at": pd.Timestamp("2026-01-05"), "run_id": "later"}])
    assert slow_ids(warehouse) == ["later"]


def test_the_message_says_what_happened_with_its_figures(job_log):
    warehouse = job_log(log_of(10, 10, 10, 500))
    watch_runs(warehouse, "log", PARAMS)
    alarm = read_alarms(warehouse).iloc[0]
    assert alarm["message"] == "job: run run-3 took 8.3 min, 50 × the median of its 3 earlier runs (10 s)"
    assert (alarm["word"], alarm["source"], alarm["kind"]) == ("jobs", "log", "slow-run")


def test_the_order_of_the_rows_does_not_matter(job_log):
    rows = log_of(10, 11, 9, 500, 10, 12, 800, 10)
    straight = slow_ids(job_log(rows))
    warehouse = job_log(rows[::-1], source="reversed")
    ids = watch_runs(warehouse, "reversed", PARAMS)
    assert sorted(read_alarms(warehouse, ids=ids)["subject"]) == sorted(straight)


def test_a_source_without_runs_raises_nothing(job_log):
    assert watch_runs(job_log([{"runtime_s": 1.0}]), "empty", PARAMS) == []
