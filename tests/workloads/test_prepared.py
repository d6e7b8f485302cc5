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
    drifting = grid_of(np.arange(1000) * 1.003, np.arange(1000))  # a slow drift of the clock is no missed sample
    assert (drifting.n_missed, drifting.is_resampled) == (0, False)


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
    assert np.allclose(grid_of(at_s, np.full(500, 0.1)).values, 0.1, rtol=1e-12, atol=0)  # a constant stays the same


def test_a_resampled_value_is_missing_where_less_than_half_was_measured():
    at_s = [0, 0.6, 1.0, 1.5, 2.0, 2.6, 3.0, 3.5, 4.0]
    values = [1, 1, 1, np.nan, np.nan, np.nan, 1, 1, 1]
    grid = grid_of(at_s, values, RegularParams(interval_s=1))
    assert listed(grid) == [1, 1, None, None, 1]


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


@pytest.mark.parametrize(
    ("at_s", "totals", "rates", "resets"),
    [
        ([0, 1, 3], [10, 15, 35], [5, 10], [0, 0, 0]),  # a second of the real spacing
        ([0, 1, 2, 3], [10, 20, 3, 8], [10, np.nan, 5], [0, 0, 1, 0]),  # one that falls has none, and the next one has
        ([0, 1, 2, 3], [10, np.nan, 30, 40], [np.nan, np.nan, 10], [0, 0, 0, 0]),  # nor has one beside a missing total
    ],
)
def test_a_total_becomes_a_rate(at_s, totals, rates, resets):
    found, n_resets = as_rates(np.array(at_s, dtype=float), np.array(totals, dtype=float)[:, None])
    np.testing.assert_array_equal(found[:, 0], [np.nan, *rates])
    assert n_resets.tolist() == resets


def test_a_size_called_total_is_no_running_total():
    rising, constant, falling = np.arange(50.0), np.full(50, 7.0), np.arange(50.0)[::-1]
    names = ["a_total", "disk_total", "b_total", "reads"]
    found = are_totals(names, np.column_stack([rising, constant, falling, rising]))
    assert found.tolist() == [True, False, False, False]


def test_the_rate_loses_the_word_total_and_keeps_its_labels():
    assert rate_of(Counter("node_cpu_seconds_total.cpu_0.mode_user")).name == "node_cpu_seconds.cpu_0.mode_user"
