"""Scores of predicted distributions (Gneiting & Raftery 2007; Zhu et al. 2023, 5.2): values worked out by hand."""

import numpy as np
import pytest

from tasks.jobs.distribution import even_steps, gather_history
from tasks.jobs.scores import calibration_error, coverage_of, ks_by_group, ks_pooled, pit_values


def uniform(high_s, n):
    """From 0 s on, as 10,000 steps."""
    return even_steps(np.tile(high_s * (np.arange(10_000) + 0.5) / 10_000, (n, 1)))


def past(*values_s, n=1):
    return gather_history(values_s, [0] * len(values_s)).rows(np.zeros(n, dtype=int))


def test_crps_of_an_even_spread():
    """F(t) = t / 4 on [0, 4]. At x = 1: the integral of t²/16 is 1/48, that of (1 - t/4)² from 1 on 27/48."""
    assert uniform(4, 1).crps([1.0])[0] == pytest.approx(28 / 48, abs=1e-4)
    assert uniform(4, 1).crps([5.0])[0] == pytest.approx(4 / 3 + 1, abs=1e-4)  # a second beyond its end, at F = 1


def test_crps_of_past_runs_by_pairs():
    """Of 1, 2 and 6 at x = 3: mean |v - x| = (2 + 1 + 3) / 3 = 2; pairs: 2 (1 + 5 + 4) / 9 = 20/9; 2 - 10/9 = 8/9."""
    assert past(1, 2, 6).crps([3.0])[0] == pytest.approx(8 / 9)
    # weights 1/2, 1/2 of 0 and 4 at x = 1: (1 + 3) / 2 - 1/2 · 2 · 1/4 · 4 = 1
    assert past(0, 4).crps([1.0])[0] == pytest.approx(1)


def test_ks_within_a_group():
    """Uniform on [0, 4] for 20 runs, which took 1 and 2 s: cdfs 1/4, 1/2 against 1/2, 1: at 2 s it is 1/2."""
    found = ks_by_group(uniform(4, 20), np.repeat([1.0, 2.0], 10), ["a"] * 20)
    assert found.value == pytest.approx(0.5, abs=1e-3) and found.n_groups == 1


def test_pooled_distance():
    """Runs of 1 and 3 s, each predicted to take 1 or 2 s: the cdfs differ by 1/2 between 2 and 3 s."""
    assert ks_pooled(past(1, 2, n=2), [3.0, 1.0]) == pytest.approx(0.5)


def test_pooled_distance_rewards_ignoring_the_job():
    """Two jobs that always take 1 and 3 s: one prediction for both is perfect when pooled, 1/2 off in each."""
    runtimes, jobs = np.repeat([1.0, 3.0], 20), np.repeat(["a", "b"], 20)
    ignoring = past(1, 3, n=40)
    assert ks_pooled(ignoring, runtimes) == pytest.approx(0)
    assert ks_by_group(ignoring, runtimes, jobs).value == pytest.approx(0.5)


def test_coverage_counts_the_ends_of_the_interval():
    """Uniform on [0, 10]: the central 90 % are 0.5 to 9.5 s; 0.5 and 5 are inside, 0.4 and 9.6 outside."""
    assert coverage_of(uniform(10, 4), [0.5, 5.0, 0.4, 9.6]) == pytest.approx((0.5, 9), abs=0.01)


def test_pit_and_its_calibration_error():
    """PIT of 1 and 3 s under uniform [0, 4]: 1/4 and 3/4. So the share is 0 below the level 1/4, 1/2 up to 3/4, then 1.

    Over the levels 0.05 to 0.95: (0.05 + … + 0.2) + (0.25 + … 0 … + 0.2) + (0.25 + … + 0.05) = 0.5 + 1.25 + 0.75."""
    pit = pit_values(uniform(4, 2), [1.0, 3.0], np.random.default_rng(0))
    assert pit == pytest.approx([0.25, 0.75], abs=1e-3)
    assert calibration_error(pit) == pytest.approx(2.5 / 19)


def test_a_sure_prediction_scores_its_absolute_error():
    assert past(7.0, n=2).crps([4.0, 8.0]).tolist() == pytest.approx([3, 1])
