"""Runtimes by shapes, worked out by hand: the most probable one, the mixture, and the one that leans on history."""

import numpy as np
import pytest

from tasks.jobs.binned import Tails
from tasks.jobs.pmf import Bins
from tasks.jobs.predict.shape_predictions import predict_by_shapes
from tasks.jobs.shapes import ShapeSet

RATIO = Bins(kind="ratio", low=0, high=2, n_bins=4)  # 0 s; below the median; up to twice; beyond
DELTA = Bins(kind="delta", low=-4, high=4, n_bins=4)  # below -4 s; -4 to 0; 0 to 4; above 4 s
CENTRES = np.array([[0, 0.75, 0.25, 0], [0, 0.25, 0.75, 0]])
P = np.array([[0.6, 0.4], [0.1, 0.9]])
MEDIANS = np.array([10.0, 100.0])


def predict(variant, bins=RATIO, *, own=None, prior=0.0, centres=CENTRES):
    shapes = ShapeSet(bins, centres, np.array([0.5, 0.5]), np.array([3, 1]), 0.0)
    return predict_by_shapes(variant, shapes, P, MEDIANS, Tails(), own=own, empty_bin_prior=prior)


def test_the_hard_label_is_the_most_probable_shape_alone():
    told = predict("hard")
    assert told.cdf(np.array([10.0, 100.0])) == pytest.approx([0.75, 0.25])
    assert told.cdf(np.array([20.0, 200.0])) == pytest.approx([1, 1])


def test_the_mixture_weighs_shapes_by_their_probability():
    # 0.6 · 0.75 + 0.4 · 0.25 and 0.1 · 0.75 + 0.9 · 0.25
    assert predict("soft").cdf(np.array([10.0, 100.0])) == pytest.approx([0.55, 0.3])


def test_leaning_counts_own_runs_against_twenty_of_the_mixture():
    own = np.array([[0.0, 0, 30, 0], [0, 0, 0, 0]])
    # (0 + 20 · 0.55) / 50; the second job has no run of its own
    assert predict("leaning", own=own).cdf(np.array([10.0, 100.0])) == pytest.approx([0.22, 0.3])


def test_as_own_runs_gather_the_prediction_becomes_theirs():
    own = np.array([[0.0, 1e6, 0, 0], [0, 1e6, 1e6, 0]])
    assert predict("leaning", own=own).cdf(np.array([10.0, 100.0])) == pytest.approx([1, 0.5], abs=1e-4)


def test_without_own_runs_leaning_is_the_mixture():
    at = np.array([7.0, 130.0])
    assert predict("leaning").cdf(at) == pytest.approx(predict("soft").cdf(at))
    assert predict("leaning", own=np.zeros((2, 4))).cdf(at) == pytest.approx(predict("soft").cdf(at))


@pytest.mark.parametrize("variant", ["hard", "soft", "leaning"])
def test_deltas_are_added_to_the_median(variant):
    told = predict(variant, DELTA, own=np.zeros((2, 4)))
    below = {"hard": [0.75, 0.25]}.get(variant, [0.55, 0.3])
    assert told.cdf(MEDIANS) == pytest.approx(below)
    assert told.cdf(MEDIANS - 4) == pytest.approx([0, 0])
    assert told.cdf(MEDIANS + 4) == pytest.approx([1, 1])


@pytest.mark.parametrize("variant", ["hard", "soft", "leaning"])
def test_runs_of_no_length_count_with_the_shortest_bin_of_a_ratio(variant):
    centres = np.array([[0.5, 0.25, 0.25, 0]] * 2)
    told = predict(variant, centres=centres, own=np.zeros((2, 4)))
    assert told.cdf(MEDIANS) == pytest.approx([0.75, 0.75])
    assert told.cdf(np.zeros(2)) == pytest.approx([0, 0])


def test_a_share_spread_over_all_bins_makes_nothing_impossible():
    told = predict("hard", prior=0.4)
    # 0.6 · 0.75 + 0.4 · 2/4: the bin of 0 s and that below the median
    assert told.cdf(np.array([10.0, 100.0])) == pytest.approx([0.65, 0.35])
    assert told.cdf(np.array([20.0, 200.0])) == pytest.approx([0.9, 0.9])
    assert np.isfinite(told.log_density(np.array([25.0, 250.0]))).all()
