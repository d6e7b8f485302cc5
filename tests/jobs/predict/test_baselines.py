"""What a predictor must beat, by hand: history, one shape for all, the random-forest regression."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.predict.baselines import (
    forest_prediction,
    global_prediction,
    history_prediction,
)
from tasks.jobs.predict.features_earlier import earlier_runs
from tasks.jobs.predict.peers import histories
from tasks.jobs.predict.pool import N_LEVELS
from tasks.jobs.predict.predictor import told_as


def history_of(rows, runs, stand_in_s):
    known = histories(rows, runs)
    return told_as(history_prediction(known, "job", np.tile(np.log(stand_in_s), (len(rows), 1))))


def test_history_is_the_runs_of_the_job_that_had_ended_before(log_of):
    runs = log_of([1.0, 50.0, 3.0, 5.0, 7.0], ["a", "b", "a", "a", "a"])
    told = history_of(runs, runs, np.full(N_LEVELS, 9.0))
    assert told.quantile(0.5) == pytest.approx([9, 9, 1, np.sqrt(3), 3], rel=0.03)  # logs are interpolated
    assert told.quantile(0.99)[2:] == pytest.approx([1, 3, 5])


def test_a_run_that_has_not_ended_yet_is_no_history(log_of):
    runs = log_of([1.0, 600.0, 2.0])  # the second is still going on when the third begins
    assert history_of(runs[2:], runs, np.ones(N_LEVELS)).quantile(0.99) == pytest.approx([1])


def test_quantiles_of_all_runs_stand_in_for_a_job_never_seen(log_of):
    runs = log_of([1.0, 2.0], ["a", "b"])
    told = history_of(runs, runs, np.arange(1.0, N_LEVELS + 1))
    assert told.quantile(0.5) == pytest.approx([50, 50])


def test_one_shape_is_stretched_to_the_median_of_each_job(log_of):
    runs = log_of([1.0, 2.0])
    ratios = np.linspace(0.5, 1.5, 2001)
    told = global_prediction(earlier_runs(runs, runs), ratios, np.array([10.0, 40.0]))
    assert told.quantile(0.5) == pytest.approx([10, 40], rel=0.01)
    assert told.quantile(0.25) == pytest.approx([7.5, 30], rel=0.01)


def forest(features, runtime_s, asked):
    return forest_prediction(features, runtime_s, asked, n_trees=20, min_leaf=1, seed=0)


def test_the_forest_learns_a_step_and_gives_one_sure_value():
    x = np.linspace(-1, 1, 200)
    features = pd.DataFrame({"x": x, "unknown": np.nan})
    told = forest(features, np.where(x > 0, 9.0, 3.0), pd.DataFrame({"x": [-0.5, 0.5], "unknown": 0.0}))
    assert told.quantile(0.05) == pytest.approx([3, 9], abs=0.01)
    assert (told.quantile(0.05) == told.quantile(0.95)).all()
    assert told.crps(np.array([4.0, 9.0])) == pytest.approx([1, 0], abs=0.01)


def test_the_forest_takes_rows_with_unknown_values():
    features = pd.DataFrame({"x": [0.0, np.nan, 1.0, np.nan] * 20})
    told = forest(features, np.array([1.0, 5.0, 3.0, 5.0] * 20), features[:4])
    assert told.quantile(0.5) == pytest.approx([1, 5, 3, 5], abs=0.01)


def test_the_forest_without_a_feature_that_varies_gives_the_mean():
    features = pd.DataFrame({"x": np.ones(400)})
    told = forest(features, np.tile([1.0, 2.0, 3.0, 6.0], 100), features[:2])
    assert told.quantile(0.5) == pytest.approx([3, 3], rel=0.03)


def test_the_same_seed_gives_the_same_forest():
    rng = np.random.default_rng(0)
    features, runtime_s = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc")), rng.random(60)
    one, other = (forest(features, runtime_s, features).quantile(0.5) for _ in range(2))
    assert one.tobytes() == other.tobytes()
