"""CWD (Hossain et al. 2022), section III-A, equations 1 to 4, worked out by hand for samples 0, 0, 2.

Prior of a segment: mean 0, kappa 1, alpha 1, beta 1; hazard 1/2. A Student t with v degrees of freedom and squared
scale s is predicted; its density at 0, times sqrt s, is 1 / (2 sqrt 2), 2 / (pi sqrt 3), 3 / 8 for v = 2, 3, 4.
  nothing seen:   v = 2, s = beta (kappa + 1) / (alpha kappa) = 2
  0 seen:         kappa 2, alpha 3/2, beta 1: v = 3, s = 1
  0 and 0 seen:   kappa 3, alpha 2, beta 1: v = 4, s = 2/3
"""

from math import log, pi, sqrt

import numpy as np
import pytest

from tasks.workloads.changepoints.finding import ChangePointParams, find_changepoints
from tasks.workloads.changepoints.online import PriorParams, filter_run_lengths, predictive_tables

BY_HAND = ChangePointParams(
    expected_run_length=2,
    prior=PriorParams(mean=0, kappa=1, alpha=1, noise=1, trend_share=0),
    is_scaled=False,
    outlier_deviations=0,
    min_segment=1,
    near=0,
)


def run_lengths_after(samples: list[float]) -> dict[int, float]:
    """The probability of each run length after the last sample."""
    values, half = np.array(samples, dtype=float)[:, None], np.log([0.5, 0.5])
    found = filter_run_lengths(values, predictive_tables(BY_HAND.prior, len(values)), half, 1, 30.0, 256)
    _, _, offsets, starts, probabilities, _, _ = found
    last = slice(offsets[-2], offsets[-1])
    return dict(zip((len(values) - starts[last]).tolist(), probabilities[last], strict=True))


FIRST, SECOND = 1 / 4, 2 / (pi * sqrt(3))  # of a 0: in a new segment, after one 0
NEW, AFTER_ONE, AFTER_TWO = 2**-1.5 / 4, SECOND * (7 / 3) ** -2, 3 / 8 * 2.5**-2.5 * sqrt(1.5)  # of the 2


def test_the_evidence_of_two_samples_is_the_sum_over_both_run_lengths():
    # p(0, 0) = 1/4 * (1/2 * 2 / (pi sqrt 3) + 1/2 * 1/4)
    assert find_changepoints([0, 0], BY_HAND).log_evidence == pytest.approx(log(FIRST * (SECOND + FIRST) / 2))


def test_the_run_length_posterior_weighs_each_run_length_by_its_prediction():
    assert run_lengths_after([0, 0]) == pytest.approx({2: SECOND / (SECOND + FIRST), 1: FIRST / (SECOND + FIRST)})


def test_the_third_sample_sums_over_three_run_lengths():
    # hazard 1/2 makes all four segmentations equally probable before the samples are seen: 1/4 each
    paths = {
        "no change": FIRST * SECOND * AFTER_TWO,
        "at 1": FIRST * FIRST * AFTER_ONE,
        "at 2": FIRST * SECOND * NEW,
        "at 1 and 2": FIRST * FIRST * NEW,
    }
    found, total = find_changepoints([0, 0, 2], BY_HAND), sum(paths.values())
    assert found.log_evidence == pytest.approx(log(total / 4))
    assert run_lengths_after([0, 0, 2]) == pytest.approx(
        {3: paths["no change"] / total, 2: paths["at 1"] / total, 1: (paths["at 2"] + paths["at 1 and 2"]) / total}
    )


def test_the_later_sample_is_used_to_judge_an_earlier_change():
    paths = np.array([FIRST * SECOND * AFTER_TWO, FIRST * FIRST * AFTER_ONE, FIRST * SECOND * NEW, FIRST * FIRST * NEW])
    found = find_changepoints([0, 0, 2], BY_HAND)
    expected = [0, (paths[1] + paths[3]) / paths.sum(), (paths[2] + paths[3]) / paths.sum()]
    assert found.at_each == pytest.approx(np.array(expected))
    # the most probable of the four: 0.25 * 0.368 * 0.088 > 0.25 * 0.25 * 0.0675, a change at 2 comes closest
    assert paths.argmax() == 2
    assert found.indices.tolist() == [2]
