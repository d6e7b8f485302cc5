"""What the demo finds in recordings."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from flows import demo
from flows.demo import degrading
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
NAMES = {"a": "a (emulated)", "b": "b (emulated)"}
SHIPPED = bool(list((datasets.RECORDED / "nodes").glob(demo.UNDISTURBED_EXECUTIONS)))


def verdicts(flags: list[bool], stressed: list[bool], *, node: str = "a", aspect: str = "disk") -> pd.DataFrame:
    return pd.DataFrame(
        {
            "execution_id": [f"{node}-{at}" for at in range(len(flags))], "node": node, "aspect": aspect,
            "is_flagged": flags, "is_stressed": stressed,
        }
    )  # fmt: skip


def state(node: str, name: str, execution: str | None) -> dict[str, Any]:
    since = pd.Timestamp("2026-01-05 10:07:30") if execution else pd.NaT
    return {"node": node, "aspect": "disk", "state": name, "since": since, "since_execution": execution}


def alarm(execution: str, reasons: list[str], *, node: str = "a", **changed: Any) -> dict[str, Any]:
    told = {"node": node, "aspect": "disk", "state": "suspected", "raised_by": execution, "confirmed_by": None}
    return told | {"first_execution": "a-1", "reasons": reasons} | changed


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
    first = demo.rank_recorded(warehouse, QUICK, "recorded")
    assert (first["n_executions"], first["n_nodes"], first["n_emulated"]) == (180, 3, 3)  # node-4 was disturbed
    best = {one["aspect"]: one["nodes"] for one in first["best"]}
    assert list(best) == ["all", "cpu", "disk", "memory"]
    assert (best["cpu"], best["memory"]) == (["node-1 (emulated)"], ["node-2 (emulated)"])  # as drawn
    assert Path(first["report"]).exists()
    found = first["verdicts"]
    assert (found["n_judged"], found["figures"], found["degrading"]) == (180, {}, [])  # nobody knows of stress
    assert found["cost_share"] == pytest.approx(2 / 30, rel=0.01)  # 2 s of each 30 s, as drawn
    for work in ("answers.answer", "detect.verdicts.learn_verdicts", "detect.verdicts.judge_history"):
        monkeypatch.setattr(f"tasks.nodes.{work}", None)  # whoever did it again would fail
    assert demo.rank_recorded(warehouse, QUICK, "recorded") == first
    assert sorted(card.kind for card in cards(warehouse.models)) == ["detector", "preprocessor"]
    monkeypatch.setattr("tasks.warehouse.sources.code_version", lambda: "9.9")
    with pytest.raises(TypeError, match="not callable"):  # a detector of other code is not used again
        demo.rank_recorded(warehouse, QUICK, "recorded")


def test_without_a_recording_it_says_what_is_missing(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.datasets.RECORDED", tmp_path / "none")
    with pytest.raises(BadInput, match=r"none/nodes: no recording of nodes; expected executions-\*\.parquet"):
        demo.rank_recorded(warehouse, QUICK, "recorded")
    with pytest.raises(BadInput, match=r"none/workloads: no recording of workloads; expected runs-\*\.parquet"):
        demo.identify_recorded(warehouse, WorkloadsParams(), "recorded")


@pytest.mark.slow
@pytest.mark.skipif(not SHIPPED, reason="data/recorded/nodes is not there")
def test_the_recording_that_is_shipped_names_emulated_nodes_and_its_stress_is_found(warehouse: Warehouse) -> None:
    told = demo.rank_recorded(warehouse, QUICK, "recorded")
    assert told["n_nodes"] == told["n_emulated"] >= 3
    assert all("emulated" in node for one in told["best"] for node in one["nodes"])
    figures = told["verdicts"]["figures"]
    assert figures["recall"] > 0.75 and figures["false_alarms_per_1000"] < 50


def test_an_alarm_is_told_with_its_worst_metric_and_the_recorded_stress_behind_it() -> None:
    rows = pd.concat(
        [
            verdicts([True, True, False, True, True], [True, True, False, True, False]),
            verdicts([True] * 5, [True] * 5, node="b"),
            verdicts([True] * 5, [True] * 5, aspect="cpu"),
        ]
    )
    evidence = [
        alarm("a-0", ["an earlier alarm"], first_execution="a-0"),
        alarm("a-4", ["another node"], node="b"),
        alarm("a-4", ["read_clat_avg of disk-fio (9 deviations)", "another metric"]),
    ]
    [found] = degrading(pd.DataFrame([state("a", "suspected", "a-1")]), evidence, rows, NAMES)
    assert found == {
        "node": "a (emulated)",
        "aspect": "disk",
        "state": "suspected",
        "since": "2026-01-05 10:07",
        "n_flagged": 3,  # from a-1 on: a-1, a-3, a-4
        "n_stressed": 2,
        "worst": "read_clat_avg of disk-fio (9 deviations)",
    }


def test_a_confirmed_alarm_is_found_by_its_first_execution() -> None:
    rows = verdicts([False, True, True], [False, False, False])
    evidence = [alarm("a-1", ["when it was suspected"]), alarm("a-1", [], state="confirmed", confirmed_by="a-2")]
    [found] = degrading(pd.DataFrame([state("a", "confirmed", "a-1")]), evidence, rows, NAMES)
    assert (found["state"], found["n_flagged"], found["n_stressed"], found["worst"]) == ("confirmed", 2, 0, "")


def test_an_alarm_that_an_earlier_model_told_is_the_latest_of_that_node_aspect_and_state() -> None:
    rows = verdicts([False, True, True, True], [False, True, True, True])
    evidence = [alarm("a-9", ["an earlier alarm"], first_execution="a-0"), alarm("a-8", ["the latest"])]
    [found] = degrading(pd.DataFrame([state("a", "suspected", "a-3")]), evidence, rows, NAMES)
    assert (found["worst"], found["n_flagged"], found["n_stressed"]) == ("the latest", 3, 3)


def test_healthy_nodes_are_left_out_and_cleared_ones_say_since_when() -> None:
    states = pd.DataFrame([state("b", "cleared", "b-3"), state("c", "healthy", None)])
    told = [alarm("b-1", [], node="b", state="cleared", first_execution="b-0")]
    [found] = degrading(states, told, verdicts([True], [True], node="b"), NAMES)
    assert (found["node"], found["state"], found["since"]) == ("b (emulated)", "cleared", "2026-01-05 10:07")
    assert (found["n_flagged"], found["worst"]) == (0, "")


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
    told = demo.identify_recorded(warehouse, WorkloadsParams(), "recorded")
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
    assert demo.identify_recorded(warehouse, WorkloadsParams(), "recorded") == told
    assert len(cards(warehouse.models)) == 1  # nothing is trained anew
