"""Isolation trees: scikit-learn's own, and values worked out by hand."""

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest

from tasks.nodes.detectors.isolation_trees import DRAWN, grow_forest, isolation_scores, usual_lengths


def scores_of(ready, trees=20, seed=3, asked=None):
    return isolation_scores(grow_forest(ready, trees, seed), ready if asked is None else asked)


def drawn(n, m, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m)).astype(np.float32)


def with_constants(ready):
    """One metric never varies, one hardly ever, one has two values."""
    ready = ready.copy()
    ready[:, 0], ready[:, 1], ready[:, 2] = 1.0, np.arange(len(ready)) == 5, ready[:, 2] > 0
    return ready


@pytest.mark.parametrize("n", [8, 9, 200, DRAWN + 1, 1000])
@pytest.mark.parametrize("m", [1, 4, 30])
def test_the_trees_are_those_of_scikit_learn(n, m):
    """The same draws in the same order: other splits would differ in the third digit."""
    ready, asked = drawn(n, m), 2 * drawn(50, m, seed=1)
    theirs = IsolationForest(n_estimators=20, random_state=3).fit(ready)
    np.testing.assert_allclose(scores_of(ready, asked=asked), -theirs.score_samples(asked), rtol=1e-12)


def test_so_they_are_where_metrics_are_constant():
    ready = with_constants(drawn(300, 6))
    theirs = IsolationForest(n_estimators=50, random_state=7).fit(ready)
    np.testing.assert_allclose(scores_of(ready, 50, 7), -theirs.score_samples(ready), rtol=1e-12)


def test_the_usual_path_of_three_rows_is_five_thirds():
    """One of three is alone after one split, the others after two: 5/3; the formula's harmonic number is about that."""
    assert usual_lengths(3).tolist() == pytest.approx([0, 0, 1, 2 * (np.log(2) + np.euler_gamma) - 4 / 3])
    assert len(usual_lengths(DRAWN)) == DRAWN + 1


def test_rows_that_are_all_alike_are_as_usual():
    """No split: each path is the usual one, 2^-1."""
    assert scores_of(np.full((50, 3), 2.0, dtype=np.float32)) == pytest.approx([0.5] * 50)


def test_a_row_far_from_the_others_is_soon_alone():
    ready = drawn(200, 3)
    ready[17] = 30
    found = scores_of(ready)
    assert found.argmax() == 17 and found[17] > 0.7 > np.delete(found, 17).max()


def test_the_same_seed_grows_the_same_trees_and_another_seed_others():
    ready = drawn(100, 3)
    np.testing.assert_array_equal(scores_of(ready), scores_of(ready))
    assert not np.array_equal(scores_of(ready), scores_of(ready, seed=4))


def test_growing_changes_nothing_of_what_it_is_given():
    ready = drawn(100, 3)
    before = ready.copy()
    scores_of(ready)
    np.testing.assert_array_equal(ready, before)
