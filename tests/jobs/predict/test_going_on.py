"""Runs that go on and jobs that cost the most: answered from the warehouse by the champion."""

import pandas as pd
import pytest

from tasks.errors import NotFound
from tasks.jobs.outlook.params import CostParams, OutlookParams
from tasks.jobs.predict.costs import costs_of_source
from tasks.jobs.predict.going_on import runs_going_on
from tasks.warehouse.connection import fetch, writing

PARAMS = OutlookParams()
UNFINISHED = """UPDATE jobs.runs SET status = 'running', runtime_s = NULL, ended_at = NULL
    WHERE run_id IN (SELECT run_id FROM jobs.runs ORDER BY submitted_at DESC LIMIT 24)"""


@pytest.fixture
def ongoing(trained_log):
    """The last two runs of each job go on: the older of the two for 12 minutes more than the later one."""
    with writing(trained_log) as connection:
        connection.execute(UNFINISHED)
    return trained_log


def test_a_run_that_lasts_unusually_long_comes_first(ongoing):
    found = runs_going_on(ongoing, "log", PARAMS, within_s=600.0)
    runs = found.runs
    assert len(runs) == 24
    assert runs["chance_so_long"].is_monotonic_increasing
    assert (runs.groupby("group_key")["elapsed_s"].diff().dropna() < 0).all()  # of each job the older one first
    assert (runs[runs["elapsed_s"] >= 600]["chance_in_time"] == 0).all()
    assert (runs[runs["elapsed_s"] < 300]["chance_in_time"] > 0.5).all()
    assert (runs["left_99_s"] >= runs["left_50_s"]).all()


def test_runs_are_as_old_as_they_were_at_the_end_of_the_log(ongoing):
    found = runs_going_on(ongoing, "log", PARAMS)
    last = fetch(ongoing, "SELECT max(submitted_at) AS at FROM jobs.runs")["at"][0]
    assert found.as_of == last + pd.Timedelta(1, "us")
    assert found.runs["elapsed_s"].min() == pytest.approx(1e-6)
    assert found.runs["chance_in_time"].isna().all()


def test_without_a_run_that_goes_on_there_is_nothing_to_tell(trained_log):
    assert runs_going_on(trained_log, "log", PARAMS).runs.empty


def test_a_pending_run_has_not_started_and_is_left_out(ongoing):
    with writing(ongoing) as connection:
        connection.execute("UPDATE jobs.runs SET started_at = NULL WHERE status = 'running'")
    assert runs_going_on(ongoing, "log", PARAMS).runs.empty


def test_the_varied_jobs_cost_the_most_and_are_expected_to_go_on_so(trained_log):
    found = costs_of_source(trained_log, "log", CostParams(n_jobs=3, n_resamples=100))
    assert (found.jobs["group_key"].str[3:5].astype(int) % 2 == 1).all()
    assert found.jobs["cost_s_per_day"].is_monotonic_decreasing
    assert found.jobs["predicted_cost_s_per_day"].between(found.jobs["cost_s_per_day"] / 3, 1e9).all()
    assert found.days == pytest.approx(719 / 1440)


def test_both_need_a_model(job_log):
    warehouse = job_log([{"runtime_s": 1.0}])
    for ask in (
        lambda: runs_going_on(warehouse, "log", PARAMS),
        lambda: costs_of_source(warehouse, "log", CostParams()),
    ):
        with pytest.raises(NotFound, match="no trained model yet"):
            ask()
