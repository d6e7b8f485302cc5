"""The posterior of shapes: properties, cases with known truth, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tasks.errors import BadInput, BadSetting
from tasks.jobs.posterior import flat_log_posterior, hard_labels, log_posterior, log_shapes, prior_weights

COUNTS = arrays(np.int64, (4, 6), elements=st.integers(0, 500))
WEIGHTS = arrays(np.int64, (3, 6), elements=st.integers(0, 9)).filter(lambda w: (w.sum(axis=1) > 0).all())


@settings(max_examples=60, deadline=None)
@given(COUNTS, WEIGHTS)
def test_a_posterior_sums_to_one_and_does_not_depend_on_the_other_groups(counts, shapes):
    found = log_posterior(counts, shapes, empty_bin_prior=0.01)
    assert np.exp(found).sum(axis=1) == pytest.approx(np.ones(4))
    assert log_posterior(counts[::-1], shapes, empty_bin_prior=0.01)[::-1] == pytest.approx(found)


@settings(max_examples=60, deadline=None)
@given(COUNTS, WEIGHTS)
def test_shares_give_the_posterior_s_best_shape_and_are_never_sharper(counts, shapes):
    sharp = log_posterior(counts, shapes, empty_bin_prior=0.01)
    flat = flat_log_posterior(counts, shapes, empty_bin_prior=0.01)
    best = sharp[np.arange(4), hard_labels(flat)]
    assert best == pytest.approx(sharp.max(axis=1))  # the same label, or an equally probable one
    assert (flat.max(axis=1) <= sharp.max(axis=1) + 1e-9).all()


def test_the_right_shape_is_found_more_often_the_more_runs_there_are():
    rng = np.random.default_rng(3)
    shapes = np.array([[0.3, 0.4, 0.2, 0.1], [0.2, 0.4, 0.3, 0.1]])
    truth = rng.integers(0, 2, 1000)
    hits = []
    for n_runs in (3, 30, 300):
        counts = np.stack([rng.multinomial(n_runs, shapes[z]) for z in truth])
        hits.append((hard_labels(log_posterior(counts, shapes, empty_bin_prior=0.001)) == truth).mean())
    assert hits[0] + 0.1 < hits[1] < hits[2]
    assert hits[2] > 0.98


def test_the_posterior_is_calibrated_when_runs_come_from_the_shapes():
    """Of the groups given about 80 %, about 80 % are right; with shares for counts it would be far more."""
    rng = np.random.default_rng(4)
    shapes = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3]])
    truth = rng.integers(0, 2, 4000)
    counts = np.stack([rng.multinomial(12, shapes[z]) for z in truth])
    found = log_posterior(counts, shapes, empty_bin_prior=1e-9)
    assert np.exp(found.max(axis=1)).mean() == pytest.approx((hard_labels(found) == truth).mean(), abs=0.02)


def test_thousands_of_runs_do_not_underflow():
    found = log_posterior([[100_000, 0]], [[0.5, 0.5], [0.25, 0.75]], empty_bin_prior=0.0)
    assert np.isfinite(found).all()
    assert found[0, 0] == 0
    assert found[0, 1] == pytest.approx(-100_000 * np.log(2))


def test_a_group_without_runs_has_the_prior():
    found = log_posterior([[0, 0]], [[0.5, 0.5], [0.25, 0.75]], empty_bin_prior=0.0, prior=[3, 1])
    assert np.exp(found) == pytest.approx(np.array([[0.75, 0.25]]))
    assert prior_weights("size", [3, 1]).tolist() == [0.75, 0.25]
    assert prior_weights("uniform", [3, 1]).tolist() == [0.5, 0.5]
    assert log_posterior(np.zeros((0, 2)), [[0.5, 0.5]], empty_bin_prior=0.0).shape == (0, 1)


def test_what_is_refused_is_said_in_one_line():
    with pytest.raises(
        BadSetting, match=r"^empty_bin_prior 0: a shape has an empty bin; set it above 0, such as 0.001$"
    ):
        log_shapes([[1, 0]], empty_bin_prior=0.0)
    with pytest.raises(BadSetting, match=r"^empty_bin_prior 1: expected a probability from 0 to below 1$"):
        log_shapes([[1, 0]], empty_bin_prior=1.0)
    with pytest.raises(BadInput, match=r"^counts: 3 bins; expected the 2 of the shapes$"):
        log_posterior([[1, 2, 3]], [[0.5, 0.5]], empty_bin_prior=0.1)
    with pytest.raises(BadInput, match=r"^prior: weights \[1.0\]; expected 2 numbers of 0 or more, not all 0$"):
        log_posterior([[1, 2]], [[0.5, 0.5], [0.1, 0.9]], empty_bin_prior=0.1, prior=[1])
    with pytest.raises(BadInput, match=r"^shapes: a row that is no distribution"):
        log_shapes([[np.nan, 1]], empty_bin_prior=0.1)
