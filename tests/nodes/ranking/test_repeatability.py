"""Repeatability: values worked out by hand, and the power that the number of runs promises."""

import numpy as np
import pytest

from tasks.nodes.ranking.repeatability import repeatability_of, runs_needed, runs_to_see_change


def measured(tables):
    return repeatability_of(tables, np.ones(tables.n_executions, dtype=bool))


def test_figures_of_five_runs(table, together):
    """Median 100; absolute deviations 10 0 10 20 0, their median 10. Reruns differ by |log| 0.10536, 0.09531, 0.08701,
    0.18232: median 0.10034; 90th percentile 0.10536 + 0.7 · (0.18232 - 0.10536)."""
    rows = [(0, 90), (0, 100), (0, 110), (0, 120), (0, 100)]
    found = measured(together(table(rows))).metrics.iloc[0]
    assert found["median"] == 100 and found["n_runs"] == 5
    assert found["cv"] == pytest.approx(0.14826)
    assert found["rerun_median"] == pytest.approx(0.100335, abs=1e-5)
    assert found["rerun_p90"] == pytest.approx(0.159232, abs=1e-5)


def test_runs_that_tell_two_levels_apart():
    """(1.95996 + 0.84162)² · π/2 · (0.1² + 0.1²) = 0.24658; over 0.1²: 24.7; over 0.2²: 6.2."""
    spread = np.full(3, 0.1)
    assert runs_needed(np.array([0.1, -0.2, 0.0]), spread, spread).tolist() == [25, 7, np.inf]
    assert runs_to_see_change(0.1, np.array([0.1])).tolist() == [28]  # log 1.1 = 0.09531: 27.1
    assert np.isnan(runs_needed(np.array([0.1]), np.array([np.nan]), np.array([0.1])))


def test_so_many_runs_have_the_power_that_is_promised():
    rng = np.random.default_rng(0)
    n = int(runs_needed(np.array(0.1), np.array(0.1), np.array(0.1)))
    one = np.median(rng.normal(0.0, 0.1, (20_000, n)), axis=1)
    other = np.median(rng.normal(0.1, 0.1, (20_000, n)), axis=1)
    twin = np.median(rng.normal(0.0, 0.1, (20_000, n)), axis=1)
    limit = 1.959964 * np.std(one - twin)
    assert (np.abs(one - other) > limit).mean() == pytest.approx(0.8, abs=0.04)


def test_pairs_of_nodes_by_metric(table, together):
    rows = [(node, level * step) for level, node in ((100, 0), (200, 1)) for step in (0.98, 1.0, 1.02, 1.0, 0.99)]
    found = measured(together(table(rows)))
    pair = found.pairs.iloc[0]
    assert (pair["one"], pair["other"]) == ("a", "b") and pair["ratio"] == pytest.approx(0.5)
    assert pair["n_runs"] == 2
    assert "deviation" not in found.metrics


def test_reruns_are_those_of_one_node(table, together):
    """Runs of two nodes alternate: between them the values jump, within each nothing changes."""
    rows = [(0, 100), (1, 900)] * 5
    found = measured(together(table(rows))).metrics
    assert found["rerun_median"].tolist() == [0, 0] and found["cv"].tolist() == [0, 0]


def test_nodes_with_few_runs_are_left_out_and_nothing_is_no_error(table, together):
    found = measured(together(table([(0, 100), (1, 100)])))
    assert not len(found.metrics) and not len(found.pairs)
