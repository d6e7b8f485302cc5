import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.workloads.phase_params import PhaseParams
from tasks.workloads.phases import STATISTICS, UNDETERMINED, bounds_of, dickey_fuller, shared_bounds, summarise_phases

PARAMS = PhaseParams()


def test_the_summary_of_two_phases_by_hand():
    found = summarise_phases(np.array([1.0, 2.0, 6.0, 5.0, 5.0]), bounds_of([3], 5), PARAMS)
    first = dict(zip(STATISTICS, found[0], strict=True))
    assert first["mean"] == 3 and first["median"] == 2
    assert first["variance"] == pytest.approx((4 + 1 + 9) / 3)
    assert first["adf"] == UNDETERMINED
    assert (first["q25"], first["q75"]) == (1.5, 4)
    assert found[1].tolist() == [5, 5, 0, UNDETERMINED, 5, 5, 5, 5]


def test_missing_samples_do_not_count_and_a_phase_of_nothing_else_is_zero():
    found = summarise_phases(np.array([1.0, np.nan, np.nan]), bounds_of([1], 3), PARAMS)
    assert found[0, 0] == 1 and not found[1].any()


@pytest.mark.parametrize("points", [[0], [5], [-1], [9]])
def test_a_change_point_outside_of_the_run_is_refused(points):
    with pytest.raises(ValueError, match="expected 1 to 4"):
        bounds_of(points, 5)


def test_noise_is_stationary_and_a_random_walk_is_not():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=300)
    assert dickey_fuller(noise, PARAMS) < -8
    assert dickey_fuller(noise.cumsum(), PARAMS) > -3


@pytest.mark.parametrize(
    "phase",
    [np.arange(19.0), np.ones(50), np.full(50, 0.1), np.linspace(0, 1, 50), 1e9 + 1e-3 * np.sin(np.arange(50.0))],
)
def test_short_constant_and_straight_phases_are_undetermined(phase):
    assert dickey_fuller(phase, PARAMS) is None


@pytest.mark.parametrize("spike", range(4))
@pytest.mark.parametrize("noise", [0, 1e-9, 1e-4])
def test_a_single_spike_never_outweighs_all_else(spike, noise):
    phase = noise * np.sin(np.arange(21.0))
    phase[spike] = 8
    found = dickey_fuller(phase, PARAMS)
    assert found is None or abs(found) <= 50
    assert noise or spike > 1 or found is None  # before the first answer of the regression, it fits perfectly


def test_the_workload_changes_where_enough_counters_do():
    bounds = [bounds_of(points, 30) for points in ([10], [11, 20], [10], [], [25])]
    params = PhaseParams(vote_share=0.5)
    assert shared_bounds(bounds, params).tolist() == [0, 10, 30]
    assert shared_bounds(bounds, PhaseParams(vote_share=0.25)).tolist() == [0, 10, 20, 25, 30]


def test_counters_that_never_change_do_not_vote():
    bounds = [bounds_of([5], 9), *[bounds_of([], 9)] * 50]
    assert shared_bounds(bounds, PhaseParams(vote_share=1)).tolist() == [0, 5, 9]


@given(st.lists(st.lists(st.integers(1, 19), max_size=5), min_size=1, max_size=8))
def test_phases_of_the_workload_do_not_depend_on_the_order_of_its_counters(points):
    bounds = [bounds_of(one, 20) for one in points]
    found = shared_bounds(bounds, PARAMS)
    assert found.tolist() == shared_bounds(bounds[::-1], PARAMS).tolist()
    assert found[0] == 0 and found[-1] == 20 and (np.diff(found) > 0).all()
