"""What the demo finds in recordings."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flows import demo
from tasks import datasets
from tasks.errors import BadInput
from tasks.nodes.params import NodesParams, ScoreParams
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards
from tasks.workloads.identifications import read_identifications
from tasks.workloads.models import champion_of
from tasks.workloads.params import WorkloadsParams

pytestmark = pytest.mark.usefixtures("prefect_server")
QUICK = NodesParams(score=ScoreParams(resamples=100))
SHIPPED = bool(list((datasets.RECORDED / "nodes").glob(demo.UNDISTURBED_EXECUTIONS)))


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_executions: Callable[..., Path]) -> Path:
    """A folder of executions on emulated nodes, the last of which gets worse; beside them some that were disturbed."""
    folder = tmp_path / "recorded" / "nodes"
    folder.mkdir(parents=True)
    drawn = drawn_executions(types=3, stressed=0.0, is_emulated=True)
    (folder / "executions-0001.parquet").write_bytes(drawn.read_bytes())
    disturbed = drawn_executions(nodes=4, types=3, runs=1)
    (folder / "flagged-0001.parquet").write_bytes(disturbed.read_bytes())
    monkeypatch.setattr("tasks.datasets.RECORDED", folder.parent)
    return folder


def test_the_best_nodes_are_named_and_told_again_nothing_is_ranked_or_learned_anew(
    warehouse: Warehouse, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = demo.rank_recorded(warehouse, QUICK)
    assert (first["n_executions"], first["n_nodes"], first["n_emulated"]) == (180, 3, 3)  # node-4 was disturbed
    best = {one["aspect"]: one["nodes"] for one in first["best"]}
    assert list(best) == ["all", "cpu", "disk", "memory"]
    assert (best["cpu"], best["memory"]) == (["node-1 (emulated)"], ["node-2 (emulated)"])  # as drawn
    assert Path(first["report"]).exists()
    found = first["verdicts"]
    assert (found["n_judged"], found["figures"], found["degrading"]) == (180, {}, "none")  # nobody knows of stress
    assert found["cost_share"] == pytest.approx(2 / 30, rel=0.01)  # 2 s of each 30 s, as drawn
    for work in ("answers.answer", "detect.verdicts.learn_verdicts", "detect.verdicts.judge_history"):
        monkeypatch.setattr(f"tasks.nodes.{work}", None)  # whoever did it again would fail
    assert demo.rank_recorded(warehouse, QUICK) == first
    assert sorted(card.kind for card in cards(warehouse.models)) == ["detector", "preprocessor"]
    monkeypatch.setattr("tasks.warehouse.sources.code_version", lambda: "9.9")
    with pytest.raises(TypeError, match="not callable"):  # a detector of other code is not used again
        demo.rank_recorded(warehouse, QUICK)


def test_without_a_recording_it_says_what_is_missing(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.datasets.RECORDED", tmp_path / "none")
    with pytest.raises(BadInput, match=r"none/nodes: no recording of nodes; expected executions-\*\.parquet"):
        demo.rank_recorded(warehouse, QUICK)
    with pytest.raises(BadInput, match=r"none/workloads: no recording of workloads; expected runs-\*\.parquet"):
        demo.identify_recorded(warehouse, WorkloadsParams())


@pytest.mark.slow
@pytest.mark.skipif(not SHIPPED, reason="data/recorded/nodes is not there")
def test_the_recording_that_is_shipped_names_emulated_nodes_and_its_stress_is_found(warehouse: Warehouse) -> None:
    told = demo.rank_recorded(warehouse, QUICK)
    assert told["n_nodes"] == told["n_emulated"] >= 3
    assert all("emulated" in node for one in told["best"] for node in one["nodes"])
    figures = told["verdicts"]["figures"]
    assert figures["recall"] > 0.75 and figures["false_alarms_per_1000"] < 50
    assert told["verdicts"]["degrading"].startswith("emulated-c in disk (suspected), since 2026-11-22")
    assert "disk: looks degraded since 2026-11-22" in told["verdicts"]["alarms"][0]


@pytest.fixture
def recorded_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_telemetry: Callable[..., Path]) -> Path:
    """A folder of recorded runs, beside them some that were disturbed."""
    folder = tmp_path / "recorded" / "workloads"
    folder.mkdir(parents=True)
    (folder / "runs-0001.parquet").write_bytes(drawn_telemetry("runs").read_bytes())
    flagged = drawn_telemetry("flagged", n_runs=1, prefix="disturbed-", first_minute=900)
    (folder / "flagged-0001.parquet").write_bytes(flagged.read_bytes())
    monkeypatch.setattr("tasks.datasets.RECORDED", folder.parent)
    return folder


def test_the_held_out_run_is_named_with_confidence_and_reasons(warehouse: Warehouse, recorded_runs: Path) -> None:
    told = demo.identify_recorded(warehouse, WorkloadsParams())
    assert (told["run_id"], told["label"]) == ("d-05", "d")  # the last of those that nothing disturbed
    assert told["nearest"][0]["workload"] == "d"
    assert [near["distance"] for near in told["nearest"]] == sorted(near["distance"] for near in told["nearest"])
    assert 0 <= told["confidence"] <= 1
    assert (told["n_runs"], told["n_workloads"]) == (23, 4)
    kept = read_identifications(warehouse, "recorded", ["d-05"])
    assert kept["model_id"].to_list() == [told["model_id"]]
    assert list(kept["reasons"].iloc[0]) == told["reasons"]
    assert told["reasons"]
    assert Path(told["report"]).exists()
    found = champion_of(warehouse, "recorded")
    assert found is not None
    assert "d-05" not in found[1].learned_ids
    assert demo.identify_recorded(warehouse, WorkloadsParams()) == told
    assert len(cards(warehouse.models)) == 1  # nothing is trained anew
