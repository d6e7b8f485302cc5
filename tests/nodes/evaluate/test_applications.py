"""Rankings against applications, and rank correlations with their intervals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from tasks.nodes.evaluate.applications import (
    METHODS,
    NodeMatrix,
    compare_by_machine_type,
    first_component,
    is_second_half,
    node_matrix,
    rank_figures,
    spearman,
)
from tasks.nodes.params import PreprocessParams, ScoreParams
from tasks.nodes.preprocess.fitting import learn_tables
from tasks.nodes.ranking.node_scores import Levels
from tests.nodes.synthetic import synthetic_history


def drawn(n=200, signal=1.0, seed=0, n_types=6, n_series=3, machine_type="m"):
    """Nodes with a hidden quality that microbenchmarks and applications follow, with noise of their own."""
    rng = np.random.default_rng(seed)
    quality = signal * rng.normal(size=(n, 1))
    levels = Levels(tuple(f"type-{at}" for at in range(n_types)), ("cpu", "disk"), np.arange(n_types) % 2, np.ones(2))
    return NodeMatrix(
        tuple(f"{machine_type}-{seed}-{at}" for at in range(n)),
        np.array([machine_type] * n, dtype=object),
        quality + rng.normal(size=(n, n_types)),
        levels,
        quality + 0.5 * rng.normal(size=(n, n_series)),
        tuple(f"series-{at}" for at in range(n_series)),
    )


def test_spearman_agrees_with_scipy_where_values_are_missing_or_equal_and_constants_have_none():
    rng = np.random.default_rng(0)
    one, other = np.round(rng.normal(size=80), 1), np.round(rng.normal(size=80), 1)
    one[:5], other[3:9] = np.nan, np.nan
    kept = ~np.isnan(one) & ~np.isnan(other)
    assert spearman(one, other[:, None])[0] == pytest.approx(spearmanr(one[kept], other[kept]).statistic)
    few, constant = (np.arange(3.0), np.arange(3.0)), (np.ones(9), np.arange(9.0))
    assert all(np.isnan(spearman(one, other[:, None])[0]) for one, other in (few, constant))


def test_many_noisy_microbenchmarks_together_beat_the_best_of_them_and_the_oracle_never_loses():
    figures = rank_figures(compare_by_machine_type(drawn()))
    assert figures["rank.spearman.m"] > figures["rank.best_single.m"]
    assert figures["rank.best_oracle.m"] >= figures["rank.best_single.m"]
    assert figures["rank.pc1.m"] > figures["rank.best_single.m"]
    assert figures["rank.spearman"] == pytest.approx(figures["rank.spearman.m"])


def test_the_single_microbenchmark_is_chosen_without_the_nodes_that_it_is_measured_on():
    """One microbenchmark is copied from the applications of the tested half alone: the oracle takes it."""
    matrix = drawn(signal=0.0)
    is_second = is_second_half(matrix.nodes)
    matrix.micro[is_second, 4] = matrix.applications[is_second].mean(axis=1)
    (found,) = compare_by_machine_type(matrix)
    first = found.correlations[found.correlations["half"] == 0]
    chosen = {method: own["chosen"].iloc[0] for method, own in first.groupby("method")}
    assert chosen["best_oracle"] == "type-4"
    assert chosen["best_single"] != "type-4"


def test_machine_types_are_never_mixed():
    """Between the two types all differs; within each nothing does."""
    parts = [drawn(signal=0.0, seed=seed, machine_type=name) for seed, name in enumerate("mn")]
    both = NodeMatrix(
        parts[0].nodes + parts[1].nodes,
        np.concatenate([part.machine_types for part in parts]),
        np.concatenate([part.micro + 100 * at for at, part in enumerate(parts)]),
        parts[0].levels,
        np.concatenate([part.applications + 100 * at for at, part in enumerate(parts)]),
        parts[0].series,
    )
    figures = rank_figures(compare_by_machine_type(both))
    assert figures["rank.spearman"] < 0.3 and figures["rank.nodes.m"] == figures["rank.nodes.n"] == 200


def test_latencies_that_mirror_throughputs_are_no_series_of_their_own(table, together):
    rows = [(node, value) for node, value in enumerate((100.0, 200.0))]
    mirrored = [(node, 1 / value) for node, value in rows]
    tables = together(
        table(rows),
        table(rows, name="redis-get", aspect="application"),
        table(mirrored, name="redis-latency", aspect="application", units=["s"], orientation=[-1]),
    )
    found = node_matrix(tables, np.ones(tables.n_executions, dtype=bool), ScoreParams())
    assert found.series == ("redis-get",) and found.applications[:, 0].tolist() == [100, 200]
    assert found.levels.types == ("cpu-test",)
    alone = together(table(mirrored, name="redis-latency", aspect="application", units=["s"], orientation=[-1]))
    only = node_matrix(alone, np.ones(alone.n_executions, dtype=bool), ScoreParams())
    assert only.series == ("redis-latency",) and only.applications[1, 0] > only.applications[0, 0]


NODES, TYPES = 200, 6


def seldom_run():
    """A third of the nodes ran each microbenchmark, and each node two of the six."""
    matrix = drawn()
    is_run = np.arange(NODES)[:, None] % 3 == np.arange(TYPES) % 3
    return replace(matrix, micro=np.where(is_run, matrix.micro, np.nan))


def varying_beside_no_application():
    """The three microbenchmarks that all nodes ran are the same on each node where an application ran."""
    matrix, seldom = drawn(), seldom_run().micro
    has_applications = np.arange(NODES)[:, None] % 2 == 0
    common = np.where(has_applications, 0.0, matrix.micro)
    micro = np.where(np.arange(TYPES) < 3, common, seldom)
    return replace(matrix, micro=micro, applications=np.where(has_applications, matrix.applications, np.nan))


def figures_of(*matrices):
    return rank_figures([one for matrix in matrices for one in compare_by_machine_type(matrix)])


UNCHOSEN = "no microbenchmark varies beside an application"


@pytest.mark.parametrize(
    ("matrix", "shared"), [(seldom_run(), "6 types of"), (varying_beside_no_application(), "never both vary")]
)
def test_a_method_that_is_impossible_says_why_and_the_others_are_told(matrix, shared):
    figures, impossible = figures_of(matrix), {"shared": shared, "best_single": UNCHOSEN, "best_oracle": UNCHOSEN}
    assert {method for method in METHODS if figures[f"rank.{method}.m"] is None} == set(impossible)
    for method, reason in impossible.items():
        for key in (f"rank.{method}.m", f"rank.{method}", f"rank.{method}.mean"):
            assert figures[key] is None and reason in figures[f"{key}.reason"]
    assert "rank.best_single.m.chosen" not in figures
    assert figures["rank.series"] == 3


def test_where_nothing_varies_every_method_says_so():
    figures = figures_of(replace(drawn(), micro=np.ones((NODES, TYPES))))
    for method in METHODS:
        said = figures[f"rank.{method}.m.reason"]
        assert figures[f"rank.{method}.m"] is None
        assert any(words in said for words in ("never both vary", "none of which", "no mic"))


def test_nodes_without_a_machine_type_have_keys_that_name_it_unknown():
    history = synthetic_history(nodes=2, runs=6, types=2)
    history = replace(history, executions=history.executions.assign(machine_type=""))
    every = np.ones(len(history.executions), dtype=bool)
    matrix = node_matrix(learn_tables(history, every, PreprocessParams()), every, ScoreParams())
    figures = rank_figures(compare_by_machine_type(matrix))
    assert figures["rank.nodes.unknown"] == 2 and "rank.spearman.unknown" in figures
    assert [key for key in figures if ".." in key or key.endswith(".")] == []


def test_two_metrics_that_go_together_share_the_component():
    """Both run from -2 to 2, robust deviation 1.4826: direction (1, 1) / √2, so (2, 2) is at √8 / 1.4826."""
    steps = np.arange(-2.0, 3.0)
    places = first_component(
        np.column_stack([steps, 10 * steps + 7]), np.array([[2.0, 27.0], [-2.0, -13.0], [np.nan, 7.0]])
    )
    assert places == pytest.approx([2 * np.sqrt(2) / 1.4826, -2 * np.sqrt(2) / 1.4826, 0], rel=1e-4)
    with pytest.raises(ValueError, match="none of which varies"):
        first_component(np.ones((5, 2)), np.ones((1, 2)))


def test_more_is_better_whichever_way_the_singular_vector_points():
    rng = np.random.default_rng(0)
    for seed in range(10):
        hidden = np.random.default_rng(seed).normal(size=(200, 1))
        places = first_component(hidden + 0.3 * rng.normal(size=(200, 4)), hidden + np.zeros((200, 4)))
        assert np.corrcoef(places, hidden[:, 0])[0, 1] > 0.99


def test_one_odd_node_is_not_the_component():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 3)) * [1, 1, 1] + rng.normal(size=(300, 1)) * [2, 2, 0]
    values[0] = [0, 0, 1e9]
    third, first = first_component(values, np.array([[0, 0, 1.0], [1.0, 0, 0]])) - first_component(
        values, np.zeros((1, 3))
    )
    assert abs(third) < 0.4 * first
