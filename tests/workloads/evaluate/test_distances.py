"""Distances between runs by their phases and the thresholds on them: values worked out by hand, and properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tasks.workloads.evaluate.distances import (
    DISTANCES,
    distances_between,
    distances_of_pairs,
    match_phases,
    nearest_workloads,
    radii_of,
)


def sequences(rng, n=8, d=3):
    return [rng.normal(size=(int(rng.integers(1, 12)), d)) for _ in range(n)]


def test_a_warping_worked_out_by_hand():
    """0 1 2 2 against 0 0 2 2: match 0-0, 0-0, 1-2 or 1-0 (cost 1), 2-2; a repeated phase costs nothing."""
    one, other, slow = (np.array([values]).T for values in ([0.0, 1, 2, 2], [0.0, 0, 2, 2], [0.0, 0, 1, 2]))
    assert distances_between([one, 2 * one], [other, 2 * other]).diagonal().tolist() == [1.0, 2.0]
    assert distances_between([one], [slow]).tolist() == [[0.0]]


@pytest.mark.parametrize(("measure", "expected"), [("ed", 5.0), ("dtw", 7.0)])
def test_distances_by_hand(measure, expected):
    """Manhattan sums over dimensions; warping finds nothing cheaper than phase by phase."""
    one, other = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[3.0, 4.0], [1.0, 1.0]])
    found = match_phases(one, other, measure)
    assert found.distance == expected and found.phases.tolist() == [expected, 0.0]


@pytest.mark.slow  # its first call compiles for half a minute
def test_the_own_kernel_agrees_with_a_library():
    metrics = pytest.importorskip("tslearn.metrics")
    some = list(np.random.default_rng(1).normal(size=(8, 7, 3)))
    theirs = [[metrics.dtw_path_from_metric(a, b, metric="cityblock")[1] for b in some] for a in some]
    np.testing.assert_allclose(distances_of_pairs(some), theirs, rtol=1e-12, atol=1e-12)


@given(arrays(float, (2, 6, 2), elements=st.floats(-9, 9)))
@settings(deadline=None, max_examples=50)
def test_dtw_is_symmetric_and_the_same_in_either_direction_of_time(runs):
    there = distances_between(runs, runs)
    np.testing.assert_allclose(there, there.T, atol=1e-9)
    np.testing.assert_allclose(there, distances_between(runs[:, ::-1], runs[:, ::-1]), atol=1e-9)
    assert there.diagonal().tolist() == [0, 0]


@pytest.mark.parametrize("measure", DISTANCES)
def test_a_part_of_a_run_is_found_at_its_offset(measure):
    run = np.array([[0.0], [5.0], [9.0], [2.0]])
    match = match_phases(run[1:3], run, measure)
    assert (match.distance, match.offset, match.phases.tolist()) == (0.0, 1, [0.0, 0.0])
    assert match_phases(run, run[1:3], measure).offset == 1
    for alike in (run, np.ones((3, 1))):  # of equal offsets the smallest
        assert match_phases(alike[:1], alike, measure).offset == 0


@pytest.mark.parametrize("measure", DISTANCES)
def test_distances_of_many_runs_are_those_one_by_one(measure):
    runs = sequences(np.random.default_rng(4), n=9)
    one_by_one = np.array([[match_phases(one, other, measure).distance for other in runs] for one in runs])
    np.testing.assert_allclose(distances_of_pairs(runs, measure), one_by_one, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(distances_between(runs[:2], runs, measure), one_by_one[:2], rtol=1e-12, atol=1e-12)


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
        distances_of_pairs([np.zeros((2, 2)), bad])


def test_radii_by_hand():
    """redis: pairs at 1, 2 and 3; mysql: one pair at 7; nginx ran once and has no distance."""
    distances = np.zeros((6, 6))
    for a, b, distance in [(0, 1, 1), (0, 2, 2), (1, 2, 3), (3, 4, 7)]:
        distances[a, b] = distances[b, a] = distance
    assert radii_of(distances, ["redis"] * 3 + ["mysql"] * 2 + ["nginx"]) == {"redis": 2, "mysql": 7}


@pytest.mark.parametrize(("n_phases", "nearest"), [(3, "b"), (5, "b"), (2, "a")])
def test_candidates_have_as_many_phases_or_nearly_as_many(n_phases, nearest):
    named, _ = nearest_workloads(np.array([[1.0, 3, 2, 9]]), [n_phases], [2, 3, 3, 7], ["a", "c", "b", "d"], {})
    assert named == [nearest]


def test_the_nearest_candidate_names_the_workload_and_its_threshold_confirms_it():
    distances = np.array([[0.5, 3.0, 2.0], [9.0, 20.0, 30.0]])  # at the radius is within it
    radii = {"redis": 4.0, "mysql": 2.0}
    named, is_known = nearest_workloads(distances, [2, 2], [1, 2, 2], ["redis", "redis", "mysql"], radii)
    assert named == ["mysql", "redis"]  # the nearest of all has another number of phases
    assert is_known.tolist() == [True, False]
    _, is_known = nearest_workloads(np.array([[0.0], [0.1]]), [1, 1], [1], ["redis"], {})
    assert is_known.tolist() == [True, False]  # one that was seen once confirms only itself


def test_without_a_known_run_there_is_nothing_to_say():
    with pytest.raises(ValueError, match="no known run"):
        nearest_workloads(np.zeros((1, 0)), [1], [], [], {})
