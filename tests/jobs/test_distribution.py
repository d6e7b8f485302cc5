"""Predicted distributions: properties, checks against numeric integration, edges of what can be predicted."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

from tasks.jobs.distribution import (
    BLOCK,
    Binned,
    Empirical,
    Tails,
    fit_tails,
    gather_history,
    outer_edges,
    without_zero_bin,
)

RNG_SEED = 11


def ratio(n=6, n_bins=12, seed=RNG_SEED):
    rng = np.random.default_rng(seed)
    medians = rng.lognormal(3, 1, n)
    return Binned(np.linspace(0, 4, n_bins + 1), rng.dirichlet(np.ones(n_bins), n), medians, "ratio", Tails(1.5))


def delta(n=6, n_bins=12, seed=RNG_SEED):
    rng = np.random.default_rng(seed)
    edges, tails = np.linspace(-60, 60, n_bins + 1), Tails(25.0, 20.0)
    return Binned(edges, rng.dirichlet(np.ones(n_bins), n), rng.lognormal(3, 1, n), "delta", tails)


def history(n=6, seed=RNG_SEED):
    rng = np.random.default_rng(seed)
    groups = np.repeat([0, 1, 2], [1, 9, 40])
    return Empirical(
        gather_history(rng.lognormal(3, 0.7, 50).round(1), groups, rng.uniform(0.5, 2, 50)), np.arange(n) % 3
    )


KINDS = [ratio, delta, history]


@pytest.mark.parametrize("make", KINDS)
def test_crps_equals_its_integral(make):
    predicted = make()
    for row, x in [(0, 5.0), (1, 0.0), (2, 40.0), (4, 300.0), (5, 20.0)]:
        one = predicted.rows(slice(row, row + 1))
        t = np.linspace(0, 4000, 200_001)
        f = one.cdf(t[None, :])[0]
        numeric = np.trapezoid((f - (t >= x)) ** 2, t)
        assert one.crps([x])[0] == pytest.approx(numeric, rel=2e-3, abs=5e-3)


@pytest.mark.parametrize("make", [ratio, delta])
def test_crps_of_bins_equals_its_integral_closely(make):
    one = make().rows(slice(3, 4))
    x = 1.1 * one.medians_s[0]
    breaks = one.quantile(np.broadcast_to(np.linspace(0.01, 0.999, 60), (1, 60)))[0]
    points = np.unique(np.concatenate([[0, x], breaks, breaks[-1] + np.arange(1, 60) * 20]))
    pieces = itertools.pairwise(points)
    total = sum(quad(lambda t: (one.cdf([t])[0] - (t >= x)) ** 2, a, b)[0] for a, b in pieces)
    assert one.crps([x])[0] == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("make", KINDS)
def test_the_quantile_is_the_inverse_of_the_cdf(make):
    predicted = make()
    levels = np.broadcast_to([0.02, 0.3, 0.5, 0.95, 0.999], (predicted.n, 5))
    times = predicted.quantile(levels)
    assert (np.diff(times, axis=1) >= -1e-5).all() and (times >= 0).all()
    assert (predicted.cdf(times + 1e-5) >= levels - 1e-9).all()
    assert (predicted.cdf_below(np.maximum(times - 1e-5, 0)) <= levels + 1e-9).all()


@pytest.mark.parametrize("make", KINDS)
def test_densities_of_log_runtime_integrate_to_one(make):
    predicted = make()
    log_x = np.linspace(-14, 14, 20_001)
    x = np.broadcast_to(np.exp(log_x), (predicted.n, len(log_x)))
    for row in range(predicted.n):
        one = predicted.rows(slice(row, row + 1))
        assert np.trapezoid(np.exp(one.log_density(x[row : row + 1]))[0], log_x) == pytest.approx(1, abs=3e-3)


@pytest.mark.parametrize("make", KINDS)
def test_crps_is_never_negative_and_samples_follow_the_cdf(make):
    predicted, rng = make(), np.random.default_rng(3)
    drawn = predicted.quantile(rng.uniform(size=(predicted.n, 4000)))
    assert drawn.shape == (predicted.n, 4000)
    assert (predicted.crps(drawn[:, :200]) >= 0).all()
    times = predicted.quantile(np.broadcast_to([0.25, 0.75], (predicted.n, 2)))
    for k in range(2):
        shares = (drawn <= times[:, k : k + 1] + 1e-5).mean(axis=1)
        assert shares == pytest.approx(predicted.cdf(times + 1e-5)[:, k], abs=0.035)  # 4.4 deviations of 0.008


@pytest.mark.parametrize("make", KINDS)
def test_rows_answer_like_the_whole(make):
    predicted, x = make(), np.array([1.0, 3, 10, 20, 50, 200])
    which = np.array([4, 0, 4])
    for ask in ("cdf", "log_density", "crps"):
        assert getattr(predicted.rows(which), ask)(x[which]) == pytest.approx(getattr(predicted, ask)(x)[which])


def test_blocks_change_nothing():
    n = BLOCK + 7
    large, x = ratio(n), np.random.default_rng(1).lognormal(3, 1, n)
    assert large.crps(x)[-9:] == pytest.approx(large.rows(slice(n - 9, n)).crps(x[-9:]), rel=1e-12)
    assert large.quantile(0.9)[-9:] == pytest.approx(large.rows(slice(n - 9, n)).quantile(0.9), rel=1e-12)


def test_minutes_instead_of_seconds_divide_the_crps_by_60_and_keep_the_log_score():
    seconds, x = ratio(), np.array([1.0, 3, 10, 20, 50, 200])
    minutes = replace(seconds, medians_s=seconds.medians_s / 60)
    assert minutes.crps(x / 60) * 60 == pytest.approx(seconds.crps(x))
    assert minutes.log_density(x / 60) == pytest.approx(seconds.log_density(x))


def test_weights_over_shapes_are_the_same_as_the_mixed_bins():
    rng = np.random.default_rng(2)
    edges, shapes, weights = np.linspace(0, 3, 11), rng.dirichlet(np.ones(10), 4), rng.dirichlet(np.ones(4), 5)
    medians, x = rng.uniform(1, 9, 5), rng.uniform(0, 40, 5)
    mixed = Binned(edges, weights @ shapes, medians, "ratio", Tails(1.0))
    lazy = Binned(edges, shapes, medians, "ratio", Tails(1.0), weights)
    assert lazy.crps(x) == pytest.approx(mixed.crps(x)) and lazy.cdf(x) == pytest.approx(mixed.cdf(x))


@pytest.mark.parametrize("make", KINDS)
def test_no_instance_has_no_answer(make):
    none = make().rows(slice(0, 0))
    for ask in ("cdf", "cdf_below", "log_density", "crps"):
        assert getattr(none, ask)([]).shape == (0,)
    assert none.quantile(0.5).shape == (0,)


def test_many_pairs_of_runs_and_kernels_are_cut_without_a_trace(monkeypatch):
    predicted, x = history(60), np.random.default_rng(1).lognormal(3, 1, 60)
    whole = predicted.log_density(x)
    for pairs in (1, 7, 50):
        monkeypatch.setattr("tasks.jobs.distribution.PAIRS", pairs)
        assert predicted.log_density(x) == pytest.approx(whole)


def test_the_same_run_counts_as_often_as_it_happened():
    often = Empirical(gather_history([5.0, 5, 5, 9], [0] * 4), [0])
    weighted = Empirical(gather_history([5.0, 9], [0, 0], [3, 1]), [0])
    for ask in ("cdf", "cdf_below", "crps"):
        assert getattr(often, ask)([5.0]) == pytest.approx(getattr(weighted, ask)([5.0]))
    assert often.quantile(0.75)[0] == weighted.quantile(0.75)[0] == 5


def ratio_test_distribution_edges(n):
    return Binned([0, 1, 2], [[0.5, 0.5]] * n, [1.0] * n, "ratio")


def test_one_past_run_is_a_sure_prediction_with_a_narrow_density():
    one = Empirical(gather_history([60.0], [0]), [0])
    assert one.crps([63.0])[0] == 3 and one.quantile(0.5)[0] == 60
    assert one.cdf([60.0])[0] == 1 and one.cdf_below([60.0])[0] == 0
    assert one.log_density([60.0])[0] > one.log_density([66.0])[0] > -20


def test_a_constant_history_is_as_one_run():
    one, many = (Empirical(gather_history([60.0] * n, [0] * n), [0]) for n in (1, 30))
    for x in (59.0, 60.0, 61.0):
        assert many.crps([x]) == pytest.approx(one.crps([x]))
        assert many.log_density([x]) == pytest.approx(one.log_density([x]))


def test_runs_of_no_length_keep_their_weight_in_the_steps():
    past = Empirical(gather_history([0.0, 10.0], [0, 0]), [0])
    assert past.cdf([0.0])[0] == 0.5
    only = Empirical(gather_history([10.0], [0]), [0])
    assert past.log_density([10.0])[0] == pytest.approx(only.log_density([10.0])[0] - math.log(2))
    assert np.isneginf(Empirical(gather_history([0.0], [0]), [0]).log_density([3.0])[0])


def test_a_delta_around_0_s_stays_above_0_s():
    zero = Binned([-10, 0, 10], [[0.6, 0.4]], [0.0], "delta")
    assert zero.quantile(0.5)[0] == pytest.approx(5) and zero.cdf([0.0])[0] == 0


def test_a_lower_tail_reaches_0_s_for_a_long_job():
    long = Binned([-10, -5, 10], [[0.5, 0.5]], [1000.0], "delta", Tails(lower_mean=3.0))
    assert long.cdf([0.0])[0] == 0 and long.cdf([497.5])[0] == pytest.approx(0.25) and long.cdf([995.0])[0] == 0.5


def test_tails_are_the_mean_excess_of_the_training_outliers():
    edges = [-20.0, -10, 0, 10, 20]
    assert fit_tails([-16.0, -12, 3, 12, 18], edges, "delta") == Tails(5.0, 4.0)
    assert fit_tails([3.0, 4], edges, "delta") == Tails(10.0, 10.0)  # no outlier: the width of the bin


def test_outer_edges_leave_the_range_to_the_inner_bins():
    assert outer_edges(-900, 900, 5, "delta").tolist() == [-1500, -900, -300, 300, 900, 1500]
    edges = outer_edges(0, 9, 5, "ratio")
    assert edges.tolist() == [-3, 0, 3, 6, 9, 12]
    edges, mass = without_zero_bin(edges, [[0.1, 0.2, 0.3, 0.2, 0.2]])
    assert edges.tolist() == [0, 3, 6, 9, 12] and mass[0] == pytest.approx([0.3, 0.3, 0.2, 0.2])
    assert outer_edges(0.5, 8, 5, "ratio")[0] == 0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Binned([0, 1], [[1.0]], [0.0], "ratio"), "medians_s: 1 of 1 .* row 0 .*use delta"),
        (lambda: Binned([0, 1], [[1.0]], [math.nan], "ratio"), "medians_s: 1 of 1 .* finite median"),
        (lambda: Binned([0, 1, 2], [[0.5, math.nan]], [1.0], "ratio"), "shapes: 1 of 2 .* row 0, 1"),
        (lambda: Binned([0, 1, 2], [[0.5, 0.4]], [1.0], "ratio"), "sums of shapes: .*0.9.*expected 1"),
        (lambda: Binned([0, 2, 1], [[0.5, 0.5]], [1.0], "ratio"), "edges: .*above the one before"),
        (lambda: Binned([0, 1, 2], [[1.0]], [1.0], "ratio"), r"shapes: shape \(1, 1\); expected \(k, 2\)"),
        (lambda: Binned([-1, 1], [[1.0]], [1.0], "ratio"), "edges: a ratio is 0 or more"),
        (lambda: Binned([-5, 0, 5], [[1.0, 0.0]], [0.0], "delta").cdf([1.0]), "leaves some probability above 0 s"),
        (lambda: gather_history([1.0, math.nan], [0, 0]), "values_s: 1 of 2 .* row 1"),
        (lambda: gather_history([1.0, -2.0], [0, 0]), r"values_s: .*\(-2\)"),
        (lambda: gather_history([1.0], [1]), "groups: 1 of 2 have no run"),
        (lambda: gather_history([], []), "no run of weight"),
        (lambda: Empirical(gather_history([1.0], [0]), [1]), "group: from 1 to 1; expected 0 to 0"),
        (lambda: ratio_test_distribution_edges(2).cdf([1.0, math.nan]), "x: 1 of 2 .* row 1"),
        (lambda: ratio_test_distribution_edges(2).cdf([1.0]), r"x: shape \(1,\); expected \(2,\)"),
        (lambda: ratio_test_distribution_edges(2).quantile(1.0), "q: .*between 0 and 1"),
    ],
)
def test_what_cannot_be_used_is_one_clear_line(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_quantile_that_a_run_meets_exactly_does_not_depend_on_how_many_other_groups_there_are():
    n_groups, n_runs = 300, 1000
    values, groups = np.tile(np.arange(n_runs, dtype=float), n_groups), np.repeat(np.arange(n_groups), n_runs)
    many = Empirical(gather_history(values, groups), np.arange(n_groups))
    assert set(many.quantile(0.95)) == {949.0}
