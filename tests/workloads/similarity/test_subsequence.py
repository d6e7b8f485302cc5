import numpy as np
import pytest

from tasks.workloads.similarity.params import SimilarityParams
from tasks.workloads.similarity.subsequence import distances_between, distances_of_pairs, euclidean, match_phases

EUCLIDEAN = SimilarityParams(distance="euclidean")


@pytest.mark.parametrize("params", [EUCLIDEAN, SimilarityParams(), SimilarityParams(cost="squared")])
def test_a_part_of_a_run_is_found_at_its_offset(params):
    run = np.array([[0.0], [5.0], [9.0], [2.0]])
    match = match_phases(run[1:3], run, params)
    assert (match.distance, match.offset) == (0.0, 1)
    assert match.phases.tolist() == [0.0, 0.0]
    assert match_phases(run, run[1:3], params).offset == 1


def test_offset_0_counts():
    run = np.array([[1.0], [5.0], [9.0]])
    assert match_phases(run[:2], run, EUCLIDEAN).offset == 0


def test_the_smallest_of_equal_offsets_counts():
    assert match_phases(np.array([[1.0]]), np.ones((3, 1)), EUCLIDEAN).offset == 0


def test_distances_by_hand():
    one, other = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[3.0, 4.0], [1.0, 1.0]])
    assert euclidean(one, other) == 5.0
    assert match_phases(one, other, EUCLIDEAN).phases.tolist() == [5.0, 0.0]
    manhattan = match_phases(one, other, SimilarityParams())
    assert manhattan.phases.tolist() == [7.0, 0.0]
    # warping matches (0, 0) and (1, 1) with (3, 4), then (1, 1) with (1, 1): 7 + 5 is worse than 7 + 0
    assert manhattan.distance == 7.0
    assert match_phases(one, other, SimilarityParams(cost="squared")).distance == 25.0


def test_unequal_shapes_have_no_euclidean_distance():
    with pytest.raises(ValueError, match="needs equal ones; use match_phases"):
        euclidean(np.zeros((2, 1)), np.zeros((3, 1)))


@pytest.mark.parametrize("params", [EUCLIDEAN, SimilarityParams(), SimilarityParams(cost="squared")])
def test_distances_of_many_runs_are_those_one_by_one(params):
    rng = np.random.default_rng(4)
    runs = [rng.normal(size=(int(rng.integers(1, 6)), 3)) for _ in range(9)]
    one_by_one = np.array([[match_phases(one, other, params).distance for other in runs] for one in runs])
    np.testing.assert_allclose(distances_of_pairs(runs, params), one_by_one, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(distances_between(runs[:2], runs, params), one_by_one[:2], rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_another_library_gives_the_same_distances():
    rng = np.random.default_rng(5)
    runs = [rng.normal(size=(int(rng.integers(1, 5)), 2)) for _ in range(5)]
    other = distances_of_pairs(runs, SimilarityParams(backend="tslearn"))
    np.testing.assert_allclose(distances_of_pairs(runs, SimilarityParams()), other, rtol=1e-12, atol=1e-12)
