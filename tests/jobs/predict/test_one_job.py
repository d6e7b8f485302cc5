"""One job's outlook: read from its own runs alone, the same as among all jobs, beside what its history says."""

import numpy as np
import pytest

from tasks.errors import BadSetting, NotFound
from tasks.jobs import model_steps
from tasks.jobs.exceedance import next_run
from tasks.jobs.outlook.params import OutlookParams
from tasks.jobs.params import SummaryParams
from tasks.jobs.predict.one_job import job_outlook
from tasks.jobs.predict.prediction_rows import read_predictions
from tasks.warehouse.connection import writing

JOB = "job03#00000003"
PARAMS = OutlookParams()


def test_one_job_is_told_as_it_stands_among_the_predictions_of_all(trained_log):
    model_steps.predict(trained_log, "log")
    row = read_predictions(trained_log, "log").set_index("group_key").loc[JOB]
    found = job_outlook(trained_log, "log", JOB, PARAMS, times_s=(2 * row["usual_s"],))
    limits = {one.level: one.predicted_s for one in found.limits}
    assert [limits[level] for level in (0.5, 0.9, 0.95, 0.99)] == row[["p50_s", "p90_s", "p95_s", "p99_s"]].tolist()
    assert (found.n_before, found.usual_s, found.model_id) == (row["n_before"], row["usual_s"], row["model_id"])
    assert (found.predicted_at, found.last_at) == (row["predicted_at"], row["last_at"])
    assert found.chances[0].predicted == pytest.approx(row["exceeds_2x_share"], abs=0.003)
    assert found.shapes["ratio"][0].shape == row["shape_ratio"]


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


def test_an_operator_that_this_job_never_uses_counts_as_none_of_it(job_log, varied_runs, quick_training):
    runs = varied_runs()
    plans = np.where(runs["group_key"].str[3:5].astype(int) % 2, '{"SORT": 3, "SCAN": 1}', '{"SCAN": 2}')
    warehouse = job_log(runs.assign(operators=plans))
    model_steps.train(warehouse, "log", quick_training, "run")
    model_steps.predict(warehouse, "log")
    rows = read_predictions(warehouse, "log").set_index("group_key")
    for job in ("job00#00000000", "job01#00000001"):
        limits = {one.level: one.predicted_s for one in job_outlook(warehouse, "log", job, PARAMS).limits}
        assert limits[0.95] == rows.loc[job, "p95_s"]


def test_an_unknown_job_names_the_nearest(trained_log):
    with pytest.raises(NotFound, match="no job of source 'log' is called so; nearest: 'job0"):
        job_outlook(trained_log, "log", "jbo03", PARAMS)
    with pytest.raises(NotFound, match="12 jobs of source 'log' fit"):
        job_outlook(trained_log, "log", "job", PARAMS)


def test_a_job_without_a_finished_run_is_one_line(trained_log):
    with writing(trained_log) as connection:
        connection.execute("UPDATE jobs.runs SET status = 'failed' WHERE group_key = $job", {"job": JOB})
    with pytest.raises(NotFound, match=f"job '{JOB}' of source 'log' has no finished run with a runtime yet"):
        job_outlook(trained_log, "log", JOB, PARAMS)


def test_a_time_that_is_none_is_refused(trained_log):
    with pytest.raises(BadSetting, match="expected a number of seconds, 0 or more"):
        job_outlook(trained_log, "log", JOB, PARAMS, times_s=(-1.0,))
