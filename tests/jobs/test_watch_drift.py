"""Alarms for jobs that drift: told once, told again after the next drift, and hardly ever by luck."""

import json

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.outlook.params import DriftParams, LateParams, OutlookParams
from tasks.jobs.params import WatchParams
from tasks.jobs.watch import watch_source
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.hashes import hash_tables

START = pd.Timestamp("2026-01-01")
QUIET = LateParams(is_watched=False)


def log_of(factors, *, days, first_day=0, per_day=4, seed=3):
    """Runs around 100 s times the factor of the job on that day (a function of the day); files may follow up."""
    rng = np.random.default_rng([seed, first_day])
    rows = []
    for job, factor in factors.items():
        for day in range(first_day, first_day + days):
            for i in range(per_day):
                at = START + pd.Timedelta(days=day + (i + rng.random()) / per_day)
                runtime_s = 100 * factor(day) * np.exp(0.05 * rng.normal())
                rows.append(
                    {"run_id": f"{job}-{day}-{i}", "group_key": job, "submitted_at": at, "runtime_s": runtime_s}
                )
    return rows


def steady(_):
    return 1.0


def slower(day):
    return 2.0 if day >= 21 else 1.0


def there_and_back(day):
    return 2.0 if 21 <= day < 42 else 1.0


def watch(warehouse, *, drift=None, source="log"):
    ids = watch_source(warehouse, source, WatchParams(), QUIET, drift or DriftParams(), OutlookParams())
    found = read_alarms(warehouse, ids=ids)
    return [(row["kind"], row["subject"].split(" @ ")[0]) for row in found.to_dict("records")]


def test_a_job_that_became_twice_as_slow_is_told_with_its_figures_and_its_neighbours_are_not(job_log):
    warehouse = job_log(log_of({"a": steady, "b": slower, "c": steady}, days=28))
    assert watch(warehouse) == [("drift", "b")]
    [alarm] = read_alarms(warehouse).to_dict("records")
    assert alarm["message"].startswith("b: changed; median 100 s, now 3.4 min (2 ×); middle half within")
    evidence = json.loads(alarm["evidence"])
    assert evidence["median_factor"] == pytest.approx(2, rel=0.05)
    assert (evidence["group_key"], evidence["n_before"], evidence["n_after"]) == ("b", 84, 28)
    assert evidence["q_value"] <= evidence["false_discovery_rate"] == 0.05
    assert "shape_before" not in evidence and "shapes_of" not in evidence
    until_at = pd.Timestamp(evidence["until_at"]).tz_localize(None)
    assert until_at - pd.Timestamp(evidence["since_at"]).tz_localize(None) == pd.Timedelta(days=7)
    assert alarm["subject"] == f"b @ {evidence['until_at']}"


def test_watching_twice_raises_nothing_new_and_touches_no_row(job_log):
    warehouse = job_log(log_of({"a": steady, "b": slower}, days=28))
    assert len(watch(warehouse)) == 1
    before = hash_tables(warehouse)
    assert watch(warehouse) == []
    assert hash_tables(warehouse) == before


@pytest.mark.slow
def test_the_same_drift_is_told_on_one_day_of_many(job_log):
    factors = {"a": steady, "b": slower}
    warehouse = job_log(log_of(factors, days=21))
    told = []
    for day in range(21, 45):
        job_log(log_of(factors, days=1, first_day=day))
        told += [(day, job) for _, job in watch(warehouse)]
    assert [job for _, job in told] == ["b"]
    assert 23 <= told[0][0] <= 27


def test_a_job_that_drifts_back_is_told_again(job_log):
    factors = {"a": steady, "b": there_and_back}
    warehouse = job_log(log_of(factors, days=28))
    told = [(27, job) for _, job in watch(warehouse)]
    for day in range(28, 63, 7):
        job_log(log_of(factors, days=7, first_day=day))
        told += [(day + 6, job) for _, job in watch(warehouse)]
    assert told == [(27, "b"), (48, "b")]
    evidence = [json.loads(text) for text in read_alarms(warehouse)["evidence"]]
    assert sorted(round(one["median_factor"], 1) for one in evidence) == [0.5, 2.0]


def test_of_a_steady_log_of_many_jobs_no_day_tells_of_drift(job_log):
    factors = {f"job {i}": steady for i in range(8)}
    warehouse = job_log(log_of(factors, days=21))
    told = []
    for day in range(21, 37, 4):
        job_log(log_of(factors, days=4, first_day=day))
        told += watch(warehouse)
    assert told == []


def test_switched_off_no_job_drifts(job_log):
    warehouse = job_log(log_of({"b": slower}, days=28))
    assert watch(warehouse, drift=DriftParams(is_watched=False)) == []


def test_failed_runs_and_what_if_runs_are_no_evidence_of_drift(job_log):
    rows = log_of({"b": slower}, days=28)
    marked = [{**row, "status": "failed"} if slower(i // 4) > 1 else row for i, row in enumerate(rows)]
    assert watch(job_log(marked)) == []
    marked = [{**row, "what_if": "no_spare"} if slower(i // 4) > 1 else row for i, row in enumerate(rows)]
    warehouse = job_log(marked, source="asked")
    assert watch(warehouse, source="asked") == []


@pytest.mark.parametrize("days", [0, 1, 3])
def test_a_short_log_is_watched_in_silence(job_log, days):
    warehouse = job_log(log_of({"b": slower}, days=max(days, 1), first_day=21), source="log" if days else "other")
    assert watch(warehouse) == []


def test_the_rate_of_false_discoveries_is_that_of_the_parameters(job_log):
    warehouse = job_log(log_of({f"job {i}": steady for i in range(8)}, days=28))
    assert watch(warehouse, drift=DriftParams(false_discovery_rate=0.05)) == []
    assert watch(warehouse, drift=DriftParams(false_discovery_rate=0.99)) != []
