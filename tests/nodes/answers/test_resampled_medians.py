"""Medians of resamples: their exact distribution on two and three values, and against resamples that are drawn."""

import numpy as np
import pytest

from tasks.nodes.ranking import resampled_medians

MANY = 200_000


def shares(values, n_drawn):
    found = resampled_medians(np.asarray(values, dtype=float), n_drawn, MANY, np.random.default_rng(0))
    levels, counts = np.unique(found, return_counts=True)
    return levels.tolist(), counts / MANY


def test_of_three_values_the_middle_one_is_the_median_in_13_of_27_resamples():
    """The smallest is, if two or three of three draws are it: 3 (1/3)² (2/3) + (1/3)³ = 7/27; so is the largest."""
    levels, found = shares([3, 1, 2], 3)
    assert levels == [1, 2, 3]
    assert found == pytest.approx([7 / 27, 13 / 27, 7 / 27], abs=0.005)


def test_of_two_values_half_the_resamples_have_their_mean():
    levels, found = shares([0, 1], 2)
    assert levels == [0, 0.5, 1]
    assert found == pytest.approx([0.25, 0.5, 0.25], abs=0.005)


@pytest.mark.parametrize("n_drawn", [1, 2, 5, 8])
def test_the_distribution_is_that_of_resamples_which_are_drawn(n_drawn):
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    rng = np.random.default_rng(1)
    drawn = np.median(values[rng.integers(5, size=(50_000, n_drawn))], axis=1)
    found = resampled_medians(values, n_drawn, 50_000, rng)
    for level in (1.5, 3.5, 7.0, 13.0):
        assert (found < level).mean() == pytest.approx((drawn < level).mean(), abs=0.015)


def test_nothing_to_draw_from_is_an_error():
    with pytest.raises(ValueError, match="0 values"):
        resampled_medians(np.zeros(0), 1, 10, np.random.default_rng(0))
