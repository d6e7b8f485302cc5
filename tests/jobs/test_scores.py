"""Scores: the truth wins, calibrated predictions look calibrated, and what cannot be scored says why."""

import math

import numpy as np
import pytest
from scipy.stats import kstest, lognorm

from tasks.jobs.distribution import even_steps, gather_history
from tasks.jobs.scores import (
    bootstrap_difference,
    calibration_error,
    coverage_of,
    ks_by_group,
    ks_pooled,
    pit_values,
    pooled_quantiles,
    wilson,
)

LEVELS = (np.arange(400) + 0.5) / 400


def lognormal(deviation, medians_s):
    """A ratio that is log-normal with median 1, as quantiles."""
    return even_steps(medians_s[:, None] * lognorm(deviation).ppf(LEVELS))


def logs(n=4000, deviation=0.4, seed=8):
    """Medians and runtimes of n runs whose ratio is log-normal."""
    rng = np.random.default_rng(seed)
    medians_s = rng.uniform(10, 1000, n)
    return medians_s, medians_s * rng.lognormal(0, deviation, n), rng


def test_crps_of_the_truth_is_that_of_the_log_normal_distribution():
    """In closed form the expected CRPS of the truth is m exp(s²/2) (2 Φ(s / √2) - 1) for a log-normal of median m."""
    medians_s, runtime_s, _ = logs(10_000)
    expected = medians_s.mean() * math.exp(0.08) * math.erf(0.4 / 2)
    assert lognormal(0.4, medians_s).crps(runtime_s).mean() == pytest.approx(expected, rel=0.03)


def test_calibrated_predictions_have_uniform_pit_and_cover_as_they_say():
    medians_s, runtime_s, rng = logs()
    truth, narrow = lognormal(0.4, medians_s), lognormal(0.2, medians_s)
    assert calibration_error(pit_values(truth, runtime_s, rng)) < 0.01
    assert calibration_error(pit_values(narrow, runtime_s, rng)) > 0.05
    assert coverage_of(truth, runtime_s)[0] == pytest.approx(0.9, abs=0.015)
    assert coverage_of(narrow, runtime_s)[0] < 0.65


def test_ties_are_drawn_so_that_a_coarse_clock_stays_uniform():
    rng = np.random.default_rng(6)
    runtime_s = rng.integers(1, 5, 4000).astype(float)  # whole seconds, four values
    past = gather_history([1.0, 2, 3, 4], np.zeros(4, int)).rows(np.zeros(4000, int))
    pit = pit_values(past, runtime_s, np.random.default_rng(1))
    assert kstest(pit, "uniform").statistic < 1.63 / math.sqrt(4000)  # the 1 % bound of Kolmogorov
    assert (pit == pit_values(past, runtime_s, np.random.default_rng(1))).all()


def test_predicting_the_group_beats_predicting_all_groups_within_groups():
    rng = np.random.default_rng(7)
    groups = np.repeat(np.arange(8), 40)
    medians_s = (10.0 * 2 ** np.arange(8))[groups]
    runtime_s = medians_s * rng.lognormal(0, 0.4, len(groups))
    own = lognormal(0.4, medians_s)
    everything = gather_history(runtime_s, np.zeros(len(groups), int)).rows(np.zeros(len(groups), int))
    assert ks_by_group(own, runtime_s, groups).value < 0.2 < ks_by_group(everything, runtime_s, groups).value
    assert ks_pooled(everything, runtime_s) < ks_pooled(own, runtime_s)


def test_thinned_points_miss_little_of_the_distance(monkeypatch):
    medians_s, runtime_s, _ = logs(500)
    wrong, group = lognormal(0.8, medians_s), np.zeros(500)
    thinned = ks_by_group(wrong, runtime_s, group).value
    monkeypatch.setattr("tasks.jobs.scores.MOST_POINTS", 500)
    exact = ks_by_group(wrong, runtime_s, group).value
    assert exact - 1 / 200 <= thinned <= exact


def test_pooled_quantiles_follow_the_mean_cdf():
    medians_s, _, _ = logs(300)
    predicted = lognormal(0.4, medians_s)
    pooled = pooled_quantiles(predicted)
    points = np.quantile(pooled, [0.01, 0.3, 0.9, 0.99])
    mean = predicted.cdf(np.broadcast_to(points, (300, 4))).mean(axis=0)
    assert mean == pytest.approx([0.01, 0.3, 0.9, 0.99], abs=1e-3)


def test_groups_below_20_runs_are_left_out():
    medians_s, runtime_s, _ = logs(50)
    found = ks_by_group(lognormal(0.4, medians_s), runtime_s, ["a"] * 20 + ["b"] * 19 + ["c"] * 11)
    assert found.n_groups == 1
    none = ks_by_group(lognormal(0.4, medians_s), runtime_s, np.arange(50))
    assert none.value is None and none.reason == "none of 50 groups has 20 runs"


def test_the_bootstrap_sees_a_true_difference_and_no_false_one():
    rng = np.random.default_rng(9)
    groups, base = np.repeat(np.arange(100), 20), rng.normal(0, 1, 2000)
    shared = np.repeat(rng.normal(0, 0.5, 100), 20)  # runs of a group differ alike
    none = bootstrap_difference(base + shared - shared.mean(), base, groups, rng)
    better = bootstrap_difference(base + shared - 0.5, base, groups, rng)
    assert none.low < 0 < none.high and better.high < 0
    assert (none.high - none.low) == pytest.approx(2 * 1.96 * 0.5 / math.sqrt(100), rel=0.3)


def test_a_constant_difference_has_an_interval_of_one_point():
    found = bootstrap_difference([3.0, 4, 5], [1.0, 2, 3], ["a", "b", "b"], np.random.default_rng(0))
    assert (found.value, found.low, found.high, found.n_groups) == (2, 2, 2, 2)


def test_a_bootstrap_without_pairs_or_with_one_group_says_so():
    rng = np.random.default_rng(0)
    lone = bootstrap_difference([1.0, math.nan], [0.0, 0.0], ["a", "b"], rng)
    assert (lone.value, lone.low, lone.n_runs, lone.reason) == (1, None, 1, "one group: nothing to draw from")
    none = bootstrap_difference([math.nan], [0.0], ["a"], rng)
    assert none.value is None and none.reason == "no run has both scores"


def test_an_interval_of_a_share_is_wilsons_and_stays_within_0_and_1():
    assert wilson(3, 10, 0.95) == pytest.approx((0.107791, 0.603222), abs=1e-6)  # 1.96: (3 + 1.92) / 13.84 -+ 0.2477
    assert wilson(0, 10, 0.95) == pytest.approx((0, 3.841459 / 13.841459), abs=1e-6)
    assert wilson(10, 10, 0.95) == pytest.approx((10 / 13.841459, 1), abs=1e-6)
