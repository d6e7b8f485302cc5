"""What the demo tells of workloads: the run that was held out, by a model that has never seen it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flows import demo
from tasks.errors import BadInput
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards
from tasks.workloads.champions import champion_of
from tasks.workloads.identification_rows import read_identifications
from tasks.workloads.params import WorkloadsParams

pytestmark = pytest.mark.usefixtures("prefect_server")


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_telemetry: Callable[..., Path]) -> Path:
    """A folder of recorded runs, beside them some that were disturbed."""
    folder = tmp_path / "recorded" / "workloads"
    folder.mkdir(parents=True)
    (folder / "runs-0001.parquet").write_bytes(drawn_telemetry("runs").read_bytes())
    flagged = drawn_telemetry("flagged", n_runs=1, prefix="disturbed-", first_minute=900)
    (folder / "flagged-0001.parquet").write_bytes(flagged.read_bytes())
    monkeypatch.setattr("tasks.datasets.RECORDED", folder.parent)
    return folder


def test_the_held_out_run_is_named_with_confidence_and_reasons(warehouse: Warehouse, recorded: Path) -> None:
    told = demo.tell_workload(warehouse, WorkloadsParams(), "recorded")
    assert (told["run_id"], told["label"]) == ("d-05", "d")  # the last of those that nothing disturbed
    assert told["nearest"][0]["workload"] == "d"
    assert [near["distance"] for near in told["nearest"]] == sorted(near["distance"] for near in told["nearest"])
    assert 0 <= told["confidence"] <= 1
    assert (told["n_runs"] + told["n_held_out"], told["n_workloads"]) == (23, 4)
    kept = read_identifications(warehouse, "recorded", ["d-05"])
    assert kept["model_id"].to_list() == [told["model_id"]]
    assert list(kept["reasons"].iloc[0]) == told["reasons"]
    assert told["reasons"]
    assert Path(told["report"]).exists()
    found = champion_of(warehouse, "recorded")
    assert found is not None
    assert "d-05" not in found[1].learned_ids


@pytest.mark.slow
def test_told_again_it_trains_nothing_new(warehouse: Warehouse, recorded: Path) -> None:
    first = demo.tell_workload(warehouse, WorkloadsParams(), "recorded")
    assert demo.tell_workload(warehouse, WorkloadsParams(), "recorded") == first
    assert len(cards(warehouse.models)) == 1


def test_without_a_recording_it_says_what_is_missing(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.datasets.RECORDED", tmp_path / "none")
    with pytest.raises(BadInput, match=r"none/workloads: no recording of workloads; expected runs-\*\.parquet"):
        demo.tell_workload(warehouse, WorkloadsParams(), "recorded")
