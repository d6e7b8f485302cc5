"""Shapes and their posterior: by hand, planted, refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tasks.jobs.normalisation import Bins, bins_of
from tasks.jobs.params import BinParams, ShapeParams
from tasks.jobs.shapes import ShapeSet, elbow, fit_shapes, inertia_curve, k_means, log_posterior, rank_by_runs

COUNTS = arrays(np.int64, (4, 6), elements=st.integers(0, 500))
WEIGHTS = arrays(np.int64, (3, 6), elements=st.integers(0, 9)).filter(lambda w: (w.sum(axis=1) > 0).all())


@settings(max_examples=60, deadline=None)
@given(COUNTS, WEIGHTS)
def test_a_posterior_sums_to_one_and_does_not_depend_on_the_other_groups(counts, shapes):
    found = log_posterior(counts, shapes, empty_bin_prior=0.01)
    assert np.exp(found).sum(axis=1) == pytest.approx(np.ones(4))
    assert log_posterior(counts[::-1], shapes, empty_bin_prior=0.01)[::-1] == pytest.approx(found)


def test_thousands_of_runs_do_not_underflow():
    found = log_posterior([[100_000, 0]], [[0.5, 0.5], [0.25, 0.75]], empty_bin_prior=0.0)
    assert np.isfinite(found).all()
    assert found[0, 0] == 0
    assert found[0, 1] == pytest.approx(-100_000 * np.log(2))


def test_for_a_group_without_runs_all_shapes_are_alike():
    found = log_posterior([[0, 0]], [[0.5, 0.5], [0.25, 0.75]], empty_bin_prior=0.0)
    assert np.exp(found) == pytest.approx(np.array([[0.5, 0.5]]))
    assert log_posterior(np.zeros((0, 2)), [[0.5, 0.5]], empty_bin_prior=0.0).shape == (0, 1)


RATIO = bins_of("ratio", BinParams(n_bins=100))
TWO = ShapeParams(k=2)


def test_two_planted_shapes_are_found_and_the_narrow_one_comes_first(planted, counts_of):
    values, groups, kinds = planted()
    fit = fit_shapes(counts_of(values, groups), RATIO, TWO)
    assert fit.labels.tolist() == (1 - kinds).tolist()  # kind 0 is the wide one
    assert fit.shapes.n_groups.tolist() == [15, 15]
    assert fit.shapes.centres.sum(axis=1) == pytest.approx(np.ones(2))


def test_groups_of_little_support_take_no_part_and_have_no_label(planted, counts_of):
    values, groups, _ = planted()
    few = np.flatnonzero(groups == 0)[:-19]
    fit = fit_shapes(counts_of(np.delete(values, few), np.delete(groups, few)), RATIO, TWO)
    assert fit.labels[0] == -1
    assert fit.shapes.n_groups.sum() == 29


def test_the_order_of_groups_changes_no_shape_and_no_label(planted, counts_of):
    values, groups, _ = planted(n_jobs=12)
    counts = counts_of(values, groups)
    order = np.random.default_rng(0).permutation(12)
    first, second = (fit_shapes(some, RATIO, ShapeParams(k=4)) for some in (counts, counts[order]))
    assert (first.shapes.centres == second.shapes.centres).all()
    assert (first.labels[order] == second.labels).all()


def test_table_2_of_a_shape_by_hand(counts_of):
    # shape of group 0: 1 1 1 1, shape of group 1: 0 1 2 3 20
    bins = Bins(kind="ratio", low=0, high=10, n_bins=12)
    values, groups = np.array([0, 1, 2, 3, 20, 1, 1, 1, 1, np.nan]), np.array([0] * 5 + [1] * 5)
    fit = fit_shapes(counts_of(values, groups, bins), bins, ShapeParams(k=2, min_support=4))
    ranked, table = rank_by_runs(fit, values, groups)
    assert ranked.labels.tolist() == [1, 0]
    assert table[["n_groups", "n_runs"]].to_numpy().tolist() == [[1, 4], [1, 5]]
    assert table["outlier_percent"].tolist() == [0, 20]
    assert table["p25_p75"].tolist() == [0, 2]  # 3 - 1
    assert table["p95"].tolist() == [1, pytest.approx(3 + 0.8 * 17)]  # position 0.95 * 4 = 3.8
    # mean 5.2: (27.04 + 17.64 + 10.24 + 4.84 + 219.04) / 4 = 69.7
    assert table["std"].tolist() == [0, pytest.approx(np.sqrt(69.7))]


def test_three_shapes_that_change_places_in_a_ring_keep_what_is_theirs(counts_of):
    bins = Bins(kind="ratio", low=0, high=10, n_bins=12)
    values, groups = np.array([1, 1, 1, 1, 1, 2, 1, 2, 1, 4, 1, 4]), np.repeat(np.arange(3), 4)
    fit = fit_shapes(counts_of(values, groups, bins), bins, ShapeParams(k=3, min_support=4))
    assert fit.labels.tolist() == [0, 1, 2]
    ranked, _ = rank_by_runs(fit, np.array([1, 9, 1, 9, 1, 1, 1, 1, 1, 2, 1, 2]), groups)
    assert ranked.labels.tolist() == [2, 0, 1]
    assert (ranked.shapes.centres[ranked.labels] == fit.shapes.centres[fit.labels]).all()


def test_shapes_survive_their_json(planted, counts_of):
    values, groups, _ = planted(n_jobs=6)
    shapes = fit_shapes(counts_of(values, groups), RATIO, TWO).shapes
    back = ShapeSet.from_json(shapes.to_json())
    assert back.bins == shapes.bins
    assert (back.centres == shapes.centres).all()
    assert (back.n_groups == shapes.n_groups).all()
    assert back.inertia == shapes.inertia


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"bins": {"kind": "x"}, "n_groups": []}', "null"])
def test_json_of_something_else_is_refused(text):
    with pytest.raises((ValueError, KeyError, TypeError)):
        ShapeSet.from_json(text)


def test_inertia_by_hand_counts_equal_groups_each():
    # the centre is (3/4, 1/4, 0), each of the four at a squared distance of 1/16 + 1/16
    pmfs = np.array([[1, 0, 0], [1, 0, 0], [0.5, 0.5, 0], [0.5, 0.5, 0]])
    labels, centres, inertia = k_means(pmfs, 1)
    assert labels.tolist() == [0] * 4
    assert centres.tolist() == [[0.75, 0.25, 0]]
    assert inertia == pytest.approx(4 * (1 / 16 + 1 / 16))


def test_the_elbow_is_the_point_furthest_below_the_chord():
    # scaled: (0, 1) (1/3, 0.2) (2/3, 0.1) (1, 0); 1 - x - y: 0, 0.47, 0.23, 0
    assert elbow([1, 2, 3, 4], [10.0, 2.0, 1.0, 0.0]) == 2
    assert elbow([1, 2, 3], [3.0, 2.0, 1.0]) is None  # straight
    assert elbow([1, 2], [3.0, 1.0]) is None
    assert elbow([1, 2, 3], [0.0, 0.0, 0.0]) is None


def test_the_inertia_curve_of_two_planted_shapes_bends_at_two(planted, counts_of):
    values, groups, _ = planted()
    curve = inertia_curve(counts_of(values, groups), RATIO, ShapeParams())
    assert curve.ks == list(range(1, 13))
    assert curve.elbow == 2
    assert curve.inertias == sorted(curve.inertias, reverse=True)
