"""Predicted distributions: properties, checks against numeric integration, edges of what can be predicted."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

from tasks.jobs.binned import Binned
from tasks.jobs.distribution import BLOCK
from tasks.jobs.empirical import Empirical
from tasks.jobs.history import gather_history
from tasks.jobs.tails import Tails

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
    drawn = predicted.sample(rng, 4000)
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
        monkeypatch.setattr("tasks.jobs.kernels.PAIRS", pairs)
        assert predicted.log_density(x) == pytest.approx(whole)


def test_the_same_run_counts_as_often_as_it_happened():
    often = Empirical(gather_history([5.0, 5, 5, 9], [0] * 4), [0])
    weighted = Empirical(gather_history([5.0, 9], [0, 0], [3, 1]), [0])
    for ask in ("cdf", "cdf_below", "crps"):
        assert getattr(often, ask)([5.0]) == pytest.approx(getattr(weighted, ask)([5.0]))
    assert often.quantile(0.75)[0] == weighted.quantile(0.75)[0] == 5
