"""The Bayes factor of two shapes against one."""

import numpy as np
import pytest

from tasks.jobs.outlook.shape_change import log_bayes_factors
from tasks.jobs.pmf import Bins
from tasks.jobs.shapes import ShapeSet

BINS = Bins(kind="ratio", low=0, high=3, n_bins=3)


def shapes_of(*centres):
    k = len(centres)
    return ShapeSet(BINS, np.array(centres, dtype=float), np.full(k, 1 / k), np.full(k, 10), 0.0)


TWO = shapes_of([0.5, 0.25, 0.25], [0.25, 0.25, 0.5])


def factor(before, after, shapes=TWO, **kwargs):
    return np.exp(log_bayes_factors([before], [after], shapes, empty_bin_prior=0, **kwargs))[0]


def test_one_run_on_each_side_by_hand():
    # before in bin 1: L = 1/2, 1/4; since in bin 3: M = 1/4, 1/2
    # one shape: (1/2 1/4 + 1/4 1/2) / 2 = 1/8; two: (1/2 1/2 + 1/4 1/4) / 2 = 5/32; 5/4 times likelier
    assert factor([1, 0, 0], [0, 0, 1]) == pytest.approx(5 / 4)
    # both in bin 1: one: (1/4 + 1/16) / 2, two: (1/8 + 1/8) / 2
    assert factor([1, 0, 0], [1, 0, 0]) == pytest.approx(4 / 5)


def test_a_prior_weighs_the_shapes_by_hand():
    # p = 3/4, 1/4; one: 3/4 1/2 1/4 + 1/4 1/4 1/2 = 1/8; two: 3/16 (1/4 + 1/16) / (1 - 10/16) = 5/32
    assert factor([1, 0, 0], [0, 0, 1], prior=[3, 1]) == pytest.approx(5 / 4)


@pytest.mark.parametrize(("before", "after"), [([0, 0, 0], [5, 1, 0]), ([5, 1, 0], [0, 0, 0]), ([0, 4, 0], [0, 2, 0])])
def test_no_runs_and_runs_that_tell_nothing_are_no_evidence(before, after):
    assert factor(before, after) == pytest.approx(1)


def test_evidence_grows_with_the_runs_on_both_sides():
    found = [factor([n, 0, 0], [0, 0, n]) for n in (1, 2, 5, 10)]
    assert found == sorted(found)
    # many runs: (1 / 2)^2n against 2 (1 / 8)^n / 2 … each pair of runs adds log 2
    assert factor([40, 0, 0], [0, 0, 40]) == pytest.approx(2**40 / 2, rel=1e-6)


def test_before_and_since_can_change_places():
    shapes = shapes_of([0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8])
    assert factor([5, 3, 1], [0, 4, 4], shapes) == pytest.approx(factor([0, 4, 4], [5, 3, 1], shapes))


def test_a_single_shape_leaves_nothing_to_change_to():
    assert factor([5, 1, 0], [0, 1, 5], shapes_of([0.4, 0.3, 0.3])) == 0


def test_thousands_of_runs_stay_finite():
    assert np.isfinite(log_bayes_factors([[90_000, 0, 0]], [[0, 0, 90_000]], TWO, empty_bin_prior=0.001)).all()


def test_many_groups_are_answered_like_one_by_one():
    rng = np.random.default_rng(0)
    before, after = rng.poisson(3, (2500, 3)), rng.poisson(3, (2500, 3))
    together = log_bayes_factors(before, after, TWO, empty_bin_prior=0.001)
    one = [log_bayes_factors(before[[i]], after[[i]], TWO, empty_bin_prior=0.001)[0] for i in (0, 999, 1000, 2499)]
    assert together[[0, 999, 1000, 2499]] == pytest.approx(one)


def test_runs_drawn_from_one_shape_seldom_speak_for_two():
    rng = np.random.default_rng(5)
    before, after = (rng.multinomial(n, TWO.centres[0], 4000) for n in (30, 10))
    found = log_bayes_factors(before, after, TWO, empty_bin_prior=0.001)
    # a factor of 10 comes at most once in ten times if there is one shape: Markov's inequality
    assert (found >= np.log(10)).mean() < 0.1
    changed = log_bayes_factors(before, rng.multinomial(10, TWO.centres[1], 4000), TWO, empty_bin_prior=0.001)
    assert changed.mean() > found.mean() + 1
