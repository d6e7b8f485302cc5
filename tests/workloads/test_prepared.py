"""Runs out of what readers find: spacing, gaps, totals; values worked out by hand, and properties."""

import numpy as np
import pytest

from tasks.workloads.params import RegularParams
from tasks.workloads.prepared import are_totals, as_rates, cut_at_gaps, nominal_interval, rate_of, to_grid
from tasks.workloads.telemetry import Counter

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


def test_rates_are_per_second_of_the_real_spacing():
    rates, resets = as_rates(np.array([0.0, 1, 3]), np.array([[10.0], [15], [35]]))
    assert (rates[1:, 0].tolist(), np.isnan(rates[0, 0]), resets.sum()) == ([5, 10], True, 0)


def test_a_total_that_falls_has_no_rate_and_the_next_one_has():
    rates, resets = as_rates(np.arange(4.0), np.array([[10.0], [20], [3], [8]]))
    assert np.array_equal(rates[:, 0], [np.nan, 10, np.nan, 5], equal_nan=True)
    assert resets.tolist() == [0, 0, 1, 0]


def test_a_rate_beside_a_missing_total_is_missing():
    rates, _ = as_rates(np.arange(4.0), np.array([[10.0], [np.nan], [30], [40]]))
    assert np.array_equal(rates[:, 0], [np.nan, np.nan, np.nan, 10], equal_nan=True)


def test_a_size_called_total_is_no_running_total():
    rising, constant, falling = np.arange(50.0), np.full(50, 7.0), np.arange(50.0)[::-1]
    names = ["a_total", "disk_total", "b_total", "reads"]
    assert are_totals(names, np.column_stack([rising, constant, falling, rising])).tolist() == [
        True,
        False,
        False,
        False,
    ]


def test_the_rate_loses_the_word_total_and_keeps_its_labels():
    assert rate_of(Counter("node_cpu_seconds_total.cpu_0.mode_user")).name == "node_cpu_seconds.cpu_0.mode_user"
