import numpy as np
import pytest

from tasks.nodes.ranking import fit_first_component


def test_two_metrics_that_go_together_share_the_component():
    """Both run from -2 to 2: the direction is (1, 1) / √2, and it is all the variance."""
    steps = np.arange(-2.0, 3.0)
    found = fit_first_component(np.column_stack([steps, 10 * steps + 7]))
    assert found.loadings == pytest.approx([np.sqrt(0.5), np.sqrt(0.5)])
    assert found.share == pytest.approx(1)
    scores = found.score(np.array([[2.0, 27.0], [-2.0, -13.0]]))
    assert scores[0] == pytest.approx(-scores[1]) and scores[0] > 0


def test_more_is_better_whichever_way_the_singular_vector_points():
    rng = np.random.default_rng(0)
    for seed in range(10):
        hidden = np.random.default_rng(seed).normal(size=(200, 1))
        found = fit_first_component(hidden + 0.3 * rng.normal(size=(200, 4)))
        assert np.corrcoef(found.score(hidden + np.zeros((200, 4))), hidden[:, 0])[0, 1] > 0.99


def test_what_is_missing_counts_as_the_centre_and_constants_say_nothing():
    values = np.column_stack([np.arange(5.0), np.ones(5)])
    found = fit_first_component(values)
    assert found.loadings == pytest.approx([1, 0])
    assert found.score(np.array([[np.nan, 1.0]])) == pytest.approx([0])


def test_one_odd_node_is_not_the_component():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 3)) * [1, 1, 1] + rng.normal(size=(300, 1)) * [2, 2, 0]
    values[0] = [0, 0, 1e9]
    assert fit_first_component(values).loadings[2] < 0.2


def test_nothing_that_varies_is_one_clear_line():
    with pytest.raises(ValueError, match="none of which varies"):
        fit_first_component(np.ones((5, 2)))
