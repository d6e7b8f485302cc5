"""Alarms for late runs: told while they go on, against the history of their job, and each of them once."""

import json

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.outlook.params import DriftParams, LateParams, OutlookParams
from tasks.jobs.params import WatchParams
from tasks.jobs.watch import watch_source
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.hashes import hash_tables

START = pd.Timestamp("2026-01-01")
NIGHT = START + pd.Timedelta(hours=40)  # after 40 runs of an hour's distance
N_EARLIER = 40
LATE = LateParams()
QUIET = DriftParams(is_watched=False)


def usual(n=N_EARLIER, *, job="etl"):
    """Runs of 100 s to 119 s, one an hour: 95 % of them take at most 118 s."""
    return [
        {
            "run_id": f"{job}-{i}",
            "group_key": job,
            "submitted_at": START + pd.Timedelta(hours=i),
            "runtime_s": 100.0 + i % 20,
        }
        for i in range(n)
    ]


def going(run_id="now", *, job="etl", at=NIGHT):
    return {"run_id": run_id, "group_key": job, "submitted_at": at, "runtime_s": np.nan, "status": "running"}


def heard_of(at):
    """An event that says until when the log goes: a run of another job, submitted then."""
    return {"run_id": f"event-{at}", "group_key": "other", "submitted_at": at, "runtime_s": 0.0}


def watch(warehouse, source="log", *, late=LATE, watch=None):
    return watch_source(warehouse, source, watch or WatchParams(), late, QUIET, OutlookParams())


def told(warehouse, ids):
    found = read_alarms(warehouse, ids=ids)
    return sorted(zip(found["kind"], found["subject"], strict=True))


def set_read_at(warehouse, at):
    with writing(warehouse) as connection, transaction(connection):
        connection.execute("UPDATE ops.files SET ordered_at = $at", {"at": pd.Timestamp(at).to_pydatetime()})


def seconds_later(seconds):
    return NIGHT + pd.Timedelta(seconds=seconds)


@pytest.mark.parametrize(("seconds", "is_late"), [(118 + 59, False), (118 + 61, True)])
def test_a_running_run_is_told_once_it_is_a_minute_beyond_its_95_percent_time(job_log, seconds, is_late):
    warehouse = job_log([*usual(), going(), heard_of(seconds_later(seconds))])
    assert told(warehouse, watch(warehouse)) == ([("late-run", "now")] if is_late else [])


def test_the_alarm_says_what_is_late_against_which_limit_and_who_predicted_it(job_log):
    warehouse = job_log([*usual(), going(), heard_of(seconds_later(600))])
    watch(warehouse)
    [alarm] = read_alarms(warehouse).to_dict("records")
    assert alarm["message"].startswith(
        "etl: run now is going on since 10 min; 95 % of its runs were expected to take at most 118 s; "
    )
    evidence = json.loads(alarm["evidence"])
    assert (evidence["predictor"], evidence["n_history"], evidence["is_running"]) == ("history", 40, True)
    assert (evidence["elapsed_s"], evidence["limit_s"], evidence["level"]) == (600, 118, 0.95)
    assert evidence["started_at"] == "2026-01-02T16:00:00Z"
    assert evidence["known_at"] == "2026-01-02T16:10:00Z"
    assert "ended_at" not in evidence and "runtime_s" not in evidence


def test_a_late_run_is_told_once_however_long_it_goes_on_and_when_it_ends(job_log):
    warehouse = job_log([*usual(), going(), heard_of(seconds_later(600))])
    assert len(watch(warehouse)) == 1
    job_log([heard_of(seconds_later(3600))])
    before = hash_tables(warehouse)
    assert watch(warehouse) == []
    assert hash_tables(warehouse) == before
    with writing(warehouse) as connection:
        connection.execute("UPDATE jobs.runs SET status = 'completed', runtime_s = 700 WHERE run_id = 'now'")
    assert watch(warehouse) == []


def test_a_run_that_ended_in_time_after_all_is_no_longer_late(job_log):
    warehouse = job_log([*usual(), going(), heard_of(seconds_later(600))])
    with writing(warehouse) as connection:
        connection.execute("UPDATE jobs.runs SET status = 'completed', runtime_s = 110 WHERE run_id = 'now'")
    assert watch(warehouse) == []


def test_a_run_that_just_ended_late_is_told_and_one_of_last_week_is_not(job_log):
    late_ones = [
        {**going(name, at=at), "runtime_s": 500.0, "status": "completed"}
        for name, at in (("just", NIGHT), ("old", START + pd.Timedelta(hours=30.5)))
    ]
    warehouse = job_log([*usual(), *late_ones, heard_of(START + pd.Timedelta(hours=60))])
    assert told(warehouse, watch(warehouse)) == [("late-run", "just")]
    assert read_alarms(warehouse)["message"].iloc[0].startswith("etl: run just took 8.3 min; 95 % of its runs")


def test_a_run_that_is_told_of_as_slow_is_not_told_of_as_late(job_log):
    slow = {**going("slow"), "runtime_s": 6000.0, "status": "completed"}
    warehouse = job_log([*usual(), slow])
    assert told(warehouse, watch(warehouse)) == [("slow-run", "slow")]


def test_a_run_that_was_late_and_has_ended_slow_is_told_of_as_slow_as_before(job_log):
    warehouse = job_log([*usual(), going(), heard_of(seconds_later(600))])
    assert told(warehouse, watch(warehouse)) == [("late-run", "now")]
    with writing(warehouse) as connection:
        connection.execute(
            "UPDATE jobs.runs SET status = 'completed', runtime_s = 6000, "
            "ended_at = started_at + INTERVAL 6000 SECOND WHERE run_id = 'now'"
        )
    assert told(warehouse, watch(warehouse)) == [("slow-run", "now")]


@pytest.mark.parametrize(("n_earlier", "is_late"), [(19, False), (20, True)])
def test_of_nineteen_earlier_runs_none_can_stand_for_the_95_percent_time(job_log, n_earlier, is_late):
    warehouse = job_log([*usual(n_earlier), going(), heard_of(seconds_later(600))])
    assert bool(watch(warehouse)) == is_late


def test_runs_that_ended_after_the_submission_are_not_its_history(job_log):
    at = START + pd.Timedelta(hours=19)  # 19 runs had ended, the one of the same moment not
    warehouse = job_log([*usual(), going(at=at), heard_of(NIGHT)])
    assert watch(warehouse) == []


def test_a_file_of_a_log_that_goes_on_says_that_its_runs_went_on_until_it_was_read(job_log):
    warehouse = job_log([*usual(), going()])
    assert watch(warehouse) == []  # the last event is the start of the run
    set_read_at(warehouse, seconds_later(600))
    assert told(warehouse, watch(warehouse)) == [("late-run", "now")]


def test_of_an_old_log_that_is_read_today_no_run_goes_on_since_then(job_log):
    warehouse = job_log([*usual(), going()])
    set_read_at(warehouse, NIGHT + pd.Timedelta(days=400))
    assert watch(warehouse) == []


def test_a_run_whose_end_was_never_logged_is_not_told_of_after_a_week(job_log):
    rows = [*usual(), going(), heard_of(NIGHT + pd.Timedelta(days=8))]
    warehouse = job_log(rows)
    assert watch(warehouse) == []
    assert len(watch(warehouse, watch=WatchParams(look_back_days=9))) == 1


def test_a_run_that_was_late_in_a_file_of_last_month_is_no_news(job_log):
    warehouse = job_log([*usual(), going(), heard_of(seconds_later(600))])
    job_log([heard_of(NIGHT + pd.Timedelta(days=30))])
    assert watch(warehouse) == []


def test_what_was_read_of_a_run_last_week_does_not_say_that_it_goes_on_today(job_log):
    warehouse = job_log([*usual(), going()])
    job_log([heard_of(NIGHT + pd.Timedelta(days=1))])  # another file, read later
    assert watch(warehouse) == []


def test_switched_off_no_run_is_late(job_log):
    warehouse = job_log([*usual(), going(), heard_of(seconds_later(600))])
    assert watch(warehouse, late=LateParams(is_watched=False)) == []


def test_jobs_of_seconds_failed_runs_and_what_if_runs_stay_quiet(job_log):
    short = [{**row, "runtime_s": 1.0, "run_id": f"s{i}", "group_key": "s"} for i, row in enumerate(usual())]
    failed = {**going("failed", at=START), "status": "failed", "runtime_s": 1000.0}
    asked = {**going("asked"), "what_if": "no_spare"}
    warehouse = job_log([*usual(), *short, failed, asked, going(job="s"), heard_of(seconds_later(55))])
    assert watch(warehouse) == []


def test_a_run_without_a_start_or_of_a_job_without_history_is_no_evidence(job_log):
    pending = {**going("pending"), "status": "pending"}
    warehouse = job_log([*usual(), pending, going("new", job="new"), heard_of(seconds_later(9000))])
    with writing(warehouse) as connection:
        connection.execute("UPDATE jobs.runs SET started_at = NULL WHERE run_id = 'pending'")
    assert watch(warehouse) == []


def test_sources_do_not_mix(job_log):
    warehouse = job_log(usual(), source="other")
    job_log([going(), heard_of(seconds_later(600))], source="log")
    assert watch(warehouse) == []


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_a_log_with_next_to_nothing_in_it_is_watched_in_silence(job_log, n_rows):
    warehouse = job_log([going(str(i)) for i in range(n_rows)] or usual(1), source="log" if n_rows else "empty")
    assert watch(warehouse) == []
