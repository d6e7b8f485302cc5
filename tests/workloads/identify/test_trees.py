import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.workloads.identify.params import TreeParams
from tasks.workloads.identify.trees import fit_trees, trees_from

PARAMS = TreeParams(rounds=20, seeds=2, feature_fraction=0.5)
LABELS = ["a"] * 8 + ["b"] * 8 + ["c"] * 4


def table(rng=None):
    rng = rng or np.random.default_rng(1)
    features = rng.normal(size=(20, 6))
    features[8:16, 0] += 8
    features[16:, 1] += 8
    features[:, 5] = 3  # never varies
    return features


def test_trees_tell_apart_what_one_feature_tells_apart():
    trees = fit_trees(table(), LABELS, PARAMS, 0)
    found = trees.probabilities(table(np.random.default_rng(2)))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    told = [trees.classes[at] for at in found.argmax(axis=1)]
    assert np.mean([one == truth for one, truth in zip(told, LABELS, strict=True)]) >= 0.9
    assert all(own.tolist() == [0, 1, 2, 3, 4] for own in trees.columns)


def test_columns_that_are_learned_apart_weigh_the_same_however_many_they_are():
    """One column tells a from the rest, a hundred others say nothing: apart, the one keeps half of the word."""
    rng = np.random.default_rng(5)
    features = np.column_stack([table(), rng.normal(size=(20, 100))])
    views = (np.array([0]), np.arange(6, 106))
    apart = fit_trees(features, LABELS, PARAMS, 0, views)
    assert [own.tolist() for own in apart.columns[:: PARAMS.seeds]] == [[0], list(range(6, 106))]
    each = [fit_trees(features[:, own], LABELS, PARAMS, 0).probabilities(features[:, own]) for own in views]
    np.testing.assert_allclose(apart.probabilities(features), np.mean(each, axis=0))


def test_the_same_seed_gives_the_same_trees_and_another_one_others():
    one, same, other = (fit_trees(table(), LABELS, PARAMS, seed).texts for seed in (3, 3, 30))
    assert one == same and one != other


def test_a_rare_workload_weighs_as_much_as_the_others():
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.normal(size=(90, 1)), rng.normal(0.5, 1, size=(6, 1))])
    labels = ["a"] * 90 + ["b"] * 6
    shares = [
        fit_trees(features, labels, PARAMS.model_copy(update={"is_balanced": is_balanced}), 0)
        .probabilities(features)[:, 1]
        .mean()
        for is_balanced in (True, False)
    ]
    assert shares[0] > 2 * shares[1]


def test_one_workload_or_features_that_never_vary_leave_nothing_to_ask():
    assert fit_trees(table(), ["a"] * 20, PARAMS, 0).probabilities(table()).tolist() == [[1.0]] * 20
    same = fit_trees(np.ones((20, 2)), LABELS, PARAMS, 0)
    np.testing.assert_allclose(same.probabilities(np.zeros((1, 2))), [[1 / 3] * 3])


def test_texts_of_another_model_are_refused():
    trees = fit_trees(table(), LABELS, PARAMS, 0)
    with pytest.raises(BadInput, match="features"):
        trees_from(trees.classes, tuple(own[:2] for own in trees.columns), trees.texts)
    with pytest.raises(BadInput, match="trees for 3 workloads beside the names of 2"):
        trees_from(("a", "b"), trees.columns, trees.texts)
    with pytest.raises(BadInput, match="training runs: none"):
        fit_trees(np.zeros((0, 2)), [], PARAMS, 0)
