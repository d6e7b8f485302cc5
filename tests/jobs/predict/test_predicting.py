"""What the model in use says of one job and of runs that go on, beside what their own runs say."""

import shutil

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadSetting, NotFound
from tasks.jobs import steps
from tasks.jobs.outlook import next_run
from tasks.jobs.params import OutlookParams, SummaryParams
from tasks.jobs.predict.predicting import (
    ENDINGS,
    job_outlook,
    known_next,
    next_conditions,
    read_predictions,
    runs_going_on,
)
from tasks.jobs.predict.preparation import read_runs, with_ends
from tasks.jobs.predict.trained import needed_champion
from tasks.warehouse.connection import fetch, writing
from tasks.warehouse.place import Warehouse

JOB = "job03#00000003"
PARAMS = OutlookParams()


def test_one_job_is_told_as_it_stands_among_the_predictions_of_all(trained_log):
    steps.predict(trained_log, "log")
    row = read_predictions(trained_log, "log").set_index("group_key").loc[JOB]
    found = job_outlook(trained_log, "log", JOB, PARAMS, times_s=(2 * row["usual_s"],))
    limits = {one.level: one.predicted_s for one in found.limits}
    assert [limits[level] for level in (0.5, 0.9, 0.95, 0.99)] == row[["p50_s", "p90_s", "p95_s", "p99_s"]].tolist()
    assert (found.n_before, found.usual_s, found.model_id) == (row["n_before"], row["usual_s"], row["model_id"])
    assert (found.predicted_at, found.last_at) == (row["predicted_at"], row["last_at"])
    assert found.chances[0].predicted == pytest.approx(row["exceeds_2x_share"], abs=0.003)
    assert found.shapes["ratio"][0].shape == row["shape_ratio"]
    assert found.ending is None and row[list(ENDINGS)].isna().all()  # no run has a time limit


def test_the_usual_runtime_is_the_median_of_the_finished_runs(trained_log):
    own = fetch(trained_log, "SELECT runtime_s FROM jobs.runs WHERE group_key = $job", {"job": JOB})["runtime_s"]
    assert job_outlook(trained_log, "log", JOB, PARAMS).usual_s == own.median() != own.mean()


def test_beside_the_prediction_stands_what_the_plain_history_says(trained_log):
    found = job_outlook(trained_log, "log", "JOB03", PARAMS, times_s=(20.0, 30.0))
    history = next_run(trained_log, "log", JOB, SummaryParams(), time_s=30.0)
    assert [one.own for one in found.limits] == history.bounds
    assert found.chances[1].history == history.chance
    assert found.chances[0].predicted > found.chances[1].predicted


def test_shapes_are_listed_by_their_probability(trained_log):
    for kind, shapes in job_outlook(trained_log, "log", JOB, PARAMS).shapes.items():
        shares = [one.share for one in shapes]
        assert shares == sorted(shares, reverse=True), kind
        assert sum(shares) == pytest.approx(1)
        assert all(one.p25 <= one.p75 <= one.p95 for one in shapes)


def test_a_job_without_a_finished_run_is_one_line(trained_log):
    with writing(trained_log) as connection:
        connection.execute("UPDATE jobs.runs SET status = 'failed' WHERE group_key = $job", {"job": JOB})
    with pytest.raises(NotFound, match=f"job '{JOB}' of source 'log' has no finished run with a runtime yet"):
        job_outlook(trained_log, "log", JOB, PARAMS)


def test_a_time_that_is_none_is_refused(trained_log):
    with pytest.raises(BadSetting, match="expected a number of seconds, 0 or more"):
        job_outlook(trained_log, "log", JOB, PARAMS, times_s=(-1.0,))


LIMIT_S = 60.0


@pytest.fixture(scope="module")
def limited_home(tmp_path_factory, job_log_at, varied_runs, quick_training):
    """A source with a limit of 60 s, at which three runs in ten of each odd job are stopped; and its model.

    The odd jobs sort, the others do not."""
    runs = varied_runs().assign(requested_runtime_s=LIMIT_S)
    is_odd = runs["group_key"].str[3:5].astype(int) % 2 == 1
    is_stopped = is_odd & (np.random.default_rng(0).random(len(runs)) < 0.3)
    runs["runtime_s"] = np.where(is_stopped, LIMIT_S, runs["runtime_s"].clip(upper=0.9 * LIMIT_S))
    runs = runs.assign(operators=np.where(is_odd, '{"SORT": 3, "SCAN": 1}', '{"SCAN": 2}'))
    home = tmp_path_factory.mktemp("limited") / "home"
    warehouse = job_log_at(home)(runs.assign(status=np.where(is_stopped, "timeout", "completed")), source="limited")
    steps.train(warehouse, "limited", quick_training, "run")
    return home


@pytest.fixture
def limited(limited_home, tmp_path):
    """A warehouse of this test with that source and model."""
    shutil.copytree(limited_home, tmp_path / "limited")
    return Warehouse(home=tmp_path / "limited", memory_mb=256, threads=1)


def test_operators_that_a_job_never_uses_and_how_it_ends_count_alike_among_all_jobs_and_for_one(limited):
    steps.predict(limited, "limited")
    rows = read_predictions(limited, "limited").set_index("group_key")
    assert rows[list(ENDINGS)].sum(axis=1).to_numpy() == pytest.approx(1)
    for job in ("job02#00000002", JOB):
        found = job_outlook(limited, "limited", job, PARAMS)
        assert {one.level: one.predicted_s for one in found.limits}[0.95] == rows.loc[job, "p95_s"]
        endings = [found.ending.completes, found.ending.at_limit, found.ending.before_limit]
        assert rows.loc[job, list(ENDINGS)].tolist() == pytest.approx(endings, abs=1e-3)


def test_a_job_whose_runs_are_stopped_at_their_limit_is_told_so(limited):
    found = job_outlook(limited, "limited", JOB, PARAMS, times_s=(0.95 * LIMIT_S, 1000.0))
    assert found.ending.at_limit == pytest.approx(0.3, abs=0.15)
    assert found.ending.completes + found.ending.at_limit + found.ending.before_limit == pytest.approx(1)
    late, never = found.chances
    assert late.predicted == pytest.approx(found.ending.at_limit, abs=0.05)  # hardly one of those that complete
    assert late.history.k / late.history.n == pytest.approx(0.3, abs=0.15)  # stopped runs count among its own
    assert never.predicted == pytest.approx(0, abs=1e-9)
    calm = job_outlook(limited, "limited", "job02#00000002", PARAMS)
    assert calm.ending.at_limit < 0.1 < found.ending.at_limit


def test_a_run_that_goes_on_has_ended_by_its_limit_at_the_latest(limited):
    with writing(limited) as connection:
        connection.execute(UNFINISHED)
    runs = runs_going_on(limited, "limited", PARAMS, within_s=1.5 * LIMIT_S).runs
    assert (runs[runs["elapsed_s"] < LIMIT_S / 2]["chance_in_time"] > 0.99).all()
    ends_s = (runs["elapsed_s"] + runs["left_99_s"])[~runs["is_past_limit"]]
    assert len(ends_s) and ends_s.max() <= 1.25 * LIMIT_S  # with the largest grace
    assert runs["is_past_limit"].any() and (runs["elapsed_s"] > LIMIT_S)[runs["is_past_limit"]].all()


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


def test_how_long_others_have_been_idle_by_then_is_as_it_was_and_not_counted_from_the_end_of_the_log(trained_log):
    trained, past = needed_champion(trained_log, "log")[1], with_ends(read_runs(trained_log, "log"))
    conditions = next_conditions(past, now=past["ended_at"].max() + pd.Timedelta(days=30))
    features, _ = known_next(trained, conditions, past)
    as_it_was = trained.features(conditions.assign(submitted_at=conditions["as_at"]), past)
    assert features["log_since"].tolist() == as_it_was["log_since"].tolist()
    assert (features["job_since"] > as_it_was["job_since"]).all()


def test_the_next_run_of_a_job_with_a_rhythm_is_submitted_at_its_hour_any_other_now():
    """Daily at 02:00, twice an hour late: due on the 8th at 02:00. Now is the 7th at noon."""
    nightly = [f"2026-03-{day:02d}T{2 + (day in (3, 5)):02d}:00:00Z" for day in range(1, 8)]
    irregular = [f"2026-03-{day:02d}T02:00:00Z" for day in (1, 2, 4, 4, 5, 5, 7)]
    over = [f"2026-03-01T{hour:02d}:00:00Z" for hour in range(7)]  # hourly, and not for six days
    times = {"nightly": nightly, "irregular": irregular, "over": over, "young": nightly[-4:]}
    past = pd.DataFrame([(job, at) for job, ats in times.items() for at in ats], columns=["group_key", "submitted_at"])
    past = past.assign(submitted_at=pd.to_datetime(past["submitted_at"]), run_id=[f"{n}" for n in range(len(past))])
    now = pd.Timestamp("2026-03-07T12:00:00Z")
    conditions = next_conditions(past.sort_values("submitted_at"), now=now)
    assert conditions.groupby("group_key").size().to_dict() == {name: len(ats) for name, ats in times.items()}
    due = conditions.groupby("group_key")["submitted_at"].unique().map(list).to_dict()
    tomorrow = pd.Timestamp("2026-03-08T02:00:00Z")
    assert due == {"nightly": [tomorrow], "irregular": [now], "over": [now], "young": [now]}
