"""Irregular sampling, gaps and mixed intervals: when samples are left alone, and what they become otherwise."""

import numpy as np
import pytest

from tasks.workloads.reading_params import RegularParams
from tasks.workloads.regular import cut_at_gaps, nominal_interval, to_grid

RULES = RegularParams()


def grid_of(at_s, values, rules=RULES):
    at_s, values = np.array(at_s, dtype=float), np.array(values, dtype=float)[:, None]
    return to_grid(at_s, values, nominal_interval(at_s, rules))


def listed(grid):
    return [None if np.isnan(value) else round(float(value), 9) for value in grid.values[:, 0]]


def test_samples_with_little_jitter_are_left_as_they_are():
    at_s = [0, 1.02, 1.99, 3.1, 4.0]
    grid = grid_of(at_s, [1, 2, 3, 4, 5])
    assert (listed(grid), grid.at_s.tolist(), grid.is_resampled) == ([1, 2, 3, 4, 5], at_s, False)


def test_a_slow_drift_of_the_clock_is_no_missed_sample():
    grid = grid_of(np.arange(1000) * 1.003, np.arange(1000))
    assert (grid.n_missed, grid.is_resampled) == (0, False)


def test_missed_samples_become_rows_without_values():
    grid = grid_of([0, 1, 2, 5, 6, 7], [1, 2, 3, 6, 7, 8])
    assert (listed(grid), grid.at_s.tolist()) == ([1, 2, 3, None, None, 6, 7, 8], list(range(8)))
    assert grid.n_missed == 2


@pytest.mark.parametrize(("gap", "n_pieces"), [(10, 1), (11, 2)])
def test_a_gap_of_more_than_ten_intervals_cuts_the_run(gap, n_pieces):
    at_s = np.concatenate([np.arange(20.0), np.arange(20.0) + 19 + gap])
    assert len(cut_at_gaps(at_s, nominal_interval(at_s, RULES), RULES)) == n_pieces


def test_resampling_keeps_the_integral_over_time():
    rng = np.random.default_rng(3)
    at_s, values = np.cumsum(rng.uniform(0.3, 1.7, 500)), rng.normal(10, 3, 500)
    grid = grid_of(at_s, values)
    area = np.concatenate([[0], np.cumsum(values[1:] * np.diff(at_s))])  # a sample holds since the one before
    assert grid.is_resampled
    assert np.sum(grid.values[1:, 0]) * grid.interval_s == pytest.approx(np.interp(grid.at_s[-1], at_s, area), rel=1e-9)


def test_a_resampled_value_is_missing_where_less_than_half_was_measured():
    at_s = [0, 0.6, 1.0, 1.5, 2.0, 2.6, 3.0, 3.5, 4.0]
    values = [1, 1, 1, np.nan, np.nan, np.nan, 1, 1, 1]
    grid = grid_of(at_s, values, RegularParams(interval_s=1))
    assert listed(grid) == [1, 1, None, None, 1]


def test_a_constant_stays_that_constant_when_resampled():
    grid = grid_of(np.cumsum(np.random.default_rng(1).uniform(0.3, 1.7, 100)), np.full(100, 0.1))
    assert np.allclose(grid.values, 0.1, rtol=1e-12, atol=0)


def test_mixed_intervals_are_brought_to_the_long_one():
    at_s = np.concatenate([np.arange(20.0), 19 + 5 * np.arange(1.0, 21)])
    grid = grid_of(at_s, np.ones(40))
    assert (grid.interval_s, grid.is_resampled, listed(grid)) == (5, True, [1] * len(grid.at_s))


def test_an_interval_that_was_asked_for_wins():
    grid = grid_of(np.arange(0, 20, 2.0), np.arange(10), RegularParams(interval_s=4))
    assert (grid.interval_s, listed(grid)) == (4, [0, 1.5, 3.5, 5.5, 7.5])


def test_a_single_sample_has_no_interval():
    grid = grid_of([3.0], [1])
    assert (grid.interval_s, listed(grid)) == (None, [1])
