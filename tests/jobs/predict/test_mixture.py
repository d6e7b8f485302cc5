"""The pool: quantiles, mixtures, weights worked out by hand or against a plainer way to the same number."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from tasks.jobs.predict.mixture import (
    EVEN_RUNS,
    LEVELS,
    MOST_GRACE,
    N_CLASSES,
    N_LEVELS,
    UNMOVED_RUNS,
    Recalibration,
    beside_one_run,
    best_weights,
    best_weights_by_support,
    learn_grace,
    limited,
    mixture,
    mixture_by_support,
    order_quantiles,
    recalibrated_in_time,
    recalibration,
)
from tasks.jobs.predict.predictor import empirical_of

START = np.datetime64("2026-01-01", "us")


def normal(mean, sd):
    """Quantiles at LEVELS of normal distributions: (n, n_levels)."""
    return np.asarray(mean)[:, None] + np.asarray(sd)[:, None] * norm.ppf(LEVELS)


def test_order_quantiles_of_one_to_four_lie_at_places_of_n_plus_one():
    quantiles = order_quantiles(np.array([[3.0, 1, 4, 2, np.nan]]))[0]
    for level, value in ((0.205, 1.025), (0.395, 1.975), (0.505, 2.525), (0.795, 3.975)):
        assert quantiles[np.flatnonzero(np.isclose(LEVELS, level))] == pytest.approx(value)  # 5 q
    assert (quantiles[:20] == 1).all()  # nothing is known of what is shorter than the shortest
    assert (quantiles[80:] == 4).all()


def test_order_quantiles_of_one_value_are_that_value_and_of_none_are_missing():
    quantiles = order_quantiles(np.array([[np.nan, np.nan], [7.0, np.nan]]))
    assert np.isnan(quantiles[0]).all()
    assert (quantiles[1] == 7).all()
    assert order_quantiles(np.zeros((0, 3))).shape == (0, N_LEVELS)


def test_after_one_run_the_next_is_as_likely_shorter_as_longer_and_how_much_the_others_say():
    quantiles = beside_one_run(np.full((3, N_LEVELS), 5.0), LEVELS + np.array([[0], [4.25], [9]]))
    assert (quantiles[0, :50] == LEVELS[:50]).all()  # the others expect less: half of what may come is as they say
    assert (quantiles[0, 50:] == 5).all()
    assert (quantiles[1, :50] == 4.25 + LEVELS[:50]).all()
    assert (quantiles[1, 50:75] == 5).all()
    assert (quantiles[1, 75:] == 4.25 + LEVELS[75:]).all()
    assert (quantiles[2, :50] == 5).all()
    assert (quantiles[2, 50:] == 9 + LEVELS[50:]).all()


def test_order_quantiles_of_many_rows_are_those_of_each_alone():
    rng = np.random.default_rng(0)
    latest = rng.normal(size=(2_500, 12))
    latest[np.arange(12) >= rng.integers(0, 13, 2_500)[:, None]] = np.nan
    together = order_quantiles(latest)
    for row in (0, 999, 1_000, 2_499):
        np.testing.assert_array_equal(together[row], order_quantiles(latest[[row]])[0])


def test_a_mixture_of_two_points_is_at_each_for_its_weight():
    one, other = np.full((2, N_LEVELS), 1.0), np.full((2, N_LEVELS), 5.0)
    mixed = mixture([other, one], np.array([0.7, 0.3]))
    np.testing.assert_allclose(mixed[:, :30], 1, rtol=1e-13)
    np.testing.assert_allclose(mixed[:, 30:], 5, rtol=1e-13)


def test_a_mixture_has_the_mean_of_the_distribution_functions():
    parts = [normal([0.0], [1.0]), normal([2.0], [0.5]), normal([-3.0], [2.0])]
    weights = np.array([0.5, 0.3, 0.2])
    mixed = mixture(parts, weights)[0]
    expected = sum(w * norm.cdf(mixed, m, s) for w, m, s in zip(weights, (0, 2, -3), (1, 0.5, 2), strict=True))
    np.testing.assert_allclose(expected, LEVELS, atol=0.011)
    assert (np.diff(mixed) >= 0).all()


def test_at_both_ends_means_of_quantiles_stand_in_for_those_of_the_mixture():
    """Of uniform parts on -0.5 … 0.5 and -1.5 … 1.5, each with half of the weight, quantile q is u or 3 u, u = q - 0.5.

    Their mean is 2 u. The mixture is 1.5 u as far as u = 1/3, where it is 0.5, and 6 u - 1.5 beyond."""
    u = np.tile(LEVELS - 0.5, (2, 1))
    halves, support = np.full((N_CLASSES, 2), 0.5), np.array([0, 3])
    quantiles = mixture_by_support([u, 3 * u], halves, support, ends=0.5)[1]
    of = dict(zip((100 * LEVELS).round(1).tolist(), quantiles, strict=True))
    assert of[99.5] == pytest.approx((1.47 + 0.99) / 2, abs=0.03)  # u = 0.495: half-way
    assert of[0.5] == pytest.approx(-(1.47 + 0.99) / 2, abs=0.03)
    assert of[84.5] == pytest.approx(0.7625 * 0.57 + 0.2375 * 0.69, abs=0.03)  # u = 0.345: (u - 0.25) / 0.2 of that
    plain = mixture_by_support([u, 3 * u], halves, support)[1]
    np.testing.assert_array_equal(quantiles[25:75], plain[25:75])
    assert (np.diff(quantiles) >= 0).all()


def test_a_part_without_weight_changes_nothing_and_one_alone_is_the_mixture():
    parts = [normal([0.0, 1.0], [1.0, 2.0]), normal([9.0, 9.0], [1.0, 1.0]), normal([4.0, 4.0], [1.0, 1.0])]
    np.testing.assert_array_equal(mixture(parts, np.array([0.0, 1.0, 0.0])), parts[1])
    np.testing.assert_array_equal(mixture(parts, np.array([0.4, 0.0, 0.6])), mixture(parts[::2], np.array([0.4, 0.6])))


def even(parts):
    return (np.full(len(parts), 1 / len(parts)),)


def test_the_best_weights_have_the_least_crps_of_all_on_a_grid():
    rng = np.random.default_rng(1)
    n = 400
    truth = rng.normal(5, 1, n)
    runtime_s = np.exp(truth + rng.normal(0, 0.3, n))
    sds = np.full(n, 0.4)
    parts = [normal(truth + rng.normal(0, 0.4, n), sds), normal(truth + rng.normal(0, 0.6, n), sds)]
    parts.append(normal(np.full(n, 5.0), 2.5 * sds))

    least_error = min(np.abs(np.exp(part) - runtime_s[:, None]).mean() for part in parts)

    def loss(weights):
        crps = empirical_of(mixture(parts, np.array(weights))).crps(runtime_s).mean()
        return crps / least_error + EVEN_RUNS / n * np.sum((np.array(weights) - 1 / 3) ** 2)

    grid = [(a / 10, b / 10, (10 - a - b) / 10) for a, b in itertools.product(range(11), repeat=2) if a + b <= 10]
    weights = best_weights(parts, runtime_s, towards=even(parts))
    assert weights.sum() == pytest.approx(1)
    assert loss(weights) <= min(map(loss, grid)) * 1.002  # weights are chosen with every fifth quantile


@pytest.mark.parametrize("runtime_s", [np.zeros(30), np.full(30, 1e9), np.full(30, 60.0)])
def test_weights_of_runtimes_that_are_all_alike_sum_to_one(runtime_s):
    parts = [np.full((30, N_LEVELS), np.log(60.0)), normal(np.full(30, 4.0), np.ones(30))]
    weights = best_weights(parts, runtime_s, towards=even(parts))
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()


@pytest.mark.parametrize(("sd", "least", "most"), [(0.5, 0.9, 1.0), (4.0, 0.0, 0.5)])
def test_weights_of_few_runs_are_drawn_to_all_runs_where_these_say_no_less_than_even_ones(sd, least, most):
    """Ten runs whose logs are drawn from N(4, 0.5²): the last part is that distribution, or a far wider one."""
    log_s = np.random.default_rng(5).normal(4, 0.5, 10)
    ones = np.ones(10)
    parts = [normal(2.5 * ones, ones), normal(5.5 * ones, ones), normal(4 * ones, sd * ones)]
    weights = best_weights_by_support(parts, np.exp(log_s), np.zeros(10, dtype=int))
    assert (least <= weights[:, -1]).all() and (weights[:, -1] <= most).all()


@pytest.mark.parametrize("off", [0.0, 1e-14])
def test_a_part_that_knows_every_runtime_gets_the_weight(off):
    runtime_s = np.repeat([3.0, 7.0, 20.0], 20)
    exact = np.tile(np.log(runtime_s)[:, None] + off, (1, N_LEVELS))
    all_runs = np.tile(np.quantile(np.log(runtime_s), LEVELS), (60, 1))
    parts = [all_runs, exact, normal(np.log(runtime_s), np.full(60, 0.2))]
    assert best_weights(parts, runtime_s, towards=even(parts))[1] > 0.99


def test_levels_of_runs_at_a_known_place_are_worked_out_by_hand():
    quantiles = np.tile(np.arange(N_LEVELS, dtype=float), (UNMOVED_RUNS, 1))
    levels = recalibration(quantiles, np.full(UNMOVED_RUNS, 79.5)).levels  # all between the 80th and the 81st
    # half of all lies within 0.795 … 0.805; of the other half 0.05 lie beyond either end, 0.9 are spread evenly
    low, high = LEVELS[LEVELS < 0.38], LEVELS[LEVELS > 0.91]
    np.testing.assert_allclose(levels[LEVELS < 0.38], np.maximum(2 * low - 0.05, 0) / 0.9)
    np.testing.assert_allclose(levels[LEVELS > 0.91], np.minimum(2 * high - 1.05, 0.9) / 0.9)
    assert (abs(levels[(LEVELS > 0.41) & (LEVELS < 0.89)] - 0.8) <= 0.011).all()


def test_a_runtime_that_many_quantiles_are_counts_evenly_over_them():
    quantiles = np.full((1_000, N_LEVELS), 3.0)
    levels = recalibration(quantiles, np.full(1_000, 3.0)).levels
    np.testing.assert_allclose(levels, (1_050 * LEVELS - 2.5) / 1_045)  # of the 50, 2.5 lie beyond either end


def test_runs_at_the_lowest_quantile_lie_beyond_none_whatever_the_last_bits_are():
    log_s = np.where(np.arange(400) % 2, -12.0, np.random.default_rng(6).normal(size=400))
    quantiles = np.where((np.arange(400) % 2)[:, None], -12.0, normal(np.zeros(400), np.ones(400)))
    exact, noisy = recalibration(quantiles, log_s), recalibration(quantiles + 1e-13, log_s)
    np.testing.assert_allclose(noisy.levels, exact.levels, atol=1e-9)
    np.testing.assert_allclose(noisy.moved, exact.moved, atol=1e-9)


def test_without_runs_nothing_is_recalibrated():
    quantiles = normal([1.0], [2.0])
    np.testing.assert_allclose(recalibration(quantiles[:0], np.zeros(0)).applied(quantiles), quantiles)


def test_where_runs_lie_beyond_all_quantiles_those_at_the_end_move_out_as_they_do():
    n = 10_000 - UNMOVED_RUNS
    quantiles = normal(np.zeros(n), np.ones(n))
    log_s = quantiles[0, np.arange(n) % N_LEVELS]
    log_s[-500:] = quantiles[0, -1] + np.linspace(0.01, 5, 500)  # half of the last 1,000
    told = recalibration(quantiles, log_s)
    share = 500 / (1_000 + UNMOVED_RUNS)
    for level in (0.605, 0.795, 0.995):
        place = np.flatnonzero(np.isclose(LEVELS, level))[0]
        expected = 0.01 + 4.99 * (1 - (1 - level) / share)
        assert told.moved[place] == pytest.approx(expected)
        assert told.applied(quantiles)[0, place] == pytest.approx(quantiles[0, -1] + expected)
    assert (told.moved[1 - share > LEVELS] == 0).all()
    mirrored = recalibration(-quantiles[:, ::-1], -log_s)
    np.testing.assert_allclose(mirrored.moved, -told.moved[::-1])


def test_a_runtime_that_differs_from_the_longest_quantile_by_rounding_is_not_beyond_it():
    """One run in five takes 21 s, the others 20 s, and so is predicted; logarithms are off by the last digit."""
    values = np.log(np.where(LEVELS < 0.8, 20.0, 21.0))
    log_s = np.log(np.where(np.arange(200) % 5 < 4, 20.0, 21.0)) + 1e-12
    made = recalibration(np.tile(values, (200, 1)), log_s)
    np.testing.assert_allclose(made.levels, LEVELS, atol=0.01)
    np.testing.assert_allclose(made.moved, 0)


def test_quantiles_at_other_levels_lie_between_their_neighbours():
    quantiles = np.array([np.arange(N_LEVELS, dtype=float), 10.0 * np.arange(N_LEVELS)])
    np.testing.assert_allclose(Recalibration().applied(quantiles), quantiles)
    moved = Recalibration(np.full(N_LEVELS, 0.5075)).applied(quantiles)
    np.testing.assert_allclose(moved, [[50.25] * N_LEVELS, [502.5] * N_LEVELS])


@pytest.mark.parametrize("told_sd", [0.5, 1.0, 2.0])
def test_intervals_that_are_too_narrow_or_too_wide_hold_ninety_percent_of_later_runs(told_sd):
    rng = np.random.default_rng(4)
    n = 4_000
    quantiles, log_s = normal(np.zeros(n), np.full(n, told_sd)), rng.normal(size=n)
    later = recalibration(quantiles[:1000], log_s[:1000]).applied(quantiles[1000:])
    is_inside = (log_s[1000:] >= later[:, 5]) & (log_s[1000:] <= later[:, 94])
    assert is_inside.mean() == pytest.approx(0.9, abs=0.03)
    assert (np.diff(later, axis=1) >= 0).all()


@pytest.mark.parametrize("n", [20, 100, 1_000])
def test_intervals_that_are_too_narrow_hold_as_many_as_they_say_however_few_runs_show_it(n):
    """Of runs with a deviation of 1 a deviation of 0.8 is predicted: 200 logs of n runs each."""
    rng, shares = np.random.default_rng(9), []
    for _ in range(200):
        made = recalibration(normal(np.zeros(n), np.full(n, 0.8)), rng.normal(size=n)).applied(normal([0.0], [0.8]))[0]
        shares.append(norm.cdf(np.interp(0.95, LEVELS, made)) - norm.cdf(np.interp(0.05, LEVELS, made)))
    assert 0.9 <= np.mean(shares) <= 0.94


def test_recalibration_in_time_follows_a_log_that_turns_noisy_and_knows_only_what_has_ended():
    rng = np.random.default_rng(5)
    n = 3_000
    quantiles = normal(np.zeros(n), np.ones(n))
    log_s = rng.normal(size=n) * np.where(np.arange(n) < 1_000, 1.0, 2.0)
    at = START + np.arange(n) * np.timedelta64(60_000_000, "us")
    made = recalibrated_in_time(quantiles, log_s, at, at + np.timedelta64(1, "us"), 500)
    is_inside = (log_s[500:] >= made[:, 5]) & (log_s[500:] <= made[:, 94])
    assert is_inside[-1_000:].mean() == pytest.approx(0.9, abs=0.03)
    changed = log_s.copy()
    changed[1_700:] = 1e3
    again = recalibrated_in_time(quantiles, changed, at, at + np.timedelta64(1, "us"), 500)
    np.testing.assert_array_equal(made[:1_200], again[:1_200])
    never = recalibrated_in_time(quantiles, log_s, at, np.full(n, at[-1]), 500)
    np.testing.assert_allclose(never, quantiles[500:])  # no run has ended before another is submitted


def test_the_grace_of_limits_that_are_kept_is_what_runs_take_over_them():
    limits_s = np.full(1_000, 100.0)
    runtime_s = np.linspace(1, 99, 1_000)
    assert learn_grace(runtime_s, limits_s) == 1
    runtime_s[-50:] = 104.0
    assert learn_grace(runtime_s, limits_s) == pytest.approx(1.04)
    runtime_s[-3:] = 1e6  # a few that the scheduler forgot
    assert learn_grace(runtime_s, limits_s) == MOST_GRACE


@pytest.mark.parametrize(
    ("runtime_s", "limits_s"),
    [
        (np.linspace(1, 300, 1_000), np.full(1_000, 100.0)),  # not kept
        (np.full(49, 50.0), np.full(49, 100.0)),  # few
        (np.full(500, 50.0), np.full(500, np.nan)),  # none
        (np.full(500, 50.0), np.zeros(500)),
    ],
)
def test_limits_that_are_not_kept_few_or_missing_teach_no_grace(runtime_s, limits_s):
    assert learn_grace(runtime_s, limits_s) is None


def test_no_quantile_lies_beyond_the_limit_and_its_grace():
    quantiles = np.tile(np.log(np.linspace(1, 1_000, N_LEVELS)), (3, 1))
    features = pd.DataFrame({"requested_runtime_s": [100.0, np.nan, 0.0]})
    ended = limited(quantiles, features, 1.1)
    assert np.exp(ended[0]).max() == pytest.approx(110)
    np.testing.assert_array_equal(ended[1:], quantiles[1:])
    assert limited(quantiles, features, None) is quantiles
    assert limited(quantiles, pd.DataFrame({"x": [1, 2, 3]}), 1.1) is quantiles
