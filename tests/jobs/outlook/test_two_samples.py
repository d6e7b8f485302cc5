"""Two-sample statistics by hand, and p-values that hold with ties and with busy days."""

import itertools

import numpy as np
import pytest
from scipy.stats import ks_2samp

from tasks.jobs.outlook.two_samples import permutation_test, statistics

TESTS = ["anderson-darling", "kolmogorov-smirnov"]


def p_value(before, after, test="anderson-darling", seed=0, most=2000):
    values = np.concatenate([before, after]).astype(float)
    is_after = np.arange(len(values)) >= len(before)
    rng = np.random.default_rng(seed)
    return permutation_test(values, np.arange(len(values)), is_after, test, rng, max_permutations=most)[1]


def of(values, is_after, test):
    return statistics(np.array(values, dtype=float), np.array([is_after], dtype=bool), test)[0]


def test_two_below_two_by_hand():
    # N = 4, n = m = 2, C = 0 0 1 2: (4 * 0 - 2 * 1)^2 / (1 * 3) + (-4)^2 / (2 * 2) + (4 * 1 - 2 * 3)^2 / (3 * 1)
    # = 4 / 3 + 4 + 4 / 3 = 20 / 3, over n m = 4
    assert of([1, 2, 3, 4], [0, 0, 1, 1], "anderson-darling") == pytest.approx(5 / 3)
    assert of([1, 2, 3, 4], [0, 0, 1, 1], "kolmogorov-smirnov") == pytest.approx(1)


def test_ties_by_hand():
    # values 1 1 2: h = 2 at j = 2, N = 3; before 1, 2; after 1: C = 1, n = 2, m = 1
    # 2 * (3 * 1 - 1 * 2)^2 / (2 * 1) / 2 = 1 / 2; cdfs at 1: 1 / 2 and 1
    assert of([1, 1, 2], [0, 1, 0], "anderson-darling") == pytest.approx(1 / 2)
    assert of([1, 1, 2], [1, 0, 0], "anderson-darling") == pytest.approx(1 / 2)
    assert of([1, 1, 2], [0, 1, 0], "kolmogorov-smirnov") == pytest.approx(1 / 2)


@pytest.mark.parametrize("decimals", [0, 3])
def test_the_kolmogorov_smirnov_statistic_is_that_of_scipy(decimals):
    rng = np.random.default_rng(decimals)
    before, after = rng.normal(2, 1, 30).round(decimals), rng.normal(2.5, 1, 17).round(decimals)
    values = np.concatenate([before, after])
    order = np.argsort(values)
    found = of(values[order], order >= 30, "kolmogorov-smirnov")
    assert found == pytest.approx(ks_2samp(before, after).statistic)


@pytest.mark.parametrize("test", TESTS)
def test_p_values_are_those_of_all_deals(test):
    values, is_after = np.array([1.0, 2, 2, 3, 5, 8, 9]), np.array([0, 0, 1, 0, 0, 1, 1], dtype=bool)
    deals = np.array([[i in chosen for i in range(7)] for chosen in itertools.combinations(range(7), 3)])
    exact = (statistics(values, deals, test) >= of(values, is_after, test) - 1e-9).mean()
    rng = np.random.default_rng(0)
    found = [permutation_test(values, np.arange(7), is_after, test, rng, max_permutations=5000)[1] for _ in range(200)]
    # p = 20 / deals has a spread of about p / root 20, and stopping at a hit puts it 1 / 20 above
    assert np.mean(found) == pytest.approx(exact, rel=0.12)


@pytest.mark.parametrize("test", TESTS)
def test_samples_apart_have_a_small_p_value_and_equal_ones_a_large_one(test):
    low, high = np.arange(20.0), np.arange(20.0) + 100
    assert p_value(low, high, test) == pytest.approx(1 / 2001)
    assert p_value(low, low, test) > 0.9


def test_constant_runtimes_have_not_changed():
    assert p_value([5.0] * 9, [5.0] * 9) == 1.0


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("draw", ["lognormal", "whole seconds"])
def test_without_a_change_p_values_are_below_0_05_in_one_of_twenty(test, draw):
    rng = np.random.default_rng(7)
    n_trials, hits = 600, 0
    for _ in range(n_trials):
        values = rng.lognormal(1, 0.7, 30) if draw == "lognormal" else rng.poisson(4, 30).astype(float)
        is_after = np.arange(30) >= 20
        hits += permutation_test(values, np.arange(30), is_after, test, rng, max_permutations=399)[1] <= 0.05
    assert 0.02 < hits / n_trials < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_trials)


def test_busy_days_alone_are_no_change_when_they_count_as_one():
    rng = np.random.default_rng(9)
    day, is_after = np.repeat(np.arange(28), 4), np.repeat(np.arange(28), 4) >= 21
    by_day, by_run = 0, 0
    for _ in range(200):
        values = np.exp(rng.normal(size=28)[day] + 0.3 * rng.normal(size=112))
        for_days = permutation_test(values, day, is_after, "anderson-darling", rng, max_permutations=399)[1]
        for_runs = permutation_test(values, np.arange(112), is_after, "anderson-darling", rng, max_permutations=399)[1]
        by_day, by_run = by_day + (for_days <= 0.05), by_run + (for_runs <= 0.05)
    assert 0.01 < by_day / 200 < 0.1
    assert by_run / 200 > 0.2  # what the stretches are for


def test_a_change_is_seen_through_busy_days():
    rng = np.random.default_rng(10)
    day = np.repeat(np.arange(28), 4)
    values = np.exp(0.3 * rng.normal(size=28)[day] + 0.3 * rng.normal(size=112) + (day >= 21))
    assert permutation_test(values, day, day >= 21, "anderson-darling", rng, max_permutations=4999)[1] < 0.001


def test_the_order_of_the_runs_does_not_matter():
    rng = np.random.default_rng(1)
    values, day = rng.poisson(5, 60).astype(float), np.repeat(np.arange(20), 3)
    mixed = rng.permutation(60)
    found = [
        permutation_test(v, d, d >= 15, "anderson-darling", np.random.default_rng(0), max_permutations=999)
        for v, d in [(values, day), (values[mixed], day[mixed])]
    ]
    assert found[0] == found[1]


def test_a_stretch_on_both_sides_is_refused():
    with pytest.raises(ValueError, match="stretch 3: has runs before and after; expected one side"):
        permutation_test(
            np.arange(4.0), np.array([1, 3, 3, 4]), np.array([0, 0, 1, 1], dtype=bool), "anderson-darling",
            np.random.default_rng(0), max_permutations=100,
        )  # fmt: skip
