"""Scores of processors for one thread and for all."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.answers import answer, learn, thread_scores_of_files
from tasks.nodes.history import read_results
from tasks.nodes.params import PreprocessParams, ReadParams, ScoreParams
from tasks.nodes.ranking.threads import threads_of


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
    found = thread_scores_of_files([results(tmp_path / "results.csv")])
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
    found = thread_scores_of_files([str(folder / name) for name in types])
    one = found[found["aspect"] == "cpu_one_thread"].set_index("machine_type")["score"]
    assert one["n2-standard-4"] / one["n1-standard-4"] == pytest.approx(1.264, abs=0.005)
    assert one["n2-standard-4"] / one["c2-standard-4"] == pytest.approx(0.882, abs=0.005)
    assert np.isfinite(found["score"]).all()
