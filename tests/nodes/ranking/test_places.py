"""Rankings: order, intervals and ties, on few executions and on drawn ones whose order is known."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.answers import answer, learn, thread_scores_of
from tasks.nodes.evaluate.protocol import ranked_nodes
from tasks.nodes.history import read_results
from tasks.nodes.node_words import best_words
from tasks.nodes.params import EvaluateParams, PreprocessParams, ReadParams, ScoreParams
from tasks.nodes.ranking.node_scores import learn_reference
from tasks.nodes.ranking.places import is_tie, rank_nodes, resampled_medians, threads_of

PARAMS = ScoreParams(resamples=400)


def ranked(tables, params=PARAMS, is_reference=None):
    mask = np.ones(tables.n_executions, dtype=bool) if is_reference is None else is_reference
    table = rank_nodes(tables, learn_reference(tables, mask, params), params)
    nodes = table[table["aspect"] == "all"].reset_index(drop=True)
    return SimpleNamespace(table=table, nodes=nodes, best=tuple(nodes["node"][nodes["place"] == 1]))


def around(node, level, n=12, spread=0.02, seed=0):
    rng = np.random.default_rng([seed, node])
    return [(node, level * np.exp(spread * rng.standard_normal())) for _ in range(n)]


def test_the_faster_node_comes_first_and_nodes_that_executions_do_not_tell_apart_are_tied(table, together):
    rows = around(0, 100, spread=0.1) + around(1, 101, spread=0.1) + around(2, 300)
    found = ranked(together(table(rows), nodes=("a", "b", "c")))
    assert found.best == ("c",) and found.nodes["n_executions"].tolist() == [12] * 3
    assert found.nodes["place"].tolist() == [1, 2, 2] and found.nodes["n_tied"].tolist() == [1, 2, 2]
    assert (found.nodes["low"] < found.nodes["score"]).all() and (found.nodes["score"] < found.nodes["high"]).all()


def test_nodes_that_ran_once_are_not_told_apart_where_nobody_repeats(table, together):
    found = ranked(together(table([(0, 100), (1, 900)]))).nodes
    assert found["low"].isna().all() and found["place"].tolist() == [1, 1]


def test_a_node_that_ran_once_borrows_the_spread_of_the_others(table, together):
    rows = [*around(0, 100, n=40), (1, 200.0), (2, 101.0)]
    found = ranked(together(table(rows), nodes=("a", "b", "c"))).nodes.set_index("node")
    assert found.loc["b", "place"] == 1
    assert found.loc["a", "place"] == found.loc["c", "place"] == 2
    width = np.log(found["high"] / found["low"])
    assert width["b"] > 3 * width["a"]  # one run says less than forty


def test_an_interval_is_unknown_where_the_spread_of_one_of_its_benchmarks_is(table, together):
    once = table([(0, 100), (1, 120)], name="memory-a", aspect="memory")
    found = ranked(together(table(around(0, 100) + around(1, 150)), once)).table
    assert found[found["aspect"] == "all"]["low"].isna().all()
    assert found[found["aspect"] == "cpu"]["low"].notna().all()


def test_another_node_moves_neither_scores_nor_intervals(table, together):
    rows = around(0, 100) + around(1, 110)
    nodes = ("a", "b", "c")
    few = together(table(rows), nodes=nodes)
    more = together(table(rows + around(2, 500)), nodes=nodes)
    is_old = np.arange(more.n_executions) < len(rows)
    before = ranked(few).nodes.set_index("node")
    after = ranked(more, is_reference=is_old).nodes.set_index("node").loc[before.index]
    assert after[["score", "low", "high"]].to_numpy() == pytest.approx(before[["score", "low", "high"]].to_numpy())


def levels_of(*levels):
    """Rows of as many nodes, each with ten executions from 1.5 % below its level to 1.5 % above."""
    return [(node, level * (0.985 + 0.03 * at / 9)) for node, level in enumerate(levels) for at in range(10)]


@pytest.mark.parametrize(("level", "is_tied"), [(100.0, True), (104.0, False), (96.0, False)])
def test_nodes_are_tied_by_their_intervals_and_not_by_how_near_they_are(table, together, level, is_tied):
    """By hand: whatever is drawn anew, the median of ten lies within 0.985 and 1.015 of the level, so the ratio of two
    medians within 1.031 of that of the levels: 4 % apart is never tied, though it is less than 5 %."""
    found = ranked(together(table(levels_of(100.0, level)))).nodes
    assert found["place"].tolist() == ([1, 1] if is_tied else [1, 2])
    assert found["n_tied"].tolist() == ([2, 2] if is_tied else [1, 1])


def test_a_node_shares_the_place_of_the_best_that_it_may_equal_and_not_that_of_the_next(table, together):
    """By hand: of five executions 1.5 % below a level and five above, the median of ten draws is below in 386 of 1,024
    and above as often. Nodes 2 % apart change their order in one of seven draws; those 4 % apart never do, as 96 times
    1.015 is less than 100 times 0.985."""
    levels = enumerate((100.0, 98.0, 96.0))
    rows = [(node, level * by) for node, level in levels for by in (0.985, 1.015) for _ in range(5)]
    found = ranked(together(table(rows), nodes=("a", "b", "c"))).nodes
    assert found["node"].tolist() == ["a", "b", "c"] and found["place"].tolist() == [1, 1, 3]


def test_the_order_of_drawn_nodes_is_found_in_every_aspect(campaign):
    """known_quality: node-1 leads the CPU, node-2 memory, node-3 disk, each 1.25 times as good as the next."""
    _, tables = campaign(nodes=3, runs=40, stressed=0.0)
    found = ranked(tables).table
    for aspect, order in {
        "cpu": ["node-1", "node-2", "node-3"],
        "memory": ["node-2", "node-3", "node-1"],
        "disk": ["node-3", "node-1", "node-2"],
        "network": ["node-1", "node-2", "node-3"],
    }.items():
        own = found[found["aspect"] == aspect]
        assert own["node"].tolist() == order and own["place"].tolist() == [1, 2, 3], aspect


def test_twins_are_tied_about_as_often_as_the_confidence_says(table, together):
    """An interval that is too narrow would tell twins apart."""
    n_tied = 0
    for seed in range(40):
        found = ranked(together(table(around(0, 100, seed=seed) + around(1, 100, seed=seed)))).nodes
        n_tied += found["place"].tolist() == [1, 1]
    assert n_tied >= 34


def test_a_tie_is_an_interval_that_holds_one():
    """The quantiles of -1, -0.98, … 1 at 0.025 and 0.975 are -0.95 and 0.95: a shift by 0.94 leaves 0 inside."""
    ones = np.linspace(-1, 1, 101)
    for shift, is_tied in ((0.94, True), (-0.94, True), (0.96, False), (-0.96, False), (np.nan, True)):
        assert is_tie(ones + shift, np.zeros(101)) is is_tied


PART = [["b", 1, ""], ["a", 2, ""], ["c", 3, "memory"]]


def part_of_a_fleet(table, together):
    """Nodes a and b ran both benchmarks, c the one of the CPU, where it is the fastest."""
    cpu = table(around(0, 100) + around(1, 110) + around(2, 130))
    memory = table(around(0, 100) + around(1, 110), name="memory-a", aspect="memory")
    return together(cpu, memory, nodes=("a", "b", "c"))


def test_a_node_that_ran_one_benchmark_is_not_the_best_of_all(table, together):
    found = ranked(part_of_a_fleet(table, together))
    assert found.best == ("b",)
    assert found.nodes[["node", "place", "lacks"]].to_numpy().tolist() == PART
    cpu = found.table[found.table["aspect"] == "cpu"]
    assert cpu["node"].tolist() == ["c", "b", "a"] and (cpu["lacks"] == "").all()


def test_an_aspect_that_few_ran_is_expected_of_nobody(table, together):
    few = part_of_a_fleet(table, together)
    disk = table(around(0, 100), name="disk-a", aspect="disk")
    assert ranked(together(few.tables[0], disk, nodes=("a", "b", "c"))).best == ("c",)


def test_nodes_of_a_large_fleet_stand_in_the_same_order_without_intervals(table, together):
    tables = part_of_a_fleet(table, together)
    params = EvaluateParams(score=PARAMS, max_ranked=1)
    found, figures = ranked_nodes(tables, np.ones(tables.n_executions, dtype=bool), params)
    assert found["ranking"][["node", "place", "lacks"]].to_numpy().tolist() == PART
    assert figures["nodes.best"] == "b"


def test_without_an_execution_far_below_no_node_is_the_most_suspicious(table, together):
    tables = together(table([(node, 100 + run) for run in range(5) for node in (0, 1)]))
    _, figures = ranked_nodes(tables, np.ones(10, dtype=bool), EvaluateParams(score=PARAMS))
    assert figures["nodes.most_suspicious"] is None
    assert "no node stands out" in figures["nodes.most_suspicious.reason"]


def fleet_of(table, together, n_nodes, tools=("fio", "sysbench"), machine_types=None):
    """Nodes of rising quality; two types of the first tool share a noise that the second tool does not know."""
    rng = np.random.default_rng(4)
    noise = rng.permutation(np.linspace(-1, 1, n_nodes))
    types = []
    for tool, share in ((f"{tools[0]}-a", 1), (f"{tools[0]}-b", 1), (f"{tools[1]}-c", 0), (f"{tools[1]}-d", 0)):
        level = 100 * np.exp(0.02 * np.arange(n_nodes) + 0.2 * share * noise)
        rows = [(node, level[node] * (1 + 0.0001 * run)) for run in range(6) for node in range(n_nodes)]
        types.append(table(rows, name=tool))
    names = tuple(f"n{at:02}" for at in range(n_nodes))
    return together(*types, nodes=names, machine_types=machine_types or ["m"] * n_nodes)


def test_ten_nodes_that_ran_two_tools_stand_in_the_order_of_what_the_tools_say_in_common(table, together):
    nodes = ranked(fleet_of(table, together, 12)).nodes
    assert nodes["shared"].notna().all() and nodes["shared"].is_monotonic_decreasing
    assert (nodes["place"] == nodes["shared_place"]).all() and not nodes["score"].is_monotonic_decreasing


@pytest.mark.parametrize(
    ("n_nodes", "tools", "machine_types"),
    [(9, ("fio", "sysbench"), None), (12, ("fio", "fio"), None), (12, ("fio", "sysbench"), ["m", "n"] * 6)],
)
def test_fewer_nodes_of_a_machine_type_or_one_tool_stand_in_the_order_of_the_score(
    table, together, n_nodes, tools, machine_types
):
    nodes = ranked(fleet_of(table, together, n_nodes, tools, machine_types)).nodes
    assert nodes["shared"].isna().all() and nodes["shared_place"].isna().all()
    assert nodes["score"].is_monotonic_decreasing


def test_within_a_machine_type_nodes_have_places_of_their_own_and_the_whole_fleet_those_of_the_score(table, together):
    nodes = ranked(fleet_of(table, together, 22, machine_types=["m", "n"] * 11)).nodes
    assert nodes["score"].is_monotonic_decreasing
    for _, of_type in nodes.groupby("machine_type"):
        by_shared = of_type.sort_values("shared", ascending=False)
        assert by_shared["shared_place"].is_monotonic_increasing and by_shared["shared_place"].iloc[0] == 1


@pytest.mark.parametrize(
    ("best", "n_nodes", "expected"),
    [
        ([], 0, "none: no metric counts, so no node has a score; whorl nodes metrics says why"),
        (["a"], 3, "A"),
        (["a"], 1, "cannot be told: no other node to compare A with"),
        (["a", "b"], 3, "A, b: no difference can be told between these 2 of 3 nodes"),
        (["a", "b"], 2, "no difference can be told between A, b: their intervals say"),
    ],
)
def test_where_intervals_tell_no_difference_the_answer_says_so(best, n_nodes, expected):
    assert best_words(best, n_nodes, {"a": "A"}).startswith(expected)


MANY = 200_000


def shares(values, n_drawn):
    found = resampled_medians(np.asarray(values, dtype=float), n_drawn, MANY, np.random.default_rng(0))
    levels, counts = np.unique(found, return_counts=True)
    return levels.tolist(), counts / MANY


def test_of_three_values_the_middle_one_is_the_median_in_13_of_27_resamples():
    """The smallest is, if two or three of three draws are it: 3 (1/3)² (2/3) + (1/3)³ = 7/27; so is the largest."""
    levels, found = shares([3, 1, 2], 3)
    assert levels == [1, 2, 3]
    assert found == pytest.approx([7 / 27, 13 / 27, 7 / 27], abs=0.005)


@pytest.mark.parametrize("n_drawn", [1, 2, 5, 8])
def test_the_distribution_is_that_of_resamples_which_are_drawn(n_drawn):
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    rng = np.random.default_rng(1)
    drawn = np.median(values[rng.integers(5, size=(50_000, n_drawn))], axis=1)
    found = resampled_medians(values, n_drawn, 50_000, rng)
    for level in (1.5, 3.5, 7.0, 13.0):
        assert (found < level).mean() == pytest.approx((drawn < level).mean(), abs=0.015)


@pytest.mark.parametrize(
    ("benchmark", "metric", "template", "expected"),
    [
        ("cpu-sysbench", "events_per_second", "sysbench cpu --threads=16 --time=2 run", "all"),
        ("cpu-sysbench", "events_per_second", "sysbench cpu --threads=1 --time=2 run", "one"),
        ("cpu-sysbench", "events_per_second", "", "unsaid"),
        ("stressngsinglecore", "cpu_bogo_ops", "", "one"),
        ("stressng", "cpu_bogo_ops", "", "all"),
        ("stressngfull", "bogo_ops_1", "", "one"),
        ("stressngfull", "bogo_ops_2", "", "unsaid"),
        ("stressngfull", "bogo_ops_most", "", "all"),
        ("stressng-benchmarks", "bitops_n", "", "all"),
        ("compression-text", "zstd_1_threads_1_compress", "", "one"),
        ("compression-text", "zstd_1_threads_4_compress", "", "all"),
        ("passmark", "cpu_singlethread", "", "one"),
        ("bw-mem", "rd_1", "", "unsaid"),  # a size
    ],
)
def test_threads_are_told_by_command_or_name(benchmark: str, metric: str, template: str, expected: str) -> None:
    assert threads_of(benchmark, metric, template) == expected


def results(path: Path, is_cut: Callable[[int], bool] = lambda threads: False) -> str:
    """A long table: node b has as fast cores as a, and twice as many; c is slower by a fifth, with as many as a.
    is_cut: whether results of so many threads are left out."""
    rows = [
        (node, "cpu-sysbench", f"2026-01-01T{hour:02}:{minute:02}:00", f"eps_threads_{threads}", rate, "1/s")
        for node, one, every in (("a", 100, 400), ("b", 100, 800), ("c", 80, 320))
        for hour in range(6)
        for minute, threads, rate in ((0, 1, one * (1 + hour / 500)), (30, 16, every * (1 + hour / 500)))
        if not is_cut(threads)
    ]
    columns = ["node", "benchmark", "started_at", "metric", "value", "unit"]
    frame = pd.DataFrame(rows, columns=columns).assign(machine_type=lambda rows: "type-" + rows["node"])
    frame.to_csv(path, index=False)
    return str(path)


def test_one_thread_and_all_threads_are_apart(tmp_path: Path) -> None:
    found = thread_scores_of(read_results([results(tmp_path / "results.csv")], ReadParams()).history)
    table = found.pivot_table(index="node", columns="aspect", values="score")
    one, every = table["cpu_one_thread"], table["cpu_all_threads"]
    assert one["a"] / one["b"] == pytest.approx(1)
    assert one["a"] / one["c"] == pytest.approx(1.25)
    assert every["b"] / every["a"] == pytest.approx(2)
    assert set(found["machine_type"]) == {"type-a", "type-b", "type-c"}


def ranking_of(file: str) -> pd.DataFrame:
    history = read_results([file], ReadParams(), "").history
    return answer(history, *learn(history, PreprocessParams(), ScoreParams()), ScoreParams()).ranking


def test_a_ranking_has_one_thread_and_all_as_aspects_of_their_own(tmp_path: Path) -> None:
    alone = ranking_of(results(tmp_path / "alone.csv", is_cut=lambda threads: threads > 1))
    assert set(alone["aspect"]) == {"all", "cpu"}
    ranking = ranking_of(results(tmp_path / "results.csv"))
    assert set(ranking["aspect"]) == {"all", "cpu", "cpu_one_thread", "cpu_all_threads"}
    place = ranking.set_index(["aspect", "node"])[["place", "n_tied", "low", "score", "high"]]
    assert place.loc[("cpu_one_thread", "a"), ["place", "n_tied"]].tolist() == [1, 2]  # b has the same cores
    assert place.loc[("cpu_all_threads", "b"), ["place", "n_tied"]].tolist() == [1, 1]
    assert (place["low"] <= place["score"]).all() and (place["score"] <= place["high"]).all()


def test_scores_of_one_thread_follow_what_cloud_types_are_known_for() -> None:
    folder = Path(os.environ.get("WHORL_DATASETS", "-")) / "sparecores" / "gcp"
    if not folder.exists():
        pytest.skip("needs sparecores/ in the folder WHORL_DATASETS")
    types = ("n1-standard-4", "n2-standard-4", "c2-standard-4")
    found = thread_scores_of(read_results([str(folder / name) for name in types], ReadParams()).history)
    one = found[found["aspect"] == "cpu_one_thread"].set_index("machine_type")["score"]
    assert one["n2-standard-4"] / one["n1-standard-4"] == pytest.approx(1.264, abs=0.005)
    assert one["n2-standard-4"] / one["c2-standard-4"] == pytest.approx(0.882, abs=0.005)
    assert np.isfinite(found["score"]).all()
