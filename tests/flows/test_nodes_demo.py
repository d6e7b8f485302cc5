"""What the demo tells of nodes: the best, and what the model says."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flows import node_demo
from flows.node_model_demo import LearnedTold
from flows.node_verdicts_demo import OfDose
from tasks import datasets
from tasks.errors import BadInput
from tasks.nodes.params import NodesParams
from tasks.nodes.perona.params import FitParams, GraphParams, ModelParams, NetworkParams
from tasks.nodes.score_params import ScoreParams
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards

pytestmark = pytest.mark.usefixtures("prefect_server")
QUICK = NodesParams(score=ScoreParams(resamples=100))
SMALL = ModelParams(
    graph=GraphParams(node_metrics=False),
    network=NetworkParams(hidden=8, intermediate=8, heads=1),
    fit=FitParams(epochs=1),
)
LEARNED = LearnedTold(
    model_id="f",
    n_executions=1800,
    n_flagged=361,
    unseen=[OfDose(dose_level=0, n_executions=288, n_flagged=4), OfDose(dose_level=3, n_executions=24, n_flagged=23)],
    degrading=[],
    cost_share=0.1184,
)
SHIPPED = bool(list((datasets.RECORDED / "nodes").glob(node_demo.UNDISTURBED)))


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_executions: Callable[..., Path]) -> Path:
    """A folder of executions on emulated nodes, the last of which gets worse; beside them some that were disturbed."""
    folder = tmp_path / "recorded" / "nodes"
    folder.mkdir(parents=True)
    drawn = drawn_executions(types=3, stressed=0.0, drift=1.0, is_emulated=True)
    (folder / "executions-0001.parquet").write_bytes(drawn.read_bytes())
    disturbed = drawn_executions(nodes=4, types=3, runs=1)
    (folder / "flagged-0001.parquet").write_bytes(disturbed.read_bytes())
    monkeypatch.setattr("tasks.datasets.RECORDED", folder.parent)
    return folder


@pytest.fixture
def unlearned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is learned: what the model says is LEARNED."""
    monkeypatch.setattr(node_demo, "tell_learned", lambda *_: LEARNED)


def test_the_best_nodes_are_named_and_called_emulated(warehouse: Warehouse, recorded: Path, unlearned: None) -> None:
    told = node_demo.tell_nodes(warehouse, QUICK, "recorded")
    assert (told["n_executions"], told["n_nodes"], told["n_emulated"]) == (180, 3, 3)  # node-4 was disturbed
    best = {one["aspect"]: one["nodes"] for one in told["best"]}
    assert list(best) == ["all", "cpu", "disk", "memory"]
    assert (best["cpu"], best["memory"]) == (["node-1 (emulated)"], ["node-2 (emulated)"])  # as drawn
    assert Path(told["report"]).exists()


@pytest.mark.slow
def test_told_again_it_ranks_and_learns_nothing_anew(
    warehouse: Warehouse, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = QUICK.model_copy(update={"model": SMALL})
    first = node_demo.tell_nodes(warehouse, nodes, "recorded")
    found = first["learned"]
    assert found["n_executions"] == 180
    [unseen] = found["unseen"]  # a fifth of the 20 executions of each of 3 types on 3 nodes, none of them stressed
    assert (unseen["dose_level"], unseen["n_executions"]) == (0, 36)
    assert found["cost_share"] == pytest.approx(2 / 30, rel=0.01)  # 2 s of each 30 s, as drawn
    for work in ("answering.answer", "learned.training.train_source", "learned.fingerprinting.fingerprint"):
        monkeypatch.setattr(f"tasks.nodes.{work}", None)  # whoever did it again would fail
    assert node_demo.tell_nodes(warehouse, nodes, "recorded") == first
    assert sorted(card.kind for card in cards(warehouse.models)) == ["fingerprint", "preprocessor"]
    monkeypatch.setattr("tasks.nodes.learned.remembered.code_version", lambda: "9.9")
    with pytest.raises(TypeError, match="not callable"):  # a model of other code is not used again
        node_demo.tell_nodes(warehouse, nodes, "recorded")


def test_without_a_recording_it_says_what_is_missing(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.datasets.RECORDED", tmp_path / "none")
    with pytest.raises(BadInput, match=r"none/nodes: no recording of nodes; expected executions-\*\.parquet"):
        node_demo.tell_nodes(warehouse, QUICK, "recorded")


@pytest.mark.slow
@pytest.mark.skipif(not SHIPPED, reason="data/recorded/nodes is not there")
def test_the_recording_that_is_shipped_names_emulated_nodes_and_the_model_finds_its_strong_stress(
    warehouse: Warehouse,
) -> None:
    told = node_demo.tell_nodes(warehouse, QUICK, "recorded")
    assert told["n_nodes"] == told["n_emulated"] >= 3
    assert all("emulated" in node for one in told["best"] for node in one["nodes"])
    flagged = {one["dose_level"]: one["n_flagged"] / one["n_executions"] for one in told["learned"]["unseen"]}
    assert flagged[3] > 0.5 > 0.1 > flagged[0]
