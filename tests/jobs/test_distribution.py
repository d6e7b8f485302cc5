"""Predicted distributions: properties, checks against numeric integration, edges of what can be predicted."""

import numpy as np
import pytest

from tasks.jobs.distribution import even_steps, gather_history

RNG_SEED = 11


def steps(n=6, seed=RNG_SEED):
    return even_steps(np.sort(np.random.default_rng(seed).lognormal(3, 1, (n, 40)), axis=1))


def history(n=6, seed=RNG_SEED):
    rng = np.random.default_rng(seed)
    return gather_history(rng.lognormal(3, 0.7, 50).round(1), np.repeat([0, 1, 2], [1, 9, 40])).rows(np.arange(n) % 3)


KINDS = [steps, history]


@pytest.mark.parametrize("make", KINDS)
def test_crps_equals_its_integral(make):
    predicted = make()
    for row, x in [(0, 5.0), (1, 0.0), (2, 40.0), (4, 300.0), (5, 20.0)]:
        one = predicted.rows(slice(row, row + 1))
        t = np.linspace(0, 4000, 200_001)
        f = one.cdf(t[None, :])[0]
        numeric = np.trapezoid((f - (t >= x)) ** 2, t)
        assert one.crps([x])[0] == pytest.approx(numeric, rel=2e-3, abs=5e-3)


@pytest.mark.parametrize("make", KINDS)
def test_the_quantile_is_the_inverse_of_the_cdf(make):
    predicted = make()
    levels = np.broadcast_to([0.02, 0.3, 0.5, 0.95, 0.999], (predicted.n, 5))
    times = predicted.quantile(levels)
    assert (np.diff(times, axis=1) >= -1e-5).all() and (times >= 0).all()
    assert (predicted.cdf(times + 1e-5) >= levels - 1e-9).all()
    assert (predicted.cdf_below(np.maximum(times - 1e-5, 0)) <= levels + 1e-9).all()


@pytest.mark.parametrize("make", KINDS)
def test_rows_answer_like_the_whole(make):
    predicted, x = make(), np.array([1.0, 3, 10, 20, 50, 200])
    which = np.array([4, 0, 4])
    for ask in ("cdf", "crps"):
        assert getattr(predicted.rows(which), ask)(x[which]) == pytest.approx(getattr(predicted, ask)(x)[which])


@pytest.mark.parametrize("make", KINDS)
def test_no_instance_has_no_answer(make):
    none = make().rows(slice(0, 0))
    for ask in ("cdf", "cdf_below", "crps"):
        assert getattr(none, ask)([]).shape == (0,)
    assert none.quantile(0.5).shape == (0,)


@pytest.mark.parametrize("make", KINDS)
def test_the_mean_above_a_time_is_the_integral_of_the_chance_to_exceed_it(make):
    predicted, t = make().rows(slice(1, 2)), np.linspace(20, 4000, 200_001)
    assert predicted.mean_above(20)[0] == pytest.approx(np.trapezoid(1 - predicted.cdf(t[None, :])[0], t), abs=0.02)


@pytest.mark.parametrize("is_even", [False, True])
def test_a_level_that_a_run_meets_exactly_does_not_depend_on_how_many_other_groups_there_are(is_even):
    n_groups, n_runs = 5_000, 100
    values, groups = np.tile(np.arange(n_runs, dtype=float), (n_groups, 1)), np.arange(n_groups)
    many = even_steps(values) if is_even else gather_history(values.ravel(), np.repeat(groups, n_runs))
    for level in (0.05, 0.5, 0.95):
        assert set(many.quantile(level)) == {100 * level - 1}
        assert many.cdf(np.full(n_groups, 100 * level - 1)) == pytest.approx(level, abs=1e-12)
