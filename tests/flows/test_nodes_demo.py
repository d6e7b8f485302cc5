"""What the demo tells of nodes: the best, the one that looks worse than it used to, and what the model says."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flows import node_demo
from flows.commands.demo_nodes import show_nodes
from flows.node_demo import BestIn, NodesTold, Suspicious
from flows.node_model_demo import LearnedTold
from flows.node_verdicts_demo import Degrading, OfDose
from tasks.errors import BadInput
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.model.params import FitParams, GraphParams, ModelParams, NetworkParams
from tasks.nodes.params import NodesParams
from tasks.nodes.score_params import ScoreParams
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards

pytestmark = pytest.mark.usefixtures("prefect_server")
QUICK = NodesParams(score=ScoreParams(resamples=100), detect=DetectorParams(trees=10))
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
TOLD = NodesTold(
    n_executions=1800,
    n_nodes=3,
    n_emulated=3,
    best=[
        BestIn(aspect="all", nodes=["large (emulated)"], score=1.62),
        BestIn(aspect="cpu", nodes=["large (emulated)", "small (emulated)"], score=1.5),
    ],
    most_suspicious=Suspicious(
        node="small (emulated)", low_share=0.034, n_executions=480, worst_type="disk-fio@1a2b3c4d", worst_ratio=0.71
    ),
    learned=LEARNED,
    model_id="m",
    report="page",
)
SHIPPED = bool(list(node_demo.RECORDED.glob(node_demo.UNDISTURBED)))


@pytest.fixture(autouse=True)
def _as_wide_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at a terminal, so that no line is wrapped."""
    monkeypatch.delenv("COLUMNS", raising=False)


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


@pytest.fixture
def unlearned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is learned: what the model says is LEARNED."""
    monkeypatch.setattr(node_demo, "tell_learned", lambda *_: LEARNED)


def test_the_best_and_the_most_suspicious_node_are_named_and_called_emulated(
    warehouse: Warehouse, recorded: Path, unlearned: None
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
    monkeypatch.setattr(node_demo, "RECORDED", tmp_path / "none")
    with pytest.raises(BadInput, match=r"none: no recording of nodes; expected executions-\*\.parquet"):
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


def shown(told: NodesTold, capsys: pytest.CaptureFixture[str]) -> list[str]:
    show_nodes(told)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_what_is_shown_is_a_line_each_and_names_recorded_stress(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(TOLD, capsys) == [
        "nodes 1,800 executions of benchmarks on 3 nodes, 3 of them emulated",
        "best node large (emulated), 1.62 times the reference fleet",
        "best by aspect cpu large (emulated) and small (emulated) (tied)",
        "most suspicious small (emulated): 3.4 % of its 480 executions far below its own earlier level, "
        "most in disk-fio, there at 0.71 of it",
        "flagged 361 of 1,800 executions by the model; of the latest, which it has not seen: 4 of 288 without stress; "
        "under recorded stress 23 of 24 strong",
        "degrading none: no node was flagged often enough for an alarm",
        "cost of watching 11.8 % of a node's time at most, at the pace of the recording",
    ]
    assert shown(NodesTold(**TOLD | {"most_suspicious": None}), capsys)[3] == (
        "most suspicious none: no execution lies far below the earlier level of its own node"
    )


def test_what_is_shown_of_alarms_names_the_worst_metric_and_the_stress_behind_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = Degrading(
        node="small (emulated)",
        aspect="disk",
        state="confirmed",
        since="2026-01-05 10:07",
        n_flagged=5,
        n_stressed=4,
        worst="read_clat_avg of disk-fio (-9.1 deviations)",
    )
    second = Degrading(**first | {"aspect": "cpu", "state": "suspected", "worst": ""})
    cleared = Degrading(**first | {"state": "cleared", "since": "2026-01-05 09:00"})

    def degrading(*found: Degrading) -> str:
        told = NodesTold(**TOLD | {"learned": LearnedTold(**LEARNED | {"degrading": list(found), "cost_share": None})})
        lines = shown(told, capsys)
        assert lines[6] == "cost of watching not known"
        return lines[5]

    flags = "5 executions flagged, 4 of them under recorded stress"
    assert degrading(first, second, cleared) == (
        f"degrading small (emulated) in disk (confirmed): {flags}, most in read_clat_avg of disk-fio "
        "(-9.1 deviations); also small (emulated) in cpu (suspected)"
    )
    assert degrading(second) == f"degrading small (emulated) in cpu (suspected): {flags}"
    assert degrading(cleared, Degrading(**cleared | {"aspect": "cpu", "since": "2026-01-05 11:00"})) == (
        "degrading none now; the last was small (emulated) in cpu, cleared 2026-01-05 11:00 UTC"
    )
