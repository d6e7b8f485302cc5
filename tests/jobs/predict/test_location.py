"""The expected runtime, and what a model expects of runs that it did not see; and the boosters behind it."""

import numpy as np
import pandas as pd
import pytest

from tasks.boosters import booster_from, matrix, train_booster
from tasks.errors import BadInput
from tasks.jobs.predict.location import MEDIAN, fit_location
from tasks.jobs.predict.predictor_params import LocationParams

PARAMS = LocationParams(n_rounds=40, num_leaves=7, learning_rate=0.2, min_leaf_runs=10, n_folds=3)


def drawn(n=600, *, seed=0):
    """Features, and logs of runtimes: median of the job, plus 0.5 where x is above 0, plus noise."""
    rng = np.random.default_rng(seed)
    features = pd.DataFrame({MEDIAN: rng.integers(0, 9, n).astype(float), "x": rng.normal(size=n)})
    return features, (features[MEDIAN] + 0.5 * (features["x"] > 0) + rng.normal(0, 0.1, n)).to_numpy()


def test_the_expected_runtime_is_the_median_before_times_what_the_features_say():
    features, logs = drawn()
    location, _ = fit_location(features, logs, PARAMS)
    asked = pd.DataFrame({MEDIAN: [0.0, 5.0, 5.0, 20.0], "x": [1.0, 1.0, -1.0, 1.0]})
    assert location.expected_log_s(asked) == pytest.approx([0.5, 5.5, 5, 20.5], abs=0.1)


def test_a_job_never_seen_begins_at_the_median_of_all_runs():
    features, logs = drawn()
    location, _ = fit_location(features, logs, PARAMS)
    asked = pd.DataFrame({MEDIAN: [np.nan, 3.0], "x": [0.0, 0.0]})
    assert location.base_log_s(asked) == pytest.approx([np.median(logs), 3])
    assert location.base_log_s(asked[["x"]]) == pytest.approx([np.median(logs)] * 2)


def test_a_model_expects_too_much_of_its_own_training_runs_and_the_held_out_expectations_do_not():
    rng = np.random.default_rng(0)
    features = pd.DataFrame(rng.normal(size=(300, 5)), columns=list("abcde")).assign(**{MEDIAN: 0.0})
    logs = rng.normal(size=300)  # nothing to learn
    location, held_out = fit_location(features, logs, PARAMS)
    in_sample = np.std(logs - location.expected_log_s(features))
    assert in_sample < 0.85 * np.std(logs)
    assert np.std(logs - held_out) > 0.98 * np.std(logs)


def test_what_is_expected_of_a_stretch_of_time_does_not_know_its_runtimes():
    features, logs = drawn(300)
    changed = logs + np.where((np.arange(300) >= 100) & (np.arange(300) < 200), 3.0, 0.0)
    _, one = fit_location(features, logs, PARAMS)
    _, other = fit_location(features, changed, PARAMS)
    assert (one[100:200] == other[100:200]).all()
    assert (one[:100] != other[:100]).any()


def test_the_same_inputs_give_the_same_bits():
    features, logs = drawn(200)
    (one, held), (other, also) = (fit_location(features, logs, PARAMS) for _ in range(2))
    assert one.expected_log_s(features).tobytes() == other.expected_log_s(features).tobytes()
    assert held.tobytes() == also.tobytes()


def test_a_few_slow_runs_do_not_move_the_expectation():
    features, logs = drawn()
    slow = np.where(np.arange(len(logs)) % 20 == 0, 5.0, 0.0)  # their mean is 0.25
    location, _ = fit_location(features, logs + slow, PARAMS)
    asked = pd.DataFrame({MEDIAN: [4.0], "x": [-1.0]})
    assert location.expected_log_s(asked) == pytest.approx([4], abs=0.12)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_handful_of_runs_gives_an_expectation(n):
    features, logs = drawn(n)
    location, held_out = fit_location(features, logs, PARAMS)
    assert np.isfinite(held_out).all()
    assert np.isfinite(location.expected_log_s(features)).all()


def test_no_rows_have_no_expectation():
    features, logs = drawn(50)
    location, _ = fit_location(features, logs, PARAMS)
    assert location.expected_log_s(features[:0]).shape == (0,)


def test_a_booster_out_of_its_text_gives_the_same_bits():
    features, logs = drawn(200)
    booster = train_booster(features, logs, {"objective": "regression", "min_data_in_leaf": 5}, 5, 0)
    again = booster_from(booster.model_to_string(), 2)
    assert again.predict(matrix(features)).tobytes() == booster.predict(matrix(features)).tobytes()


def test_a_text_that_is_no_model_or_has_other_features_is_refused():
    with pytest.raises(BadInput, match="no LightGBM model"):
        booster_from("not a model", 2)
    features, logs = drawn(50)
    text = train_booster(features, logs, {"objective": "regression"}, 2, 0).model_to_string()
    with pytest.raises(BadInput, match="trees of 2 features beside the names of 3; expected files of the same model"):
        booster_from(text, 3)


def test_without_a_run_there_is_nothing_to_learn():
    with pytest.raises(BadInput, match="training rows: none; expected at least one run that has ended"):
        train_booster(pd.DataFrame({"x": []}), np.zeros(0), {}, 5, 0)


def test_names_that_lightgbm_refuses_are_no_trouble():
    features, logs = drawn(100)
    features = features.rename(columns={"x": 'op_{"a": [1]}'})
    assert np.isfinite(fit_location(features, logs, PARAMS)[1]).all()
