"""A run cut into phases and summarised (CWD, V-A to V-C): by hand, and beside statsmodels."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.workloads.identify.counters import common_counters
from tasks.workloads.identify.phases import (
    STATISTICS,
    UNDETERMINED,
    bounds_of,
    cut_run,
    dickey_fuller,
    equation_7,
    fingerprints_of,
    learn_scale,
    on_scale,
    shared_bounds,
    summarise,
)
from tasks.workloads.telemetry import Counter, Telemetry
from tests.workloads.identify.synthetic import draw_runs, draw_workload


def run(values, counters):
    values = np.asarray(values, dtype=float)
    return Telemetry("r", counters, np.arange(len(values), dtype=float), values)


def statistic(phase):
    """The statistic of one phase, NaN where it is undetermined."""
    return dickey_fuller(np.asarray(phase, dtype=float), np.zeros(len(phase), dtype=np.int64), 1)[0]


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(2)
    return draw_runs([draw_workload(name, 6, 3, rng) for name in ("redis", "nginx")], 3, rng)


def counters_of(runs):
    return tuple(one for view in ("own", "machine") for one in common_counters(runs, view))


def test_equation_7_by_hand():
    """1, 2, 3, 6: mean 3, deviation sqrt((4 + 1 + 0 + 9) / 4). Neither a level nor rounding is left."""
    column = np.array([[1.0], [2.0], [3.0], [6.0]])
    expected = np.array([2, 1, 0, 3]) / np.sqrt(3.5)
    for values in (column, 1000 * column + 5):
        np.testing.assert_allclose(equation_7(values)[:, 0], expected)
    assert all((equation_7(np.full((7, 1), constant)) == 0).all() for constant in (0.0, 0.1, 1e9 + 0.1))
    found = equation_7(np.array([[1.0, np.nan], [np.nan, np.nan], [4.0, np.nan]]))
    np.testing.assert_array_equal(found, [[1, np.nan], [np.nan, np.nan], [1, np.nan]])  # what is missing stays so


def test_the_learned_scale_keeps_levels_and_takes_the_logarithm_of_rates():
    counters = (Counter("disk.read_bytes", is_rate=True), Counter("memory.cached_bytes"))
    runs = [run([[0, 10], [0, 10]], counters), run([[np.expm1(2), 30], [np.expm1(2), 30]], counters)]
    scale = learn_scale(runs, counters)
    assert scale.centre.tolist() == pytest.approx([1, 20])
    assert scale.spread.tolist() == pytest.approx([1, 10])
    np.testing.assert_allclose(on_scale(runs[1].values, scale), [[1, 1], [1, 1]])


def test_long_runs_do_not_outweigh_short_ones_and_what_is_far_outside_of_training_is_cut():
    counters = (Counter("a"), Counter("never varied"))
    scale = learn_scale([run([[0.0, 0.1]], counters), run([[4.0, 0.1]] * 9, counters)], counters)
    assert scale.centre.tolist() == [2, 0.1] and scale.spread[1] == 0
    assert on_scale(np.array([[1e6, 77.0], [-1e6, 0.1]]), scale).tolist() == [[8, 0], [-8, 0]]


def test_the_summary_of_two_phases_by_hand():
    [found] = summarise(np.array([[1.0, 2.0, 6.0, 5.0, 5.0]]).T, [bounds_of([3], 5)])
    first = dict(zip(STATISTICS, found[0], strict=True))
    assert first["mean"] == 3 and first["median"] == 2
    assert first["variance"] == pytest.approx((4 + 1 + 9) / 3)
    assert first["adf"] == UNDETERMINED
    assert (first["q25"], first["q75"]) == (1.5, 4)
    assert found[1].tolist() == [5, 5, 0, UNDETERMINED, 5, 5, 5, 5]
    # missing samples do not count, and a phase of nothing else is zero
    values = np.array([[1.0, np.nan], [np.nan, np.nan], [np.nan, np.nan]])
    one, nothing = summarise(values, [bounds_of([1], 3), bounds_of([], 3)])
    assert one[0, 0] == 1 and not one[1].any() and not nothing.any()


def test_all_counters_at_once_give_what_one_by_one_gives():
    rng = np.random.default_rng(4)
    values = rng.normal(size=(60, 4)).cumsum(axis=0)
    values[3:9, 1] = np.nan
    values[:, 3] = 2.5
    bounds = [bounds_of(one, 60) for one in ([], [3, 9, 30], [50], [1, 59])]
    found = summarise(values, bounds)
    assert [len(one) for one in found] == [1, 4, 2, 3]
    for column, one, summaries in zip(values.T, bounds, found, strict=True):
        np.testing.assert_allclose(summaries, summarise(column[:, None], [one])[0], rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("points", [[0], [5], [-1], [9]])
def test_a_change_point_outside_of_the_run_is_refused(points):
    with pytest.raises(ValueError, match="expected 1 to 4"):
        bounds_of(points, 5)


def test_the_statistics_of_many_phases_are_those_of_statsmodels_one_by_one():
    from statsmodels.tsa.stattools import adfuller

    rng = np.random.default_rng(3)
    phases = [
        rng.normal(size=40),
        1e6 + 1e4 * rng.normal(size=25).cumsum(),
        rng.normal(size=200).cumsum(),
        5e-3 * rng.normal(size=21) - 2,
    ]
    phase_of = np.repeat(np.arange(len(phases)), [len(one) for one in phases])
    expected = [adfuller(one, maxlag=1, autolag=None, result_object=False)[0] for one in phases]
    np.testing.assert_allclose(dickey_fuller(np.concatenate(phases), phase_of, len(phases)), expected, rtol=1e-7)


@pytest.mark.parametrize(
    "phase",
    [np.arange(19.0), np.ones(50), np.full(50, 0.1), np.linspace(0, 1, 50), 1e9 + 1e-3 * np.sin(np.arange(50.0))],
)
def test_short_constant_and_straight_phases_are_undetermined(phase):
    assert np.isnan(statistic(phase))


@pytest.mark.parametrize("spike", range(4))
@pytest.mark.parametrize("noise", [0, 1e-9, 1e-4])
def test_a_single_spike_never_outweighs_all_else(spike, noise):
    phase = noise * np.sin(np.arange(21.0))
    phase[spike] = 8
    found = statistic(phase)
    assert np.isnan(found) or abs(found) <= 50
    assert noise or spike > 1 or np.isnan(found)  # before the first answer of the regression, it fits perfectly


def test_the_workload_changes_where_enough_counters_do():
    bounds = [bounds_of(points, 30) for points in ([10], [11, 20], [10], [], *[[25]] * 30)]
    assert shared_bounds(bounds).tolist() == [0, 25, 30]
    assert shared_bounds(bounds[:4]).tolist() == [0, 10, 20, 30]
    silent = [bounds_of([5], 9), *[bounds_of([], 9)] * 50]  # counters that never change do not vote
    assert shared_bounds(silent).tolist() == [0, 5, 9]


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(1, 19), max_size=5), min_size=1, max_size=8))
def test_phases_of_the_workload_do_not_depend_on_the_order_of_its_counters(points):
    bounds = [bounds_of(one, 20) for one in points]
    found = shared_bounds(bounds)
    assert found.tolist() == shared_bounds(bounds[::-1]).tolist()
    assert found[0] == 0 and found[-1] == 20 and (np.diff(found) > 0).all()


def test_the_phases_that_were_drawn_are_found():
    rng = np.random.default_rng(5)
    workload = draw_workload("redis", 30, 3, rng)
    runs = draw_runs([workload], 4, rng)
    for one in fingerprints_of(runs, counters_of(runs)):
        assert one.workload_bounds[1:-1] == pytest.approx(np.ceil(workload.changes * 30), abs=1)


def test_phases_found_before_give_the_same_fingerprints(drawn):
    counters = counters_of(drawn)
    cuts = {one.run_id: cut_run(one, counters) for one in drawn}
    scale = learn_scale(drawn, counters)
    first = fingerprints_of(drawn, counters, scale, cuts)
    for one, other in zip(first, fingerprints_of(drawn, counters, scale), strict=True):
        np.testing.assert_array_equal(one.workload_phases, other.workload_phases)


def test_a_counter_that_a_run_lacks_has_one_phase_of_zeros(drawn):
    counters = counters_of(drawn)
    poorer = replace(drawn[0], counters=drawn[0].counters[1:], values=drawn[0].values[:, 1:])
    lost = [one.name for one in counters].index(drawn[0].names[0])
    [found] = fingerprints_of([poorer], counters)
    assert found.summaries[lost].shape[0] == 1 and not found.summaries[lost].any()
