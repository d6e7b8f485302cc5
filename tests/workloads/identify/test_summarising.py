import numpy as np
import pytest

from tasks.workloads.identify.stationarity import dickey_fuller_each
from tasks.workloads.identify.summarising import summarise_all
from tasks.workloads.phase_params import PhaseParams
from tasks.workloads.phases import bounds_of, dickey_fuller, summarise_phases

PARAMS = PhaseParams()


@pytest.mark.parametrize("lags", [0, 1, 3])
def test_the_statistics_of_many_phases_are_those_of_statsmodels_one_by_one(lags):
    params = PhaseParams(adf_lags=lags)
    rng = np.random.default_rng(3)
    phases = [
        rng.normal(size=40),
        1e6 + 1e4 * rng.normal(size=25).cumsum(),
        rng.normal(size=200).cumsum(),
        rng.normal(size=8),  # too short
        np.full(30, 3.0),  # constant
        np.arange(30.0),  # a ramp
        5e-3 * rng.normal(size=21) - 2,
    ]
    phase_of = np.repeat(np.arange(len(phases)), [len(one) for one in phases])
    found = dickey_fuller_each(np.concatenate(phases), phase_of, len(phases), params)
    expected = [dickey_fuller(one, params) for one in phases]
    assert [value is None for value in expected] == np.isnan(found).tolist()
    np.testing.assert_allclose(found, [np.nan if value is None else value for value in expected], rtol=1e-7)


def test_all_counters_at_once_give_what_one_by_one_gives():
    rng = np.random.default_rng(4)
    values = rng.normal(size=(60, 4)).cumsum(axis=0)
    values[3:9, 1] = np.nan
    values[50:, 2] = np.nan
    values[:, 3] = 2.5
    bounds = [bounds_of(one, 60) for one in ([], [3, 9, 30], [50], [1, 59])]
    found = summarise_all(values, bounds, PARAMS)
    assert [len(one) for one in found] == [1, 4, 2, 3]
    for column, one, summaries in zip(values.T, bounds, found, strict=True):
        np.testing.assert_allclose(summaries, summarise_phases(column, one, PARAMS), rtol=1e-6, atol=1e-10)


def test_a_phase_without_a_value_has_only_zeros():
    values = np.array([[1.0], [1.0], [np.nan], [np.nan]])
    [found] = summarise_all(values, [bounds_of([2], 4)], PARAMS)
    assert found[0, 0] == 1
    assert not found[1].any()
    [nothing] = summarise_all(np.full((4, 1), np.nan), [bounds_of([], 4)], PARAMS)
    assert not nothing.any()


def test_a_single_spike_has_no_statistic_of_astronomical_size():
    params = PhaseParams()
    phases = [np.where(np.arange(21) == spike, 8.0, 0.0) for spike in range(21)]
    found = dickey_fuller_each(np.concatenate(phases), np.repeat(np.arange(21), 21), 21, params)
    alone = [dickey_fuller(phase, params) for phase in phases]
    assert np.isnan(found[:2]).all()
    np.testing.assert_allclose(found, [np.nan if one is None else one for one in alone], rtol=1e-6)
