"""F1 with a margin and covering, worked out by hand."""

import pytest

from tasks.workloads.changepoints.scores import covering_of, f1_of, n_hits


def test_each_found_point_is_taken_once_and_within_five_samples():
    assert n_hits([0, 20], [0, 25]) == 2
    assert n_hits([0, 20], [0, 26]) == 1
    assert n_hits([18, 22], [20]) == 1
    assert n_hits([18, 22], [19, 23]) == 2


def test_f1_by_hand():
    # found {0, 30, 70}; annotators {0, 31} and {0}: union {0, 31}, precision 2/3, recall (2/2 + 1/1) / 2 = 1
    assert f1_of([[31], []], [30, 70]) == pytest.approx(2 * (2 / 3) / (5 / 3))


def test_nothing_found_where_nothing_is_marked_is_perfect():
    assert f1_of([[], []], []) == 1
    assert covering_of([[], []], [], 50) == 1


def test_covering_by_hand():
    # annotated [0, 40) and [40, 100); found [0, 50) and [50, 100): 0.4 * 40/50 + 0.6 * 50/60
    assert covering_of([[40]], [50], 100) == pytest.approx(0.4 * 0.8 + 0.6 * 5 / 6)
    # and one annotator more who marked nothing: best Jaccard 1/2
    assert covering_of([[40], []], [50], 100) == pytest.approx((0.4 * 0.8 + 0.6 * 5 / 6 + 0.5) / 2)


def test_the_start_and_the_end_of_the_series_are_no_changes():
    assert covering_of([[40]], [0, 40, 100], 100) == 1
    assert f1_of([[0, 40]], [40]) == 1
