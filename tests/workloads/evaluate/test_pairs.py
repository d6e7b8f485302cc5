import numpy as np
import pytest

from tasks.workloads.evaluate.pairs import DIFFERENT, SAME, binary_scores, differences, draw_pairs, truth_of


def test_as_many_pairs_are_the_same_as_different():
    labels = list("aaabbc")
    pairs = draw_pairs(labels, 100, np.random.default_rng(0))
    truth = truth_of(labels, pairs)
    assert truth.count(SAME) == truth.count(DIFFERENT) == 4
    assert len({tuple(pair) for pair in pairs.tolist()}) == 8
    assert (pairs[:, 0] < pairs[:, 1]).all()


def test_pairs_are_drawn_up_to_a_bound():
    assert len(draw_pairs(["a", "b"] * 50, 20, np.random.default_rng(0))) == 20


@pytest.mark.parametrize("labels", [["a", "a"], ["a", "b"], ["a"]])
def test_without_pairs_of_both_kinds_there_are_none(labels):
    assert len(draw_pairs(labels, 10, np.random.default_rng(0))) == 0


def test_a_pair_is_how_far_its_runs_lie_apart_whichever_comes_first():
    features = np.array([[1.0, 5.0], [4.0, 3.0]])
    np.testing.assert_array_equal(differences(features, np.array([[0, 1], [1, 0]])), [[3, 2], [3, 2]])


def test_binary_scores_by_hand():
    found = binary_scores([SAME, SAME, DIFFERENT, DIFFERENT], [SAME, DIFFERENT, SAME, DIFFERENT])
    assert found == {"accuracy": 0.5, "precision": 0.5, "recall": 0.5, "f1": 0.5}
