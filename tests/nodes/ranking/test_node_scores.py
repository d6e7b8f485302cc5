"""Scores and components by hand, and what moves them."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.nodes.params import ScoreParams
from tasks.nodes.ranking.node_scores import fit_shared_component, learn_reference, normal_scores, score_nodes

PARAMS = ScoreParams()
ALL = ScoreParams(basis="all")


def of_node(tables, number):
    """The executions of one node, as what to learn a reference from."""
    mask = np.zeros(tables.n_executions, dtype=bool)
    for table in tables.tables:
        mask[table.executions[table.nodes == number]] = True
    return mask


def scored(tables, params=PARAMS, reference_node=0):
    reference = learn_reference(tables, of_node(tables, reference_node), params)
    return score_nodes(tables, reference, params)


def test_a_score_is_the_geometric_mean_of_oriented_ratios(table, together):
    """Four times the throughput, half the latency: √(4 · 2) = √8."""
    rows = [(0, (100, 0.02)), (1, (400, 0.01))]
    tables = together(table(rows, units=["1/s", "s"], orientation=[1, -1]))
    assert scored(tables, ALL).overall()[1] == pytest.approx(np.sqrt(8))
    assert scored(tables).overall()[1] == pytest.approx(4)  # the rate alone, as a user would measure it


def test_each_aspect_counts_once_however_many_benchmarks_it_has(table, together):
    """CPU: 4 and 1, so 2; memory 1; together √2. With weight 3 on the CPU: 2^(3/4)."""
    tables = together(
        table([(0, 100), (1, 400)], name="cpu-a"),
        table([(0, 100), (1, 100)], name="cpu-b"),
        table([(0, 100), (1, 100)], name="memory-a", aspect="memory"),
    )
    found = scored(tables)
    assert found.levels.aspects == ("cpu", "memory")
    assert found.by_aspect()[1] == pytest.approx([2, 1])
    assert found.overall()[1] == pytest.approx(np.sqrt(2))
    weighted = scored(tables, ScoreParams(aspect_weights={"cpu": 3}))
    assert weighted.overall()[1] == pytest.approx(2**0.75)


def test_deviations_and_extremes_of_a_run_do_not_count(table, together):
    names = ("iops_avg", "iops_stdev", "iops_min")
    tables = together(table([(0, (100, 5, 10)), (1, (200, 50, 1))], metrics=names))
    assert scored(tables).overall() == pytest.approx([1, 2])
    assert learn_reference(tables, of_node(tables, 0), PARAMS).counted == {("cpu-test", "iops_avg")}
    assert len(learn_reference(tables, of_node(tables, 0), ALL).counted) == 3
    names, rows = ("latency_avg", "latency_max", "block"), [(0, (10, 50, 4)), (1, (5, 99, 64))]
    slow = together(table(rows, metrics=names, units=["s", "s", "B"], orientation=[-1, -1, 1]))
    assert scored(slow).overall() == pytest.approx([1, 2])  # where there is no rate, the average time


def test_neither_one_throttled_run_nor_an_application_moves_a_node(table, together):
    redis = table([(0, 100), (1, 5000)], name="redis-get", aspect="application")
    tables = together(table([(0, 100), (0, 100), (0, 100), (1, 200), (1, 1), (1, 200)]), redis)
    assert scored(tables).overall()[1] == pytest.approx(2)


def test_no_throughput_is_the_smallest_ratio_and_no_latency_is_unknown(table, together):
    dead = together(table([(0, 100), (1, 0)]))
    assert scored(dead).overall()[1] == pytest.approx(1 / 1000)
    unprinted = together(table([(0, 0.1), (1, 0.0)], units=["s"], orientation=[-1]))
    assert np.isnan(scored(unprinted).overall()[1])


def test_a_node_that_did_not_run_a_benchmark_is_scored_by_the_others(table, together):
    tables = together(
        table([(0, 100), (1, 200)]), table([(0, 100)], name="memory-a", aspect="memory"), nodes=("a", "b")
    )
    found = scored(tables)
    assert found.overall()[1] == pytest.approx(2)
    assert np.isnan(found.by_aspect()[1, 1])


def test_nodes_count_alike_in_the_reference_however_often_they_ran(table, together):
    tables = together(table([(0, 100)] + [(1, 300)] * 9 + [(2, 200)]), nodes=("a", "b", "c"))
    reference = learn_reference(tables, np.ones(11, dtype=bool), PARAMS)
    assert reference.table["median"].tolist() == [200]
    assert reference.table["n_nodes"].tolist() == [3] and reference.table["n_executions"].tolist() == [11]


def test_a_machine_that_joins_moves_no_other(campaign):
    _, tables = campaign(nodes=4, runs=20)
    three = of_node(tables, 0) | of_node(tables, 1) | of_node(tables, 2)
    reference = learn_reference(tables, three, PARAMS)
    alone = score_nodes(tables.of_executions(three), reference, PARAMS).overall()
    joined = score_nodes(tables, reference, PARAMS).overall()
    np.testing.assert_array_equal(alone[:3], joined[:3])
    assert np.isnan(alone[3]) and not np.isnan(joined[3])


def test_scores_do_not_depend_on_the_unit_or_on_the_order_of_rows(campaign):
    _, tables = campaign(nodes=3, runs=15)
    expected = scored(tables).overall()
    larger = replace(tables, tables=tuple(replace(one, natural=one.natural * 1024) for one in tables.tables))
    assert scored(larger).overall() == pytest.approx(expected)
    rng = np.random.default_rng(0)
    mixed = []
    for one in tables.tables:
        order = rng.permutation(len(one.executions))
        kept = {name: getattr(one, name)[order] for name in ("executions", "nodes", "natural", "scaled")}
        mixed.append(replace(one, **kept))
    assert scored(replace(tables, tables=tuple(mixed))).overall() == pytest.approx(expected)


def test_known_ratios_are_found(campaign):
    """Node 2 is drawn 0.8 times as fast as node 1 everywhere, node 3 half as fast."""
    aspects = ("cpu", "memory", "disk", "network")
    quality = {f"node-{at}": dict.fromkeys(aspects, q) for at, q in ((1, 1.0), (2, 0.8), (3, 0.5))}
    _, tables = campaign(nodes=3, runs=60, stressed=0.0, quality=quality)
    found = scored(tables)
    assert found.overall() == pytest.approx([1, 0.8, 0.5], rel=0.03)
    assert found.by_aspect()[2] == pytest.approx([0.5] * 4, rel=0.05)


def test_a_rate_that_is_set_and_not_measured_does_not_count(table, together):
    """Three times the speed and the same interval between requests: a score of 3, not √3."""
    measured = table([(0, (100, 10)), (1, (300, 10))], metrics=("iops", "generated_iops"))
    told = replace(measured, is_directed=np.array([True, False]))
    assert scored(together(told)).overall()[1] == pytest.approx(3)
    assert scored(together(told), ALL).overall()[1] == pytest.approx(3)
    alone = replace(measured, is_directed=np.array([False, False]))  # there is nothing better
    assert scored(together(alone)).overall()[1] == pytest.approx(np.sqrt(3))


TYPES = (*(f"fio-{at}" for at in range(8)), "sysbench-cpu", "sysbench-memory", "osbench-files", "osbench-threads")


def drawn(n=600, seed=0):
    """Quality (n,), and what the types measure of it (n, 12): eight share a noise larger than quality."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=n)
    values = quality[:, None] + rng.normal(size=(n, len(TYPES)))
    values[:, :8] += 3 * rng.normal(size=(n, 1))
    return quality, values


def followed(scores, quality):
    return float(np.corrcoef(scores, quality)[0, 1])


def test_the_normal_score_of_a_value_among_three():
    """Of 1, 2, 3: p of 2 is (1 + 1/2 + 1/2) / 4 = 1/2; of what lies below all 1/8, above all 7/8; of 3 it is 3/4."""
    found = normal_scores(np.array([[2.0], [0.0], [9.0], [3.0], [np.nan]]), (np.array([1.0, 2, 3]),))
    np.testing.assert_allclose(found[:, 0], [0, -1.150349, 1.150349, 0.674490, 0], atol=1e-6)
    np.testing.assert_array_equal(normal_scores(np.array([[5.0]]), (np.empty(0),)), [[0]])


def test_noise_that_one_tool_shares_is_not_what_tools_have_in_common():
    quality, values = drawn()
    shared = fit_shared_component(values[:300], TYPES).score(values[300:])
    assert followed(shared, quality[300:]) > 0.8


def test_neither_the_scale_of_a_type_matters_nor_long_tails_nor_that_one_tells_the_opposite():
    _, values = drawn(200)
    turned = values * np.where(np.arange(12) == 8, -1, 1)
    before, stretched, after = (
        fit_shared_component(each, TYPES).score(each) for each in (values, np.exp(3 * values), turned)
    )
    np.testing.assert_allclose(before, stretched, atol=1e-9)
    np.testing.assert_allclose(before, after, atol=1e-9)
    assert followed(after, values.mean(axis=1)) > 0


def test_a_type_that_few_nodes_ran_or_that_is_always_alike_says_nothing():
    _, values = drawn(200)
    values[:120, 9], values[:, 10] = np.nan, 7.0
    found = fit_shared_component(values, TYPES)
    assert found.weights[9] == found.weights[10] == 0
    assert (found.weights[[8, 11]] != 0).all()
    with pytest.raises(ValueError, match="none of which varies"):
        fit_shared_component(np.ones((5, 2)), ("a-1", "b-1"))


def test_a_node_of_which_a_type_is_missing_is_scored_by_the_others():
    _, values = drawn(200)
    asked = values[:1].copy()
    asked[0, 8] = np.nan
    found = fit_shared_component(values, TYPES)
    middle = values[:1].copy()
    middle[0, 8] = np.median(values[:, 8])
    np.testing.assert_allclose(found.score(asked), found.score(middle), atol=0.01)


def test_of_one_tool_alone_types_are_weighed_one_by_one():
    """One group would have no others to agree with: the direction would be any. Six types of like quality are alike."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(800, 1)) + rng.normal(size=(800, 6))
    weights = fit_shared_component(values, [f"fio-{at}" for at in range(6)]).weights
    assert weights.min() > 0.8 * weights.max() > 0
