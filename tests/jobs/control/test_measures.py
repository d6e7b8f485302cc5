"""Measures of predicted distributions, by hand and against a log-normal; changes with their intervals."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import lognorm

from tasks.jobs.binned import Binned, Tails
from tasks.jobs.control.measures import MEASURES, changes, changes_by_group, measure, tokens_of
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.empirical import Empirical, gather_history

PARAMS = WhatIfParams()
EDGES = np.linspace(0, 10, 201)


def past(*groups):
    """Each group's past runtimes as its prediction."""
    values = np.concatenate(groups)
    numbers = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return Empirical(gather_history(values, numbers), np.arange(len(groups)))


def lognormal(deviation, medians_s):
    mass = np.diff(lognorm(deviation).cdf(EDGES))
    return Binned(EDGES, [mass / mass.sum()], medians_s, "ratio", Tails(0.5), np.ones((len(medians_s), 1)))


def test_the_measures_of_four_past_runs_worked_out_by_hand():
    # 1, 2, 3 and 30 s, median so far 2 s: one of four is at least 10 times as long, none 900 s away
    params = WhatIfParams(price_per_token_hour=7.2)
    found = measure(past([1.0, 2.0, 3.0, 30.0]), [2.0], [5.0], params).iloc[0]
    assert found["outlier_share"] == pytest.approx(0.25)
    assert found["outlier_share_delta"] == 0
    assert found["gap_s"] == 2  # 3 - 1
    assert found["gap_ratio"] == 1
    assert (found["p95_s"], found["p95_ratio"]) == (30, 15)
    assert (found["median_s"], found["mean_s"]) == (2, 9)
    assert found["sd_s"] == pytest.approx(np.std([1, 2, 3, 30]))
    assert found["token_s"] == 45
    assert found["money"] == pytest.approx(45 / 3600 * 7.2)


def test_an_outlier_is_at_least_so_many_times_the_median_and_so_far_from_it():
    found = measure(past([20.0, 19.9], [1000.0, 100.0, 1899.9]), [2.0, 1000.0], [1.0, 1.0], PARAMS)
    assert found["outlier_share"].tolist() == [0.5, 0]
    assert found["outlier_share_delta"].tolist() == pytest.approx([0, 1 / 3])  # 100 s is 900 s below, 1899.9 is not


def test_a_lognormal_prediction_has_the_measures_of_the_lognormal():
    found = measure(lognormal(0.5, [10.0, 100.0]), [10.0, 100.0], [1.0, 1.0], PARAMS)
    true = lognorm(0.5)
    assert found["gap_ratio"].tolist() == pytest.approx([true.ppf(0.75) - true.ppf(0.25)] * 2, rel=0.01)
    assert found["p95_s"].tolist() == pytest.approx([10 * true.ppf(0.95), 100 * true.ppf(0.95)], rel=0.01)
    assert found["mean_s"].tolist() == pytest.approx([10 * true.mean(), 100 * true.mean()], rel=0.02)
    assert found["sd_ratio"].tolist() == pytest.approx([true.std()] * 2, rel=0.1)


def test_minutes_instead_of_seconds_change_no_ratio():
    one = measure(lognormal(0.4, [10.0]), [10.0], [1.0], PARAMS)
    other = measure(lognormal(0.4, [600.0]), [600.0], [1.0], PARAMS)
    ratios = ["outlier_share", "gap_ratio", "p95_ratio", "sd_ratio"]
    assert other[ratios].iloc[0].tolist() == pytest.approx(one[ratios].iloc[0].tolist())


def test_without_a_median_or_tokens_only_what_needs_them_is_unknown():
    found = measure(past([1.0, 2.0], [1.0, 2.0], [3.0]), [np.nan, 0.0, 1.0], [1.0, 1.0, np.nan], PARAMS)
    assert found["gap_ratio"].isna().tolist() == [True, True, False]
    assert found["outlier_share"].isna().tolist() == [True, True, False]
    assert found["money"].isna().tolist() == [False, False, True]
    assert not found[["gap_s", "p95_s", "sd_s", "median_s", "mean_s"]].isna().any(axis=None)


def test_a_column_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"tokens: shape \(2,\); expected \(1,\)"):
        measure(past([1.0]), [1.0], [1.0, 2.0], PARAMS)


def test_tokens_are_those_in_use_before_times_the_request_over_earlier_ones():
    frame = pd.DataFrame(
        {"requested_tokens": [8.0, 4.0, 6.0], "mean_tokens_mean": [6.0, 3.0, np.nan], "tokens_ratio": [2.0, np.nan, 1]}
    )
    assert tokens_of(frame, PARAMS).tolist() == [12, 3, 6]
    assert tokens_of(frame, WhatIfParams(charged="requested")).tolist() == [8, 4, 6]
    assert np.isnan(tokens_of(frame[[]], PARAMS)).all()


def test_half_the_deviation_is_found_as_a_smaller_gap_and_the_same_median_with_an_interval():
    medians = np.linspace(10, 50, 60)
    groups = np.arange(60) % 20
    before = measure(lognormal(0.6, medians), medians, np.ones(60), PARAMS)
    after = measure(lognormal(0.3, medians), medians, np.ones(60), PARAMS)
    found = changes(before, after, groups, PARAMS, np.random.default_rng(1))
    assert list(found.index) == list(MEASURES)
    gap = found.loc["gap_s"]
    assert gap["low"] <= gap["change"] <= gap["high"] < 0
    assert gap["change"] == pytest.approx(gap["after"] - gap["before"])
    assert gap["relative"] == pytest.approx(-0.5, abs=0.02)
    assert abs(found.loc["median_s", "relative"]) < 0.01
    assert gap["n_groups"] == 20


def test_one_job_has_a_change_and_no_interval_and_says_why():
    before, after = (measure(past([1.0, time], [2.0, time]), [1.0] * 2, [1.0] * 2, PARAMS) for time in (9.0, 5.0))
    found = changes(before, after, ["a", "a"], PARAMS, np.random.default_rng(1)).loc["p95_s"]
    assert found["change"] == -4
    assert found["low"] is None or np.isnan(found["low"])
    assert found["reason"] == "one group: nothing to draw from"


def test_a_measure_that_is_unknown_for_all_runs_has_a_reason_and_no_figure():
    found = measure(past([1.0]), [np.nan], [1.0], PARAMS)
    row = changes(found, found, ["a"], PARAMS, np.random.default_rng(1)).loc["gap_ratio"]
    assert row["reason"] == "no run has both scores"
    assert row["n_left_out"] == 1


def test_changes_by_job_are_means_over_its_runs():
    before = measure(past([1.0], [3.0], [5.0]), [1.0] * 3, [1.0] * 3, PARAMS)
    after = measure(past([2.0], [6.0], [5.0]), [1.0] * 3, [1.0] * 3, PARAMS)
    found = changes_by_group(before, after, ["b", "b", "a"])
    assert found["median_s"].to_dict() == {"a": 0, "b": 2}
    assert found["n_runs"].to_dict() == {"a": 1, "b": 2}
