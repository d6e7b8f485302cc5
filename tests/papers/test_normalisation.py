"""Runtime Variation in Big Data Analytics (Zhu et al. 2023), Definition 4.1 and footnote 3: worked out by hand."""

import numpy as np
import pytest

from tasks.jobs.normalisation import bins_of, derived_bins, normalise
from tasks.jobs.params import BinParams


def test_ratio_is_runtime_over_median_and_delta_runtime_minus_median():
    assert normalise([50, 100, 1000], [100, 100, 100], "ratio").tolist() == [0.5, 1, 10]
    assert normalise([50, 100, 1000], [100, 100, 100], "delta").tolist() == [-50, 0, 900]


def test_a_ratio_to_a_median_of_nothing_is_missing_and_a_delta_is_not():
    assert np.isnan(normalise([5], [0], "ratio")).all()
    assert normalise([5], [0], "delta").tolist() == [5]


def test_outliers_are_ten_times_slower_or_more_than_900_s_slower():
    ratio, delta = bins_of("ratio", BinParams()), bins_of("delta", BinParams())
    assert (ratio.low, ratio.high, delta.low, delta.high, ratio.n_bins) == (0, 10, -900, 900, 200)
    assert ratio.index([9.999, 10, 11]).tolist() == [198, 199, 199]
    assert delta.index([899, 900, 900.001]).tolist() == [198, 198, 199]  # more than 900 s, not 900 s
    assert delta.index([-900.001, -900]).tolist() == [0, 1]


@pytest.mark.parametrize(("kind", "tail", "high"), [("ratio", 10.6, 10), ("delta", 1066, 900)])
def test_the_paper_s_ranges_follow_from_the_paper_s_tails(kind, tail, high):
    """Of 101 runs the 99th percentile is the second largest, the one at index 99 of 0 to 100."""
    values = np.r_[np.ones(99), tail, 1e6]
    assert derived_bins(kind, values, BinParams(n_bins=50)).high == high
