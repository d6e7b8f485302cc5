"""What the demo tells of workloads: the run that was held out, by a model that has never seen it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flows import workload_demo
from flows.commands.demo_workload import show_workload
from flows.workload_demo import Near, WorkloadTold
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
    folder = tmp_path / "recorded"
    folder.mkdir()
    (folder / "runs-0001.parquet").write_bytes(drawn_telemetry("runs").read_bytes())
    flagged = drawn_telemetry("flagged", n_runs=1, prefix="disturbed-", first_minute=900)
    (folder / "flagged-0001.parquet").write_bytes(flagged.read_bytes())
    monkeypatch.setattr(workload_demo, "RECORDED", folder)
    return folder


def test_the_held_out_run_is_named_with_confidence_and_reasons(warehouse: Warehouse, recorded: Path) -> None:
    told = workload_demo.tell_workload(warehouse, WorkloadsParams(), "recorded")
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
    first = workload_demo.tell_workload(warehouse, WorkloadsParams(), "recorded")
    assert workload_demo.tell_workload(warehouse, WorkloadsParams(), "recorded") == first
    assert len(cards(warehouse.models)) == 1


def test_without_a_recording_it_says_what_is_missing(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload_demo, "RECORDED", tmp_path / "none")
    with pytest.raises(BadInput, match=r"none: no recording of workloads; expected runs-\*\.parquet"):
        workload_demo.tell_workload(warehouse, WorkloadsParams(), "recorded")


def test_what_is_shown_of_it_names_the_run_and_says_how_sure_why_and_what_else_it_is_like(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    told = WorkloadTold(
        run_id="5-nginx-large-09",
        label="nginx",
        workload="redis",
        confidence=0.734,
        nearest=[Near(workload="redis", distance=1.25), Near(workload="nginx", distance=2.0)],
        reasons=["net sent bytes in phase 2: 3 MB a second, as in redis (3.1 MB a second)"],
        model_id="m",
        accuracy=0.975,
        n_held_out=40,
        n_runs=159,
        n_workloads=10,
        report="page",
    )
    show_workload(told)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "held-out run 5-nginx-large-09",
        "named redis, a known workload, 73.4 % sure",
        "label nginx, so that is wrong",
        "nearest redis at 1.2 × the usual distance, nginx at 2 × the usual distance",
        "model learned 159 runs of 10 workloads; right for 97.5 % of 40 other runs that it has not seen",
        "- net sent bytes in phase 2: 3 MB a second, as in redis (3.1 MB a second)",
    ]
    show_workload(WorkloadTold(**told | {"workload": None}))
    assert "an unknown workload, 73.4 % sure" in capsys.readouterr().out
