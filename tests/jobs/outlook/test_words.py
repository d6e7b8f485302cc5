"""Sentences about changed jobs."""

import numpy as np
import pytest

from tasks.jobs.outlook.words import drift_words

JOB = {
    "group_key": "etl", "n_before": 1200, "n_after": 40, "median_before_s": 100.0, "median_after_s": 200.0,
    "median_factor": 2.0, "spread_before_s": 10.0, "spread_after_s": 90.0, "q_value": 0.012, "has_changed": True,
    "has_drifted": True, "shape_before": 1, "shape_after": 5, "log_bayes_factor": np.log(250),
}  # fmt: skip


def test_a_drifted_job_says_from_which_shape_to_which_and_how_sure_that_is():
    assert drift_words(JOB) == (
        "etl: drifted from shape 1 to shape 5; median 100 s, now 3.3 min (2 ×); middle half within 10 s, now 90 s; "
        "1,200 runs before, 40 since, expected share of false alarms at most 1.2 %, two shapes 250 × likelier than one"
    )


@pytest.mark.parametrize(("log_factor", "words"), [(100.0, "over 10^6 ×"), (np.log(20), "20 ×")])
def test_a_huge_factor_is_said_as_such(log_factor, words):
    assert f"two shapes {words} likelier" in drift_words(JOB | {"log_bayes_factor": log_factor})


def test_a_changed_job_of_the_same_shape_and_an_unchanged_one_say_so():
    assert drift_words(JOB | {"has_drifted": False}).startswith("etl: changed; median")
    unchanged = drift_words(JOB | {"has_drifted": False, "has_changed": False, "median_factor": np.nan})
    assert unchanged.startswith("etl: no change that could not be luck; median 100 s, now 3.3 min; middle")
