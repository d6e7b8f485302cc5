"""The flows about Perona's model, run here and now as the command line runs them."""

from pathlib import Path
from typing import Any

import pytest

from flows.nodes import (
    fingerprint_nodes,
    train_nodes,
    watch_nodes,
)
from flows.parameters import NodeFingerprintParams, NodeTrainParams, NodeWatchParams
from tasks.errors import NotFound
from tasks.nodes.detect.params import AlarmParams
from tasks.nodes.perona.params import FitParams, GraphParams, ModelParams, NetworkParams
from tasks.nodes.ranking.params import ScoreParams
from tasks.settings import Settings
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards

pytestmark = pytest.mark.usefixtures("prefect_server")
QUICK = ScoreParams(resamples=100)
SMALL = ModelParams(
    graph=GraphParams(node_metrics=False),
    network=NetworkParams(hidden=8, intermediate=8, heads=1),
    fit=FitParams(epochs=1, batch_size=64),
)
EAGER = AlarmParams(threshold=0.001, flagged=2, last=2, min_executions=2, confirm=500)  # what is judged at all alarms


def artifact(key: str) -> str:
    """The latest artifact under a key, as it reads."""
    from prefect.artifacts import Artifact

    found: Any = Artifact.get(key)
    assert found is not None
    return str(found.data).replace("\\", "")


def trained(warehouse: Warehouse, **asked: Any) -> Any:
    """A network."""
    given = {"source": "log", "variant": "ours", "model": SMALL, "score": QUICK}
    return train_nodes(NodeTrainParams(**{**given, **asked}, warehouse=warehouse))


def test_a_detector_is_trained_asked_and_watched_by(nodes_log: Warehouse) -> None:
    found = train_nodes(NodeTrainParams(source="log", score=QUICK, warehouse=nodes_log))
    assert found["figures"]["recall"] > 0.3  # a third of the doses is one deviation
    assert "To be expected over this fleet: about" in artifact("nodes-log-model")
    told = fingerprint_nodes(NodeFingerprintParams(source="log", score=QUICK, warehouse=nodes_log))
    assert (told["model_id"], told["n_judged"], told["n_fingerprints"]) == (found["model_id"], 360, 0)
    assert "Executions that look degraded, and why" in artifact("nodes-log-fingerprints")
    watching = NodeWatchParams(source="log", alarm=EAGER, score=QUICK, warehouse=nodes_log)
    seen = watch_nodes(watching)
    assert seen["alarms"]
    assert seen["cannot_ask"] == sorted({node for node, _, _ in seen["suspected"]})
    assert seen["asked"] == []
    assert "suspected" in artifact("nodes-log-states")
    assert Path(seen["report"]).exists()
    assert watch_nodes(watching)["alarms"] == []


def test_a_network_beside_it_makes_fingerprints(nodes_log: Warehouse) -> None:
    detector = train_nodes(NodeTrainParams(source="log", score=QUICK, warehouse=nodes_log))
    found = trained(nodes_log)
    assert found["champion_id"] == found["model_id"]
    assert f"the figures are of the latest {found['n_tested']:,}" in artifact("nodes-log-model")
    told = fingerprint_nodes(NodeFingerprintParams(source="log", score=QUICK, warehouse=nodes_log))
    assert (told["model_id"], told["network_id"]) == (detector["model_id"], found["model_id"])
    assert told["n_fingerprints"] == 360
    assert "| cpu | 1 |" in artifact("nodes-log-fingerprints")


@pytest.mark.slow
def test_the_next_training_takes_the_parameters_of_the_model_in_use(nodes_log: Warehouse) -> None:
    first = trained(nodes_log)
    other = SMALL.model_copy(update={"fit": FitParams(epochs=2, batch_size=32)})
    second = trained(nodes_log, model=other)
    assert second["is_from_before"] and second["model_id"] == first["model_id"]  # by the same parameters
    assert "In use: this model; made before" in artifact("nodes-log-model")
    third = trained(nodes_log, model=other, as_in_use=False)
    assert not third["is_from_before"]
    found = {card.model_id: card.parameters["model"]["fit"] for card in cards(nodes_log.models)}
    assert (found[first["model_id"]]["epochs"], found[third["model_id"]]["epochs"]) == (1, 2)
    fourth = trained(nodes_log, model=other, as_in_use=False, trains_again=True)
    assert not fourth["is_from_before"] and fourth["model_id"] not in found


@pytest.mark.slow
def test_a_suspected_node_with_a_deployment_is_asked_once_for_the_benchmarks_of_the_aspect(
    nodes_log: Warehouse,
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterTags

    from flows.engine.deploying import deploy
    from flows.nodes import ask_for_benchmarks

    fleet = {"nodes": ["node-1"], "landing": "memory://landing", "source": "log"}
    deploy(Settings.model_validate({"whorl": {"home": str(nodes_log.home)}, "nodes": {"fleet": fleet}}))
    suspected = [["node-1", "disk", "2026-01-05 10:00:00"], ["node-2", "cpu", "2026-01-05 10:00:00"]]
    assert ask_for_benchmarks(nodes_log, "log", suspected) == (["nodes-record/node-1 (disk)"], ["node-2"])
    ask_for_benchmarks(nodes_log, "log", suspected)  # the same newest execution: nothing new is asked
    with get_client(sync_client=True) as client:
        wanted = FlowRunFilter(tags=FlowRunFilterTags(all_=["fresh-benchmark"]))
        [run] = client.read_flow_runs(flow_run_filter=wanted)
    assert run.parameters["record"]["benchmarks"] == ["disk-fio", "disk-ioping"]
    assert run.parameters["record"]["node"] == "node-1"
    assert run.parameters["record"]["runs"] == 0


def test_a_source_without_a_model_is_one_line(nodes_log: Warehouse) -> None:
    with pytest.raises(NotFound, match="no trained model of nodes yet; make one with whorl nodes train"):
        watch_nodes(NodeWatchParams(source="log", warehouse=nodes_log))
