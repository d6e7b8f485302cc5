import numpy as np
import pytest

from tasks.workloads.similarity.params import SimilarityParams
from tasks.workloads.similarity.subsequence import euclidean, match_phases

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
