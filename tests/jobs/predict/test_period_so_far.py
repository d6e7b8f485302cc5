"""What is known of a period while it goes on: against the posterior of the counts of the same runs."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.pmf import Bins, histogram
from tasks.jobs.posterior import log_posterior
from tasks.jobs.predict.period_so_far import AtStart, at_start, known_so_far
from tasks.jobs.shape_params import PosteriorParams
from tasks.jobs.shapes import ShapeSet

BINS = Bins(kind="ratio", low=0, high=3, n_bins=5)
CENTRES = np.array([[0.1, 0.4, 0.3, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.6]])
SHAPES = ShapeSet(BINS, CENTRES, np.array([0.75, 0.25]), np.array([3, 1]), 0.0)
PARAMS = PosteriorParams(empty_bin_prior=0.01)


@pytest.fixture
def log(log_of):
    """Nine runs of one job, three in each part, against a median of 10 s."""
    runs = log_of([5.0, 12, 31, 45, 9, 35, 50, 8, 33])
    return runs.assign(median_s=10.0, part=np.repeat(["D1", "D2", "D3"], 3))


def posterior(runtimes_s, prior=None):
    counts = histogram(np.array(runtimes_s) / 10, np.zeros(len(runtimes_s), int), 1, BINS)
    return np.exp(log_posterior(counts, CENTRES, empty_bin_prior=0.01, prior=prior))[0]


def test_it_is_the_posterior_of_the_earlier_runs_of_the_same_period(log):
    found = known_so_far(log, SHAPES, PARAMS)
    assert found.n_known.tolist() == [0, 1, 2] * 3
    for first in (0, 3, 6):
        for n in range(3):
            runtimes = log["runtime_s"].iloc[first : first + n]
            assert found.probabilities[first + n] == pytest.approx(posterior(runtimes))


def test_a_run_that_goes_on_at_the_submission_is_not_known(log):
    late = log.assign(ended_at=log["ended_at"].where(log.index != 3, log["submitted_at"].iloc[5]))
    assert known_so_far(late, SHAPES, PARAMS).n_known.tolist() == [0, 1, 2, 0, 0, 1, 0, 1, 2]


def test_a_run_changes_nothing_for_those_before_it_and_in_other_periods(log):
    other = log.assign(runtime_s=log["runtime_s"].where(log.index != 4, 39.0))
    one, changed = known_so_far(log, SHAPES, PARAMS), known_so_far(other, SHAPES, PARAMS)
    is_same = (one.probabilities == changed.probabilities).all(axis=1)
    assert is_same.tolist() == [True] * 5 + [False] + [True] * 3


def test_jobs_do_not_mix_and_a_run_without_a_median_says_nothing(log):
    runs = log.assign(
        group_key=np.where(log.index == 7, "other", "job"), median_s=np.where(log.index == 3, np.nan, 10.0)
    )
    assert known_so_far(runs, SHAPES, PARAMS).n_known.tolist() == [0, 1, 2, 0, 0, 1, 0, 0, 1]


def test_the_prior_is_that_of_the_labels(log):
    found = known_so_far(log, SHAPES, PARAMS.model_copy(update={"prior": "size"}))
    assert found.probabilities[3] == pytest.approx([0.75, 0.25])
    assert found.probabilities[4] == pytest.approx(posterior([45.0], prior=[3, 1]))


def test_the_start_is_scored_beside_the_oracle_of_the_same_jobs():
    keys, ceiling = pd.Series(["a", "a", "b", "c"]), pd.DataFrame({"hit": [0.9, 0.5]}, index=["a", "b"])
    is_right, is_start = np.array([True, False, False, True]), np.array([True, False, True, False])
    assert at_start(is_right, is_start, keys, ceiling) == AtStart(2, 0.5, pytest.approx(0.7))
    assert at_start(is_right, is_start & False, keys, ceiling) == AtStart(0, None, None)
    assert at_start(is_right[3:], ~is_start[3:], keys[3:], ceiling) == AtStart(1, 1.0, None)
