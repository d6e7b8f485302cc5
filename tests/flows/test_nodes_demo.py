"""What the demo tells of nodes: the best, and the one that looks worse than it used to."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flows import node_demo
from flows.commands.demo_nodes import show_nodes
from flows.node_demo import BestIn, NodesTold, Suspicious
from tasks.errors import BadInput
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.params import NodesParams
from tasks.nodes.score_params import ScoreParams
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards

pytestmark = pytest.mark.usefixtures("prefect_server")
QUICK = NodesParams(score=ScoreParams(resamples=100), detect=DetectorParams(trees=10))
SHIPPED = bool(list(node_demo.RECORDED.glob(node_demo.UNDISTURBED)))


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_executions: Callable[..., Path]) -> Path:
    """A folder of executions on emulated nodes, the last of which gets worse; beside them some that were disturbed."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    drawn = drawn_executions(types=3, stressed=0.0, drift=1.0, is_emulated=True)
    (folder / "executions-0001.parquet").write_bytes(drawn.read_bytes())
    disturbed = drawn_executions(nodes=4, types=3, runs=1)
    (folder / "flagged-0001.parquet").write_bytes(disturbed.read_bytes())
    monkeypatch.setattr(node_demo, "RECORDED", folder)
    return folder


def test_the_best_and_the_most_suspicious_node_are_named_and_called_emulated(
    warehouse: Warehouse, recorded: Path
) -> None:
    told = node_demo.tell_nodes(warehouse, QUICK, "recorded")
    assert (told["n_executions"], told["n_nodes"], told["n_emulated"]) == (180, 3, 3)  # node-4 was disturbed
    best = {one["aspect"]: one["nodes"] for one in told["best"]}
    assert list(best) == ["all", "cpu", "disk", "memory"]
    assert (best["cpu"], best["memory"]) == (["node-1 (emulated)"], ["node-2 (emulated)"])  # as drawn
    assert told["most_suspicious"] is not None
    assert told["most_suspicious"]["node"] == "node-3 (emulated)"
    assert told["most_suspicious"]["worst_ratio"] < 0.8
    assert Path(told["report"]).exists()


@pytest.mark.slow
def test_told_again_it_preprocesses_and_ranks_nothing_anew(
    warehouse: Warehouse, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = node_demo.tell_nodes(warehouse, QUICK, "recorded")
    monkeypatch.setattr("tasks.nodes.answering.answer", None)  # whoever answered again would fail
    assert node_demo.tell_nodes(warehouse, QUICK, "recorded") == first
    assert len(cards(warehouse.models)) == 1


def test_without_a_recording_it_says_what_is_missing(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_demo, "RECORDED", tmp_path / "none")
    with pytest.raises(BadInput, match=r"none: no recording of nodes; expected executions-\*\.parquet"):
        node_demo.tell_nodes(warehouse, QUICK, "recorded")


@pytest.mark.slow
@pytest.mark.skipif(not SHIPPED, reason="data/recorded/nodes is not there")
def test_the_recording_that_is_shipped_names_emulated_nodes(warehouse: Warehouse) -> None:
    told = node_demo.tell_nodes(warehouse, QUICK, "recorded")
    assert told["n_nodes"] == told["n_emulated"] >= 3
    assert all("emulated" in node for one in told["best"] for node in one["nodes"])


def test_what_is_shown_names_the_best_by_aspect_and_why_one_is_suspicious(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    suspicious = Suspicious(
        node="small (emulated)", low_share=0.034, n_executions=480, worst_type="disk-fio@1a2b3c4d", worst_ratio=0.71
    )
    told = NodesTold(
        n_executions=1800,
        n_nodes=3,
        n_emulated=3,
        best=[
            BestIn(aspect="all", nodes=["large (emulated)"], score=1.62),
            BestIn(aspect="cpu", nodes=["large (emulated)", "small (emulated)"], score=1.5),
        ],
        most_suspicious=suspicious,
        model_id="m",
        report="page",
    )
    show_nodes(told)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "nodes 1,800 executions of benchmarks on 3 nodes, 3 of them emulated",
        "best node large (emulated), 1.62 times the reference fleet",
        "best by aspect cpu large (emulated) and small (emulated) (tied)",
        "most suspicious small (emulated): 3.4 % of its 480 executions far below its own earlier level, "
        "most in disk-fio, there at 0.71 of it",
    ]
    show_nodes(NodesTold(**told | {"most_suspicious": None}))
    assert "none: no execution lies far below the earlier level of its own node" in capsys.readouterr().out
