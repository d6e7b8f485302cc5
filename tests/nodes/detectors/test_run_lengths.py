"""The probability of a recent change is what the change points of workloads say of it."""

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.nodes.detectors.run_lengths import recent_change
from tasks.workloads.changepoints.finding import find_changepoints
from tasks.workloads.changepoints.params import ChangePointParams, PriorParams


def by_run_lengths(series, expected, recent):
    """The posterior of find_changepoints, entry by entry."""
    params = ChangePointParams(
        expected_run_length=expected,
        prior=PriorParams(noise=1.0, trend_share=0.0),
        scale="none",
        outlier_deviations=0.0,
    )
    posterior, found = find_changepoints(series, params).run_lengths, np.zeros(len(series))
    for at, row in enumerate(posterior.rows):
        part = slice(posterior.offsets[at], posterior.offsets[at + 1])
        for start, probability in zip(posterior.starts[part], posterior.probabilities[part], strict=True):
            if start > posterior.rows[0] and row - start < recent:
                found[row] += probability
    return found


@pytest.mark.parametrize(("expected", "recent"), [(50.0, 3), (10.0, 1), (200.0, 20)])
def test_it_is_the_posterior_of_segments_that_began_lately(expected, recent):
    rng = np.random.default_rng(1)
    series = np.concatenate([rng.normal(size=60), rng.normal(-6, 1, 30), rng.normal(size=400)])
    series[[0, 5, 61, 62, 70]] = np.nan
    found = recent_change(series, expected, recent)
    np.testing.assert_allclose(found, by_run_lengths(series, expected, recent), atol=1e-9)
    assert found[[0, 5, 61]].tolist() == [0, 0, 0] and found.max() > 0.2


def test_a_value_that_is_no_number_is_refused_and_none_at_all_is_no_change():
    with pytest.raises(BadInput):
        recent_change(np.array([0.0, np.inf]), 50, 3)
    assert recent_change(np.full(3, np.nan), 50, 3).tolist() == [0, 0, 0]
    assert not len(recent_change(np.empty(0), 50, 3))
