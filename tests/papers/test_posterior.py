"""Runtime Variation in Big Data Analytics (Zhu et al. 2023), section 5.2, equations 1 to 9, worked out by hand.

Two clusters over three bins, theta1 = (1/2, 1/4, 1/4) and theta2 = (1/4, 1/4, 1/2); four runs in bins 0, 0, 0, 1."""

import numpy as np
import pytest

from tasks.jobs.shapes import hard_labels, log_likelihood, log_posterior, log_shapes

SHAPES = np.array([[1 / 2, 1 / 4, 1 / 4], [1 / 4, 1 / 4, 1 / 2]])
COUNTS = np.array([[3, 1, 0]])
EXACT = {"empty_bin_prior": 0.0}  # no bin of these shapes is empty


def test_the_likelihood_is_the_product_over_the_runs():
    # equation 2: (1/2)^3 * 1/4 = 1/32 and (1/4)^3 * 1/4 = 1/256
    assert np.exp(log_likelihood(COUNTS, SHAPES, **EXACT)) == pytest.approx(np.array([[1 / 32, 1 / 256]]))


def test_the_posterior_is_the_likelihood_over_its_sum():
    # equation 5: 1/32 / (1/32 + 1/256) = 8/9
    found = log_posterior(COUNTS, SHAPES, **EXACT)
    assert np.exp(found) == pytest.approx(np.array([[8 / 9, 1 / 9]]))
    assert hard_labels(found).tolist() == [0]


def test_an_empty_bin_takes_its_part_of_the_prior():
    # a = 0.3 over 3 bins: 0.7 * 1 + 0.1 and 0.1 twice
    assert np.exp(log_shapes([[1, 0, 0]], empty_bin_prior=0.3)) == pytest.approx(np.array([[0.8, 0.1, 0.1]]))
