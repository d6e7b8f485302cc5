"""The forest: against Meinshausen's weights by hand, and through files."""

import numpy as np
import pandas as pd
import pytest

from tasks.boosters import matrix
from tasks.errors import BadInput
from tasks.jobs.predict.forest import ATOMS, LEAVES, N_ATOMS, TREES, Forest, fit_forest, weighted_quantiles

N_LEVELS = 100


@pytest.fixture(scope="module")
def drawn():
    """Features, of which the first tells the value, some of them missing; and values."""
    rng = np.random.default_rng(0)
    features = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    values = features["a"].to_numpy() + 0.3 * rng.normal(size=300)
    return features.mask(rng.random((300, 4)) < 0.05), values


@pytest.fixture(scope="module")
def forest(drawn):
    """Five trees of the drawn values."""
    return fit_forest(*drawn, n_trees=5, seed=1)


def test_the_distribution_of_a_row_weighs_training_runs_as_meinshausen_does(drawn, forest):
    features, values = drawn
    assert len(forest.atoms) == 300 < N_ATOMS  # so each run is an atom of its own
    rows = features.iloc[:40]
    training, submitted = forest.leaves_of(features), forest.leaves_of(rows)
    ordered = np.argsort(values)
    quantiles = forest.quantiles(rows, N_LEVELS)
    levels = (np.arange(N_LEVELS) + 0.5) / N_LEVELS
    for row in range(len(rows)):
        is_beside = training == submitted[row]  # (300, 5)
        weights = (is_beside / is_beside.sum(axis=0)).mean(axis=1)  # Meinshausen 2006, eq. 4 and 5
        upto = np.cumsum(weights[ordered])
        expected = [values[ordered][np.flatnonzero(upto >= level - 1e-9)[0]] for level in levels]
        np.testing.assert_allclose(quantiles[row], expected)


def test_leaves_and_means_are_those_of_the_trees(drawn, forest):
    features, _ = drawn
    np.testing.assert_array_equal(forest.leaves_of(features), forest.leaves)
    by_tree = forest.booster.predict(matrix(features[:3]))
    np.testing.assert_allclose(forest.mean(features[:3]), by_tree)


def test_a_row_is_predicted_alike_alone_and_among_thousands(drawn, forest):
    features, _ = drawn
    many = pd.concat([features] * 8, ignore_index=True)
    together = forest.quantiles(many, N_LEVELS)
    for row in (0, 999, 1_000, 2_399):
        np.testing.assert_array_equal(together[row], forest.quantiles(many.iloc[[row]], N_LEVELS)[0])


def test_many_values_stand_as_a_few_hundred_and_lose_little():
    rng = np.random.default_rng(2)
    values = rng.normal(size=5_000)
    forest = fit_forest(pd.DataFrame({"x": np.zeros(5_000)}), values, n_trees=2, seed=0)
    assert len(forest.atoms) == N_ATOMS
    quantiles = forest.quantiles(pd.DataFrame({"x": [0.0]}), N_LEVELS)[0]
    expected = np.quantile(values, (np.arange(N_LEVELS) + 0.5) / N_LEVELS)
    np.testing.assert_allclose(quantiles[5:-5], expected[5:-5], atol=0.03)


@pytest.mark.parametrize("n", [1, 2, 10, 50])
def test_values_that_are_all_the_same_have_one_quantile(n):
    features = pd.DataFrame({"x": np.arange(n, dtype=float), "y": np.nan})
    forest = fit_forest(features, np.full(n, 3.5), n_trees=4, seed=0)
    assert (forest.quantiles(features, N_LEVELS) == 3.5).all()


def test_the_same_runs_give_the_same_bits(drawn, forest):
    again = fit_forest(*drawn, n_trees=5, seed=1)
    assert again.quantiles(drawn[0], N_LEVELS).tobytes() == forest.quantiles(drawn[0], N_LEVELS).tobytes()


def test_no_rows_have_no_quantiles_and_no_forest(drawn, forest):
    features, _ = drawn
    assert forest.quantiles(features[:0], N_LEVELS).shape == (0, N_LEVELS)
    assert forest.leaves_of(features[:0]).shape == (0, 5)
    assert forest.mean(features[:0]).shape == (0,)
    with pytest.raises(BadInput, match="training rows"):
        fit_forest(features[:0], np.zeros(0), n_trees=5, seed=1)


def test_a_forest_comes_back_from_its_files_with_the_same_numbers(drawn, forest, tmp_path):
    forest.save(tmp_path)
    back = Forest.load(tmp_path, 4)
    np.testing.assert_array_equal(back.quantiles(drawn[0], N_LEVELS), forest.quantiles(drawn[0], N_LEVELS))
    np.testing.assert_array_equal(back.mean(drawn[0]), forest.mean(drawn[0]))


def shorten(file):
    file.write_bytes(file.read_bytes()[:-200])


def one_leaf_too_many(file):
    leaves = pd.read_parquet(file)
    leaves.assign(tree_0=10_000).to_parquet(file)


def one_tree_less(file):
    pd.read_parquet(file).drop(columns="tree_0").to_parquet(file)


def few_atoms(file):
    pd.read_parquet(file)[:10].to_parquet(file)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *[(name, shorten) for name in (TREES, LEAVES, ATOMS)],
        *[(name, lambda file: file.unlink()) for name in (TREES, LEAVES, ATOMS)],
        *[(name, lambda file: file.write_bytes(b"")) for name in (TREES, LEAVES, ATOMS)],
        (LEAVES, one_leaf_too_many),
        (LEAVES, one_tree_less),
        (LEAVES, lambda file: pd.DataFrame({"x": [1]}).to_parquet(file)),
        (ATOMS, few_atoms),
        (ATOMS, lambda file: pd.DataFrame({"value": ["a"] * 300}).to_parquet(file)),
    ],
)
def test_damaged_files_are_refused(forest, tmp_path, name, damage):
    forest.save(tmp_path)
    damage(tmp_path / name)
    with pytest.raises((BadInput, OSError, ValueError, KeyError)):
        Forest.load(tmp_path, 4)


def test_trees_of_other_features_are_refused(forest, tmp_path):
    forest.save(tmp_path)
    with pytest.raises(BadInput, match="trees of 4 features beside the names of 3"):
        Forest.load(tmp_path, 3)


def test_weighted_quantiles_are_the_first_values_whose_weights_reach_the_level():
    values = np.array([1.0, 2, 5])
    weights = np.array([[0.25, 0.5, 0.25], [0, 0, 1], [0.125, 0, 0.875]])  # levels 1/8, 3/8, 5/8, 7/8
    assert weighted_quantiles(values, weights, 4).tolist() == [[1, 2, 2, 5], [5, 5, 5, 5], [1, 5, 5, 5]]
    own = np.array([[1.0, 2, 5], [7, 8, 9], [3, 4, 6]])
    assert weighted_quantiles(own, weights, 4).tolist() == [[1, 2, 2, 5], [9, 9, 9, 9], [3, 6, 6, 6]]


def test_weights_that_rounding_left_short_of_one_still_have_every_level():
    weights = np.full((1, 10), 0.1)
    assert weighted_quantiles(np.arange(10.0), weights, 5).tolist() == [[0, 2, 4, 6, 8]]
    assert weighted_quantiles(np.arange(10.0), weights * (1 - 1e-9), 1_000).max() == 9
    assert weighted_quantiles(np.arange(10.0), weights * (1 + 1e-9), 1_000).shape == (1, 1_000)
