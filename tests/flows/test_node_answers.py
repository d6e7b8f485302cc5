"""The flows that answer questions about nodes, run here and now as the command line runs them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.nodes import (
    evaluate_nodes,
    preprocess_nodes,
    rank_nodes,
)
from flows.parameters import NodeEvaluateParams, NodePreprocessParams, NodeRankParams
from tasks.errors import NotFound
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.ranking.params import ScoreParams
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards, champion
from tasks.warehouse.runs import compare_runs, list_runs, read_run

pytestmark = pytest.mark.usefixtures("prefect_server")
QUICK = ScoreParams(resamples=100)


def artifact(key: str) -> str:
    """The latest artifact under a key, as it reads."""
    from prefect.artifacts import Artifact

    found: Any = Artifact.get(key)
    assert found is not None
    return str(found.data).replace("\\", "")


def test_a_preprocessing_is_registered_with_what_it_decided_of_each_metric(nodes_log: Warehouse) -> None:
    params = NodePreprocessParams(source="log", score=QUICK, warehouse=nodes_log)
    found = preprocess_nodes(params)
    in_use = champion(nodes_log.models, "nodes", "log", "preprocessor")
    assert in_use is not None
    assert in_use.model_id == found["model_id"]
    assert (nodes_log.models / "nodes" / found["model_id"] / "preprocessor.json").exists()
    kept = fetch(nodes_log, "SELECT is_kept, why FROM nodes.decisions WHERE source = 'log'")
    assert (len(kept), int(kept["is_kept"].sum())) == (found["n_recorded"], found["n_kept"])
    assert kept.loc[~kept["is_kept"], "why"].ne("").all()
    page = artifact("nodes-log-metrics")
    assert f"{found['n_kept']} of {found['n_recorded']} metrics kept" in page
    assert "the paper recorded 153 metrics of six benchmarks and kept 54" in page
    again = preprocess_nodes(params)
    assert again["model_id"] == found["model_id"]
    assert len(cards(nodes_log.models)) == 1


def test_a_ranking_is_kept_and_shown_with_intervals_and_ties(nodes_log: Warehouse) -> None:
    found = rank_nodes(NodeRankParams(source="log", score=QUICK, warehouse=nodes_log))
    assert (found["n_nodes"], found["n_executions"]) == (3, 360)
    scores = fetch(nodes_log, "SELECT * FROM nodes.scores WHERE source = 'log' AND aspect = 'cpu' ORDER BY rank")
    assert scores["node"].to_list() == ["node-1", "node-2", "node-3"]  # as drawn: 1, 0.8, 0.64
    assert ((scores["low"] <= scores["score"]) & (scores["score"] <= scores["high"])).all()
    assert scores["model_id"].unique().tolist() == [cards(nodes_log.models)[0].model_id]
    page = artifact("nodes-log-ranking")
    assert "| cpu | 1 | node-1 |" in page
    assert "How good each node is" in artifact("nodes-log-summary")
    assert Path(found["report"]).exists()
    [run] = list_runs(nodes_log).to_dict("records")
    assert read_run(nodes_log, run["run_id"])["figures"]["best"] == found["best"]


@pytest.mark.slow
def test_a_second_ranking_replaces_the_first_and_keeps_its_reference(nodes_log: Warehouse) -> None:
    params = NodeRankParams(source="log", score=QUICK, warehouse=nodes_log)
    first = rank_nodes(params)
    second = rank_nodes(params)
    assert first == second
    counts = fetch(nodes_log, "SELECT count(*) AS n, count(DISTINCT (node, aspect)) AS m FROM nodes.scores")
    assert counts["n"].to_list() == counts["m"].to_list()
    assert len(cards(nodes_log.models)) == 1


def test_a_source_without_executions_says_how_to_get_some(nodes_log: Warehouse) -> None:
    with pytest.raises(NotFound, match="'nothing' has no executions of benchmarks; fill it with 'whorl nodes ingest"):
        rank_nodes(NodeRankParams(source="nothing", warehouse=nodes_log))


@pytest.fixture(scope="session")
def quick_evaluation() -> EvaluateParams:
    """The parameters of an evaluation of few splits."""
    return EvaluateParams(score=QUICK, repeats=1, max_left_nodes=1, resamples=100)


@pytest.mark.slow
def test_two_experiments_on_a_source_can_be_compared(nodes_log: Warehouse, quick_evaluation: EvaluateParams) -> None:
    for seed in (0, 1):
        asked = quick_evaluation.model_copy(update={"seed": seed})
        figures = evaluate_nodes(NodeEvaluateParams(source="log", evaluate=asked, warehouse=nodes_log))
        assert (figures["n"], figures["n_nodes"]) == (360, 3)
    second, first = list_runs(nodes_log)["run_id"]
    rows = compare_runs(nodes_log, first, second).set_index("key")
    assert rows.loc["parameters.evaluate.seed", ["first", "second"]].tolist() == [0, 1]
    assert "Plain answers about the nodes of source log" in artifact("nodes-log-evaluation")
    kept = fetch(nodes_log, "SELECT value FROM nodes.evaluation_figures WHERE key = 'detect.f1_outlier.zscore'")
    assert kept["value"].to_list() == pytest.approx([figures["detect.f1_outlier.zscore"]])
    assert cards(nodes_log.models) == []


@pytest.mark.slow
def test_files_are_evaluated_without_being_kept(
    warehouse: Warehouse, drawn_executions: Callable[..., Path], quick_evaluation: EvaluateParams
) -> None:
    path = drawn_executions()
    params = NodeEvaluateParams(results=[str(path)], evaluate=quick_evaluation, warehouse=warehouse)
    found = evaluate_nodes(params)
    assert (found["n"], found["n_refused"]) == (360, 0)
    assert Path(found["report"]).exists()
    assert path.name in artifact("nodes-files-evaluation")
    assert fetch(warehouse, "SELECT count(*) AS n FROM nodes.executions")["n"].to_list() == [0]
