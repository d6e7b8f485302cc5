"""Components: normal scores by hand, noise that one tool shares with itself alone, and what one odd node may not do."""

import numpy as np
import pytest

from tasks.nodes.ranking.components import fit_first_component, fit_shared_component, normal_scores

TYPES = (*(f"fio-{at}" for at in range(8)), "sysbench-cpu", "sysbench-memory", "osbench-files", "osbench-threads")


def drawn(n=600, seed=0):
    """Quality (n,), and what the types measure of it (n, 12): eight share a noise larger than quality."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=n)
    values = quality[:, None] + rng.normal(size=(n, len(TYPES)))
    values[:, :8] += 3 * rng.normal(size=(n, 1))
    return quality, values


def followed(scores, quality):
    return float(np.corrcoef(scores, quality)[0, 1])


def test_the_normal_score_of_a_value_among_three():
    """Of 1, 2, 3: p of 2 is (1 + 1/2 + 1/2) / 4 = 1/2; of what lies below all 1/8, above all 7/8; of 3 it is 3/4."""
    found = normal_scores(np.array([[2.0], [0.0], [9.0], [3.0], [np.nan]]), (np.array([1.0, 2, 3]),))
    np.testing.assert_allclose(found[:, 0], [0, -1.150349, 1.150349, 0.674490, 0], atol=1e-6)
    np.testing.assert_array_equal(normal_scores(np.array([[5.0]]), (np.empty(0),)), [[0]])


def test_noise_that_one_tool_shares_is_not_what_tools_have_in_common():
    quality, values = drawn()
    component = fit_first_component(values[:300]).score(values[300:])
    shared = fit_shared_component(values[:300], TYPES).score(values[300:])
    assert followed(component, quality[300:]) < 0.6  # it follows fio
    assert followed(shared, quality[300:]) > 0.8


def test_the_scale_of_a_type_does_not_matter_nor_do_long_tails():
    _, values = drawn(200)
    stretched = np.exp(3 * values)
    before, after = (fit_shared_component(each, TYPES).score(each) for each in (values, stretched))
    np.testing.assert_allclose(before, after, atol=1e-9)


def test_a_type_that_tells_the_opposite_is_turned_round():
    _, values = drawn(200)
    turned = values * np.where(np.arange(12) == 8, -1, 1)
    before, after = (fit_shared_component(each, TYPES).score(each) for each in (values, turned))
    np.testing.assert_allclose(before, after, atol=1e-9)
    assert followed(after, values.mean(axis=1)) > 0


def test_a_type_that_few_nodes_ran_or_that_is_always_alike_says_nothing():
    _, values = drawn(200)
    values[:120, 9], values[:, 10] = np.nan, 7.0
    found = fit_shared_component(values, TYPES)
    assert found.weights[9] == found.weights[10] == 0
    assert (found.weights[[8, 11]] != 0).all()
    with pytest.raises(ValueError, match="none of which varies"):
        fit_shared_component(np.ones((5, 2)), ("a-1", "b-1"))


def test_a_node_of_which_a_type_is_missing_is_scored_by_the_others():
    _, values = drawn(200)
    asked = values[:1].copy()
    asked[0, 8] = np.nan
    found = fit_shared_component(values, TYPES)
    middle = values[:1].copy()
    middle[0, 8] = np.median(values[:, 8])
    np.testing.assert_allclose(found.score(asked), found.score(middle), atol=0.01)


def test_of_one_tool_alone_types_are_weighed_one_by_one():
    """One group would have no others to agree with: the direction would be any. Six types of like quality are alike."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(800, 1)) + rng.normal(size=(800, 6))
    weights = fit_shared_component(values, [f"fio-{at}" for at in range(6)]).weights
    assert weights.min() > 0.8 * weights.max() > 0


def test_two_metrics_that_go_together_share_the_component():
    """Both run from -2 to 2: the direction is (1, 1) / √2, and it is all the variance."""
    steps = np.arange(-2.0, 3.0)
    found = fit_first_component(np.column_stack([steps, 10 * steps + 7]))
    assert found.loadings == pytest.approx([np.sqrt(0.5), np.sqrt(0.5)])
    scores = found.score(np.array([[2.0, 27.0], [-2.0, -13.0]]))
    assert scores[0] == pytest.approx(-scores[1]) and scores[0] > 0


def test_more_is_better_whichever_way_the_singular_vector_points():
    rng = np.random.default_rng(0)
    for seed in range(10):
        hidden = np.random.default_rng(seed).normal(size=(200, 1))
        found = fit_first_component(hidden + 0.3 * rng.normal(size=(200, 4)))
        assert np.corrcoef(found.score(hidden + np.zeros((200, 4))), hidden[:, 0])[0, 1] > 0.99


def test_one_odd_node_is_not_the_component():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 3)) * [1, 1, 1] + rng.normal(size=(300, 1)) * [2, 2, 0]
    values[0] = [0, 0, 1e9]
    assert fit_first_component(values).loadings[2] < 0.2


def test_nothing_that_varies_is_one_clear_line():
    with pytest.raises(ValueError, match="none of which varies"):
        fit_first_component(np.ones((5, 2)))
