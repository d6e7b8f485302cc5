"""Alarms for slow runs: which runs are slow, against which history, and each of them once."""

import json
from datetime import datetime

import pandas as pd
import pytest

from tasks.jobs import steps
from tasks.jobs.outlook.params import DriftParams, LateParams, OutlookParams
from tasks.jobs.params import WatchParams
from tasks.jobs.watch import watch_runs
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.connection import writing
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


def slow_subjects(warehouse, source="log", **changes):
    """The runs that the step of the watch tells of as slow."""
    params = (WatchParams(**changes), LateParams(is_watched=False), DriftParams(is_watched=False), OutlookParams())
    ids = steps.watch(warehouse, source, *params)
    return sorted(read_alarms(warehouse, ids=ids)["subject"])


def test_what_was_changed_on_purpose_is_neither_slow_nor_history(job_log):
    rows = log_of(10, 10, 10, 10, 500)
    rows += [{**row, "run_id": f"what-if-{i}", "what_if": "no_spare"} for i, row in enumerate(log_of(*[9e3] * 5))]
    assert slow_subjects(job_log(rows)) == ["run-4"]


@pytest.mark.parametrize(("last_ended", "told"), [("2026-01-20T00:00:00", []), ("2026-01-19T23:59:59", ["slow"])])
def test_a_run_that_ended_when_the_look_back_begins_is_not_looked_at(job_log, last_ended, told):
    ends = {"slow": (5000.0, pd.Timestamp("2026-01-13")), "last": (10.0, pd.Timestamp(last_ended))}
    rows = [
        {"run_id": run_id, "runtime_s": runtime_s, "submitted_at": ended_at - pd.Timedelta(seconds=runtime_s)}
        for run_id, (runtime_s, ended_at) in ends.items()
    ]
    assert slow_subjects(job_log([*log_of(10, 10, 10), *rows]), look_back_days=7) == told


def test_the_look_back_counts_from_the_last_end_of_any_run_of_the_source(job_log):
    rows = [*log_of(10, 10, 10, 500)]
    failed = {"run_id": "failed", "runtime_s": 1.0, "submitted_at": pd.Timestamp("2026-01-15"), "status": "failed"}
    changed = {**failed, "run_id": "changed", "submitted_at": pd.Timestamp("2026-02-15"), "what_if": "baseline"}
    job_log([{**failed, "run_id": "other", "submitted_at": pd.Timestamp("2026-03-15")}], source="other")
    assert slow_subjects(job_log([*rows, changed])) == ["run-3"]
    job_log([*rows, {**rows[3], "run_id": "run-4"}], source="ended")
    assert slow_subjects(job_log([failed], source="ended"), "ended") == []


def test_jobs_of_another_source_with_the_same_name_are_another_job(job_log):
    job_log(log_of(10, 10, 10, 10), source="other")
    late = [{**row, "submitted_at": row["submitted_at"] + pd.Timedelta(days=5)} for row in log_of(9e3, 9e3, 9e3, 9e3)]
    assert slow_subjects(job_log(late)) == []


def test_a_run_that_ended_at_the_moment_of_a_start_is_history_of_it(job_log):
    start = pd.Timestamp("2026-01-04")
    rows = [*log_of(10, 10), {"run_id": "third", "runtime_s": 10.0, "submitted_at": start - pd.Timedelta(seconds=10)}]
    slow = {"run_id": "slow", "runtime_s": 500.0, "submitted_at": start}
    assert slow_subjects(job_log([*rows, slow])) == ["slow"]
    job_log([*rows, {**slow, "submitted_at": start - pd.Timedelta(seconds=0.001)}], source="before")
    assert slow_subjects(job_log([{"runtime_s": 1.0, "group_key": "other"}], source="before"), "before") == []


def test_where_a_log_names_no_end_or_no_start_the_rest_tells_it(job_log):
    rows = log_of(10, 10, 10, 500)
    warehouse = job_log(rows)
    with writing(warehouse) as connection:
        connection.execute("UPDATE jobs.runs SET ended_at = NULL").fetchall()
    assert slow_subjects(warehouse) == ["run-3"]
    warehouse = job_log(rows, source="without-start")
    with writing(warehouse) as connection:
        connection.execute("UPDATE jobs.runs SET started_at = NULL WHERE source = 'without-start'").fetchall()
    assert slow_subjects(warehouse, "without-start") == ["run-3"]
    warehouse = job_log(rows, source="without-both")  # nobody knows what came before it
    with writing(warehouse) as connection:
        unknown = "UPDATE jobs.runs SET started_at = NULL, submitted_at = NULL"
        connection.execute(f"{unknown} WHERE source = 'without-both' AND run_id = 'run-3'").fetchall()
    assert slow_subjects(warehouse, "without-both") == []


def test_a_run_that_waited_is_compared_with_what_had_ended_before_its_start(job_log):
    at = pd.Timestamp("2026-01-02T12:00")
    rows = [*log_of(10, 10, 10), {"run_id": "slow", "runtime_s": 500.0, "submitted_at": at}]
    assert slow_subjects(job_log(rows), min_support=3) == []
    rows[3] |= {"started_at": at + pd.Timedelta(days=1)}
    assert slow_subjects(job_log(rows, source="waited"), "waited", min_support=3) == ["slow"]
