"""Scores of predicted distributions (Gneiting & Raftery 2007; Zhu et al. 2023, 5.2): values worked out by hand."""

import math

import numpy as np
import pytest

from tasks.jobs.distribution import Binned, Empirical, Tails, gather_history
from tasks.jobs.scores import (
    calibration_of,
    compare_pooled,
    coverage_of,
    crps_of,
    ks_by_group,
    log_score_of,
    pit_values,
)


def two_bins(median_s=1.0):
    """[0, 1) with 0.25 and [1, 2) with 0.75, times the median."""
    return Binned([0, 1, 2], [[0.25, 0.75]], [median_s], "ratio")


def past(*values_s, n=1, weights=None):
    return Empirical(gather_history(values_s, [0] * len(values_s), weights), [0] * n)


def test_crps_of_two_bins():
    """F(t) = t/4 on [0, 1], 1/4 + 3 (t - 1) / 4 on [1, 2], x = 1.

    Integral of F² on [0, 1]: 1/48; of (1 - F)² = (3/4)² (2 - t)² on [1, 2]: (9/16) / 3 = 9/48. Together 10/48."""
    assert two_bins().crps([1.0])[0] == pytest.approx(10 / 48)
    # x = 2: F² on [1, 2] is (1/4 + 3 s / 4)²: (1/16 + 1/4 + 1) / 3 = 21/48 more than 1/48
    assert two_bins().crps([2.0])[0] == pytest.approx(22 / 48)
    # x = 3: a second longer, at F = 1; with a median of 10 s all is ten times as much
    assert two_bins().crps([3.0])[0] == pytest.approx(22 / 48 + 1)
    assert two_bins(10.0).crps([10.0])[0] == pytest.approx(100 / 48)


def test_crps_of_past_runs_by_pairs():
    """Of 1, 2 and 6 at x = 3: mean |v - x| = (2 + 1 + 3) / 3 = 2; pairs: 2 (1 + 5 + 4) / 9 = 20/9; 2 - 10/9 = 8/9."""
    assert past(1, 2, 6).crps([3.0])[0] == pytest.approx(8 / 9)
    # weights 1/2, 1/2 of 0 and 4 at x = 1: (1 + 3) / 2 - 1/2 · 2 · 1/4 · 4 = 1
    assert past(0, 4, weights=[3, 3]).crps([1.0])[0] == pytest.approx(1)


def test_crps_of_an_exponential_tail():
    """All mass in an open bin from 0 with mean 2 s, x = 0: the integral of exp(-t) over t > 0, F(t) = 1 - exp(-t/2)."""
    tail = Binned([0, 1], [[1.0]], [2.0], "ratio", Tails(upper_mean=1.0))
    assert tail.crps([0.0])[0] == pytest.approx(1.0)
    assert tail.cdf([2.0])[0] == pytest.approx(1 - math.exp(-1))
    assert tail.quantile(0.5)[0] == pytest.approx(2 * math.log(2))
    assert tail.log_density([2.0])[0] == pytest.approx(math.log(2 * 0.5 * math.exp(-1)))


def test_log_score_is_the_density_of_log_runtime():
    """Density 3/4 a second at 1.5 s: 1.5 · 3/4 for a log unit, and the same when everything is ten times longer."""
    assert log_score_of(two_bins(), [1.5]).value == pytest.approx(math.log(1.125))
    assert log_score_of(two_bins(10.0), [15.0]).value == pytest.approx(math.log(1.125))
    assert log_score_of(two_bins(), [5.0]).value == -20  # nothing there: the floor


def test_what_lies_below_0_s_is_cut_away():
    """Delta bins [-2, 0) and [0, 2) of 1/2 around a median of 1 s: half of
    the first is kept: 1/4 and 1/2 of all, so 1/3 in [0, 1) and 2/3 in [1, 3)."""
    delta = Binned([-2, 0, 2], [[0.5, 0.5]], [1.0], "delta")
    assert delta.cdf([[0.0, 0.5, 1.0, 2.0, 3.0]])[0] == pytest.approx([0, 1 / 6, 1 / 3, 2 / 3, 1])


def test_ks_within_a_group():
    """Uniform on [0, 4] for both runs, which took 1 and 2 s: cdfs 1/4, 1/2 against 1/2, 1: at 2 s it is 1/2."""
    uniform = Binned([0, 4], [[1.0]], [1.0, 1.0], "ratio", weights=[[1.0], [1.0]])
    found = ks_by_group(uniform, [1.0, 2.0], ["a", "a"], min_runs=2)
    assert found.value == pytest.approx(0.5) and (found.n_groups, found.n_runs, found.n_small) == (1, 2, 0)


def test_pooled_distance_and_table():
    """Runs of 1 and 3 s, each predicted to take 1 or 2 s: the cdfs differ by 1/2 between 2 and 3 s.

    Percentiles 1 to 50 agree at 1 s, 51 to 99 are 2 against 3 s: 49 / 99 s on average."""
    found = compare_pooled(past(1, 2, n=2), [3.0, 1.0])
    assert found.ks == pytest.approx(0.5)
    assert found.mae_s == pytest.approx(49 / 99)
    assert found.error_s[49] == 0 and found.error_s[50] == 1  # the 50th and 51st percentile


def test_pooled_distance_rewards_ignoring_the_job():
    """Two jobs that always take 1 and 3 s: one prediction for both is perfect when pooled, 1/2 off in each."""
    runtimes, jobs = np.repeat([1.0, 3.0], 20), np.repeat(["a", "b"], 20)
    ignoring = past(1, 3, n=40)
    assert compare_pooled(ignoring, runtimes).ks == pytest.approx(0)
    assert ks_by_group(ignoring, runtimes, jobs).value == pytest.approx(0.5)


def test_coverage_counts_the_ends_of_the_interval():
    """Uniform on [0, 10]: the central 80 % are 1 to 9 s; 1 and 5 are inside, 0.5 below, 9.5 above."""
    uniform = Binned([0, 10], [[1.0]], [1.0], "ratio", weights=[[1.0]]).rows(np.zeros(4, dtype=np.int64))
    found = coverage_of(uniform, [1.0, 5.0, 0.5, 9.5], level=0.8)
    assert (found.share, found.below, found.above, found.n) == (0.5, 0.25, 0.25, 4)
    assert found.width_s == pytest.approx(8)


def test_pit_and_its_calibration_error():
    """PIT of 1 and 3 s under uniform [0, 4]: 1/4 and 3/4. Shares at 1/4 and 1/2 are both 1/2: errors 1/4 and 0."""
    uniform = Binned([0, 4], [[1.0]], [1.0, 1.0], "ratio", weights=[[1.0], [1.0]])
    pit = pit_values(uniform, [1.0, 3.0], np.random.default_rng(0))
    assert pit == pytest.approx([0.25, 0.75])
    found = calibration_of(pit, levels=(0.25, 0.5))
    assert found.error == pytest.approx(0.125) and found.largest == pytest.approx(0.25)


def test_a_sure_prediction_scores_its_absolute_error():
    assert crps_of(past(7.0, n=2), [4.0, 8.0]).value == pytest.approx(2)
