"""A flow of nodes that ends after any of its stages, as if it had been killed there: the next run loses nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows import nodes
from flows.parameters import NodeIngestParams, NodePreprocessParams, NodeRankParams, NodeRecordParams
from tasks.nodes.ranking.params import ScoreParams
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards, champion

pytestmark = [pytest.mark.usefixtures("prefect_server"), pytest.mark.slow]  # each stage starts a flow twice
QUICK = ScoreParams(resamples=100)
Die = Callable[[Any, str], Any]


class Killed(Exception):
    """In the place of a SIGKILL right after a stage."""


@pytest.fixture
def after(monkeypatch: pytest.MonkeyPatch) -> Die:
    """A context in which a flow's module dies after the named stage was done once."""

    def dying(module: Any, stage: str) -> Any:
        done = getattr(module, stage)

        def die(*args: Any, **kwargs: Any) -> Any:
            done(*args, **kwargs)
            raise Killed(stage)

        context = monkeypatch.context()
        patch = context.__enter__()
        patch.setattr(module, stage, die)
        return context

    return dying


def ended(context: Any, work: Callable[[], Any]) -> None:
    """Run what is to die, and take the fault away again."""
    try:
        with pytest.raises(Killed):
            work()
    finally:
        context.__exit__(None, None, None)


@pytest.mark.parametrize("stage", ["find_files", "land_executions", "ingest_batch", "source_version"])
def test_an_ingest(after: Die, stage: str, warehouse: Warehouse, drawn_executions: Callable[..., Path]) -> None:
    paths = [str(drawn_executions(nodes=1, runs=1, seed=seed)) for seed in (0, 1)]
    params = NodeIngestParams(results=paths, source="log", warehouse=warehouse)
    ended(after(nodes, stage), lambda: nodes.ingest_nodes(params))
    assert nodes.ingest_nodes(params)["n_executions"] == 12
    counts = fetch(
        warehouse,
        "SELECT count(*) AS n, count(DISTINCT execution_id) AS m, sum(n_metrics) AS v FROM nodes.executions",
    )
    assert counts["n"].to_list() == counts["m"].to_list() == [6]  # both files have the same ids: the later one counts
    assert fetch(warehouse, "SELECT count(*) AS n FROM nodes.metrics")["n"].to_list() == [int(counts["v"].iloc[0])]


@pytest.mark.parametrize("stage", ["landed_batches", "ingest_batch"])
def test_an_ingest_of_what_was_landed(
    after: Die, stage: str, warehouse: Warehouse, drawn_executions: Callable[..., Path]
) -> None:
    from tasks.nodes.steps import land_recording

    land_recording(str(drawn_executions(nodes=1, runs=1).parent), warehouse.landing_folder, "log", 6)
    params = NodeIngestParams(source="log", warehouse=warehouse)
    ended(after(nodes, stage), lambda: nodes.ingest_nodes(params))
    nodes.ingest_nodes(params)
    assert fetch(warehouse, "SELECT count(*) AS n FROM nodes.executions")["n"].to_list() == [6]


def test_a_recording_that_dies_after_landing_lands_once(
    after: Die, warehouse: Warehouse, drawn_executions: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(drawn_executions(nodes=1, runs=1).parent)
    told = {"folder": folder, "campaign": "c", "isolation": "none", "nodes": ["n"], "n_planned": 6, "n_clean": 6}
    told |= {"n_new": 6, "n_failed": 0, "unavailable": {}, "sampler_cores": 0.0}
    monkeypatch.setattr(nodes, "record", lambda params, folder: told)
    params = NodeRecordParams(folder=folder, landing=warehouse.landing_folder, source="log")
    ended(after(nodes, "land_recording"), lambda: nodes.record_nodes(params))
    assert len(nodes.record_nodes(params)["batches"]) == 1
    assert len(list(Path(warehouse.landing_folder).glob("nodes/*.json"))) == 1


@pytest.mark.parametrize("stage", ["preprocess", "write_report"])
def test_a_preprocessing(after: Die, stage: str, nodes_log: Warehouse) -> None:
    params = NodePreprocessParams(source="log", score=QUICK, warehouse=nodes_log)
    ended(after(nodes, stage), lambda: nodes.preprocess_nodes(params))
    found = nodes.preprocess_nodes(params)
    in_use = champion(nodes_log.models, "nodes", "log", "preprocessor")
    assert in_use is not None
    assert in_use.model_id == found["model_id"]
    assert len(cards(nodes_log.models)) == 1
    n_rows = fetch(nodes_log, "SELECT count(*) AS n FROM nodes.decisions")["n"].to_list()
    assert n_rows == [found["n_recorded"]]


@pytest.mark.parametrize("stage", ["preprocess", "rank", "write_report"])
def test_a_ranking(after: Die, stage: str, nodes_log: Warehouse) -> None:
    params = NodeRankParams(source="log", score=QUICK, warehouse=nodes_log)
    ended(after(nodes, stage), lambda: nodes.rank_nodes(params))
    assert nodes.rank_nodes(params)["n_nodes"] == 3
    counts = fetch(nodes_log, "SELECT count(*) AS n, count(DISTINCT (aspect, node)) AS m FROM nodes.scores")
    assert counts["n"].to_list() == counts["m"].to_list() == [15]  # all, cpu, memory, disk, network
