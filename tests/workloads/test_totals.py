"""Running totals as rates, and what a reset costs."""

import numpy as np

from tasks.workloads.telemetry import Counter
from tasks.workloads.totals import are_totals, as_rates, rate_of


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
