"""Robust deviations: worked out by hand, without any look ahead, and less what the whole fleet did."""

import numpy as np
import pytest

from tasks.nodes.detect.detector import rows_of
from tasks.nodes.detect.deviations import (
    clean_deviations,
    headline_score,
    headline_signs,
    is_cold,
    is_settled,
    learn_normal,
    level_deviations,
    level_of,
    logarithms,
    positive_metrics,
    recent_deviations,
    windows_of,
    without_fleet_drift,
)
from tasks.nodes.params import DetectorParams

SD = 1.4826  # of a median absolute deviation
ONE = np.array([True])


def prepared(tables, x, nodes, is_calm=None, **told):
    """Rows, windows and what is normal, of one metric with the logarithms x, (n,)."""
    found = tables(np.exp(np.asarray(x, dtype=np.float64))[:, None], nodes, **told)
    rows = rows_of(found.tables[0], found, np.arange(len(x), dtype=np.float64))
    windows = windows_of(rows.table, ONE)
    calm = np.ones(len(x), dtype=bool) if is_calm is None else np.asarray(is_calm, dtype=bool)
    return rows, windows, learn_normal(rows, windows, calm)


def test_a_metric_that_is_always_positive_is_taken_as_its_logarithm_and_any_other_by_its_sign():
    natural = np.array([[np.e, -(np.e - 1)], [1.0, 0.0], [np.nan, np.nan]])
    assert positive_metrics(natural, np.ones(3, dtype=bool)).tolist() == [True, False]
    found = logarithms(natural, np.array([True, False]))
    np.testing.assert_allclose(found, [[1.0, -1.0], [0.0, 0.0], [np.nan, np.nan]], atol=1e-12)


def test_a_window_is_the_median_and_the_deviation_of_what_the_node_did_before(tables):
    """Of 0, 1, 2, 3, 4 the median is 2, the absolute deviations 2, 1, 0, 1, 2, their median 1."""
    _, windows, _ = prepared(tables, [0, 1, 2, 3, 4, 99], [0] * 6)
    recent = windows.centres[50]
    assert np.isnan(recent.median[:5]).all()  # fewer than five before
    assert (recent.median[5, 0], recent.deviation[5, 0]) == (pytest.approx(2.0), pytest.approx(SD))
    assert windows.n_before.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_window_holds_the_last_twenty_of_the_node_alone(tables):
    """Node 0 has 0, 1, …, 24 at every other place, node 1 thousands: the last twenty are 5 to 24, their median 14.5."""
    x, nodes = np.full(51, 1e3), np.ones(51, dtype=int)
    x[:50:2], nodes[::2] = np.arange(25), 0
    _, windows, _ = prepared(tables, x / 1e3, nodes)
    assert windows.centres[20].median[50, 0] * 1e3 == pytest.approx(14.5)
    assert windows.centres[50].median[50, 0] * 1e3 == pytest.approx(12.0)


def test_a_level_is_that_of_the_calm_executions_of_the_node(tables):
    """The deviation of 10 from the level 2 is 8 / 1.4826; what is not calm teaches nothing."""
    rows, windows, normal = prepared(tables, [0, 1, 2, 3, 4, 10], [0] * 6, [1, 1, 1, 1, 1, 0])
    assert level_deviations(rows, normal, windows)[5, 0] == pytest.approx(8 / SD)


def test_a_node_that_happened_to_vary_little_has_half_the_usual_deviation_as_its_floor(tables):
    """Deviations of the nodes: 1.4826 and 0, in the middle 0.7413, half of that 0.37065."""
    x = [0, 1, 2, 3, 4, 2, 2, 2, 2, 2, 2 + 0.37065]
    rows, windows, normal = prepared(tables, x, [0] * 5 + [1] * 6, [1] * 10 + [0])
    assert normal.floor[0] == pytest.approx(0.37065)
    assert level_deviations(rows, normal, windows)[10, 0] == pytest.approx(1.0)


def test_recent_deviations_are_floored_by_what_the_type_differs_from_its_windows(tables):
    """Before the last one nothing differs but by 1, after five zeros: |1 - 0|, 0, … have a median of 0, then of 1."""
    x = [0.0] * 5 + [1.0, -1.0, 1.0, -1.0, 1.0, 3.0]
    rows, windows, normal = prepared(tables, x, [0] * 11, [1] * 10 + [0])
    assert normal.pooled[0] == pytest.approx(SD)
    assert recent_deviations(rows, normal, windows, 50)[10, 0] == pytest.approx(3 / SD)


def test_a_node_without_history_is_judged_by_its_machine_type_and_one_without_either_by_the_fleet(tables):
    x = [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 12, 12]
    names, machines = ("a", "b", "new", "odd"), ("small", "large", "large", "other")
    nodes = [0] * 5 + [1] * 5 + [2, 3]
    rows, windows, normal = prepared(tables, x, nodes, [1] * 10 + [0, 0], names=names, machines=machines)
    z = level_deviations(rows, normal, windows)[:, 0]
    assert z[10] == pytest.approx(0.0)  # 12 is the middle of the large ones
    assert z[11] > 0.5  # of all ten 7 is
    assert is_cold(rows, normal, windows).tolist() == [False] * 11 + [True]


@pytest.mark.parametrize("seed", range(4))
def test_later_executions_change_no_earlier_deviation(tables, seed):
    rng = np.random.default_rng(seed)
    n, cut = 150, 100
    x, nodes = rng.standard_normal(n), rng.integers(0, 5, n)
    other = np.where(np.arange(n) < cut, x, 9 * rng.standard_normal(n))
    is_calm = np.arange(n) < cut
    found = []
    for values in (x, other):
        rows, windows, _ = prepared(tables, values, nodes)
        _, _, normal = prepared(tables, x, nodes, is_calm)
        recent = without_fleet_drift(recent_deviations(rows, normal, windows, 20), rows)
        clean = clean_deviations(rows, normal, windows, level_of(rows, normal, windows), np.ones(1))
        found.append(np.hstack([level_deviations(rows, normal, windows), recent, clean])[:cut])
    np.testing.assert_array_equal(*found)


def test_what_the_whole_fleet_does_is_taken_off_and_what_a_node_does_is_left(tables):
    """Five nodes in turn, all 3 deviations up, node 0 by 8 the second time."""
    rows, _, _ = prepared(tables, np.zeros(10), list(range(5)) * 2)
    z = np.full((10, 1), 3.0)
    z[5] = 8.0
    found = without_fleet_drift(z, rows)[:, 0]
    assert found[:3].tolist() == [3.0] * 3  # fewer than three others before
    assert found[3:].tolist() == [0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0]


def test_a_fleet_that_did_not_run_at_the_time_or_that_is_too_small_says_nothing(tables):
    z = np.full((10, 1), 3.0)
    few, _, _ = prepared(tables, np.zeros(10), [0, 1] * 5)
    np.testing.assert_array_equal(without_fleet_drift(z, few), z)
    found = tables(np.ones((10, 1)), list(range(5)) * 2)
    for hours in (np.arange(10) * 25.0, np.full(10, np.nan)):
        np.testing.assert_array_equal(without_fleet_drift(z, rows_of(found.tables[0], found, hours)), z)


def signs_of(found, **told):
    return headline_signs(found.tables[0], DetectorParams(**told)).tolist()


def test_headline_metrics_are_those_of_the_tool_else_those_declared_else_all_with_a_better_and_a_worse(tables):
    ioping = tables(np.ones((20, 3)), [0] * 20, name="disk-ioping@1", metrics=("iops", "other", "latency_avg"))
    assert signs_of(ioping) == [1.0, 0.0, -1.0]
    other = tables(np.ones((20, 3)), [0] * 20, metrics=("a", "b", "c"), orientation=(1, -1, 1))
    assert signs_of(other, headlines={"spin": ("b", "unknown")}) == [0.0, -1.0, 0.0]
    assert signs_of(other, headlines={"spin": ("unknown",)}) == signs_of(other) == [1.0, -1.0, 1.0]
    assert signs_of(tables(np.ones((20, 3)), [0] * 20, is_directed=(True, True, False))) == [1.0, 1.0, 0.0]


def test_a_level_that_rests_on_twenty_calm_executions_is_settled(tables):
    """Node 0 has 20 and node 1 has 19."""
    rows, _, normal = prepared(tables, np.arange(41) % 7, [0] * 21 + [1] * 20, [1] * 20 + [0] + [1] * 19 + [0])
    assert is_settled(rows, normal).tolist() == [True] * 21 + [False] * 20


def cleaned(tables, x, n_calm, sign=1.0):
    """Deviations of one metric from what looked normal: (n,)."""
    rows, windows, normal = prepared(tables, x, [0] * len(x), np.arange(len(x)) < n_calm)
    return clean_deviations(rows, normal, windows, level_of(rows, normal, windows), np.array([sign]))[:, 0]


def test_the_first_executions_of_a_node_are_no_surer_than_its_type(tables):
    """Node 1 ran four times within 1 % of 100; node 0 tells that the benchmark varies by 10 %: 20 % less is no fault of
    100 deviations."""
    many, few = 100 * np.exp(0.1 * np.sin(np.arange(60.0))), [99.5, 100.5, 100.0, 80.0, 99.8]
    rows, windows, normal = prepared(tables, np.concatenate([many, few]), [0] * 60 + [1] * 5, np.ones(65))
    found = clean_deviations(rows, normal, windows, level_of(rows, normal, windows), np.ones(1))[:, 0]
    assert -4 < found[63] < -1.5 and level_deviations(rows, normal, windows)[63, 0] < 2 * found[63]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_node_that_is_bad_every_other_time_is_still_seen_from_its_good_times(tables, sign):
    """Of -1, 0, 1 again and again the median is 0 and its deviation SD; those of both kinds widen it half as much
    again at most."""
    good = np.arange(60) % 3 - 1.0
    x = np.concatenate([good, np.column_stack([good, good - sign * 40]).ravel()])
    found = cleaned(tables, x, 60, sign)
    np.testing.assert_allclose(found[100:180:2] * SD * 1.5, x[100:180:2], atol=1e-9)
    assert (found[101:180:2] * sign < -15).all()


def test_twenty_executions_in_a_row_at_another_level_are_the_level(tables):
    noise = np.arange(100) % 3 - 1.0
    found = cleaned(tables, noise + np.where(np.arange(100) < 50, 0.0, -40.0), 50)
    assert (found[50:70] < -15).all() and (np.abs(found[70:]) < 1).all()


def test_the_headline_score_is_the_root_mean_square_of_what_is_worse():
    """√((3² + 5²) / 2) = √17, √(3² / 1), and √(20² / 2), as each is cut at 20; of what is better the mean."""
    z = np.array(
        [[-3.0, 5.0, 9.0], [-3.0, np.nan, 9.0], [-900.0, -900.0, 9.0], [2.0, -4.0, 9.0], [np.nan, np.nan, 9.0]]
    )
    found = headline_score(z, np.array([1.0, -1.0, 0.0]))
    assert found.tolist() == pytest.approx([17**0.5, 3.0, 200**0.5, -3.0, 0.0])
