import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tasks.errors import BadSetting
from tasks.workloads.similarity.dtw import distances, dtw, pairwise
from tasks.workloads.similarity.sequences import pack


def sequences(rng, n=8, d=3):
    return [rng.normal(size=(int(rng.integers(1, 12)), d)) for _ in range(n)]


def test_a_warping_worked_out_by_hand():
    """0 1 2 against 0 2: match 0-0, 1-2 or 1-0 (cost 1), 2-2."""
    one, other = np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [2.0]])
    assert dtw(one, other) == 1.0
    assert dtw(2 * one, 2 * other) == 2.0
    assert dtw(2 * one, 2 * other, "squared") == 4.0


def test_a_repeated_sample_costs_nothing():
    one = np.array([[0.0, 1.0], [3.0, 1.0], [5.0, 2.0]])
    assert dtw(one, np.repeat(one, 3, axis=0)) == 0.0


def test_manhattan_sums_over_dimensions_and_squared_squares_each():
    one, other = np.zeros((1, 2)), np.array([[3.0, 4.0]])
    assert dtw(one, other) == 7.0
    assert dtw(one, other, "squared") == 25.0


@pytest.mark.parametrize(
    ("cost", "backend"),
    [
        pytest.param("manhattan", "tslearn", marks=pytest.mark.slow),  # its first call compiles for half a minute
        pytest.param("squared", "tslearn", marks=pytest.mark.slow),
        ("squared", "dtaidistance"),
    ],
)
def test_the_own_kernel_agrees_with_libraries(cost, backend):
    pytest.importorskip("tslearn" if backend == "tslearn" else "dtaidistance")
    some = sequences(np.random.default_rng(1))
    np.testing.assert_allclose(pairwise(some, cost), pairwise(some, cost, backend), rtol=1e-12, atol=1e-12)


def test_dtaidistance_refuses_manhattan_in_one_line():
    with pytest.raises(BadSetting, match=r"backend: dtaidistance has no Manhattan cost; expected own or tslearn"):
        dtw(np.zeros((1, 1)), np.zeros((1, 1)), "manhattan", "dtaidistance")


@given(arrays(float, (4, 2), elements=st.floats(-9, 9)), arrays(float, (6, 2), elements=st.floats(-9, 9)))
@settings(deadline=None, max_examples=50)
def test_dtw_is_symmetric_and_the_same_in_either_direction_of_time(one, other):
    there = dtw(one, other)
    assert there == pytest.approx(dtw(other, one), abs=1e-9)
    assert there == pytest.approx(dtw(one[::-1], other[::-1]), abs=1e-9)
    assert dtw(one, one) == 0


def test_all_pairs_are_the_pairs_one_by_one():
    some = sequences(np.random.default_rng(2), n=5)
    one_by_one = np.array([[dtw(a, b) for b in some] for a in some])
    np.testing.assert_allclose(pairwise(some), one_by_one, atol=1e-12)
    np.testing.assert_allclose(distances(some[:2], some), one_by_one[:2], atol=1e-12)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.empty((0, 2)), "sequence 1 is empty"),
        (np.zeros((2, 3)), "sequence 1 has 3 dimensions, the first 2"),
        (np.array([[0.0, np.nan]]), "sequence 1 holds a value that is not finite"),
    ],
)
def test_what_has_no_distance_is_told(bad, message):
    with pytest.raises(ValueError, match=message):
        pack([np.zeros((2, 2)), bad])
