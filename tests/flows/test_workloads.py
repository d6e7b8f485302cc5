"""The flows about telemetry itself: recording, files in."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.parameters import WorkloadIngestParams, WorkloadRecordParams
from flows.workloads import (
    ingest_workloads,
    record_workloads,
)
from tasks.errors import BadInput
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.runs import list_runs, read_run
from tasks.workloads.reading_params import ReadParams

pytestmark = pytest.mark.usefixtures("prefect_server")
FIGURES = {"isolation": "cgroups", "n_planned": 2, "n_clean": 2, "n_new": 2, "n_failed": 0, "sampler_cores": 0.002}
Draw = Callable[..., Path]


def artifact(key: str) -> str:
    """The latest artifact under a key."""
    from prefect.artifacts import Artifact

    found: Any = Artifact.get(key)
    assert found is not None
    return str(found.data)


def test_a_recording_gets_a_folder_of_its_own_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from flows import workloads

    monkeypatch.setattr(workloads, "record", lambda params, folder: {"folder": folder} | FIGURES)
    found = [record_workloads(WorkloadRecordParams(folder=f"{tmp_path}/workloads-{{run}}")) for _ in range(2)]
    folders = [one["folder"] for one in found]
    assert found[0] == {"folder": folders[0]} | FIGURES
    assert len(set(folders)) == 2
    assert all("{" not in folder for folder in folders)


def test_an_ingest_returns_keys_and_figures_and_publishes_what_it_read(
    warehouse: Warehouse, drawn_telemetry: Draw
) -> None:
    path = drawn_telemetry("night", n_runs=2)
    found = ingest_workloads(WorkloadIngestParams(telemetry=[str(path)], source="night", warehouse=warehouse))
    assert (found["n_runs"], found["n_quarantined"], len(found["batches"])) == (8, 0, 1)
    assert "night.parquet" in artifact("workloads-night-ingest").replace("\\", "")
    [run] = list_runs(warehouse).to_dict("records")
    kept = read_run(warehouse, run["run_id"])
    assert (kept["flow"], kept["word"], kept["figures"]["n_runs"]) == ("workloads-ingest", "workloads", 8)


@pytest.mark.slow
def test_the_same_file_twice_adds_nothing(warehouse: Warehouse, drawn_telemetry: Draw) -> None:
    params = WorkloadIngestParams(telemetry=[str(drawn_telemetry("twice", n_runs=1))], warehouse=warehouse)
    assert ingest_workloads(params) == ingest_workloads(params)
    assert fetch(warehouse, "SELECT count(*) AS n FROM workloads.runs")["n"].to_list() == [4]


@pytest.mark.slow
def test_a_bad_file_is_one_line_and_does_not_hold_up_a_good_one(
    warehouse: Warehouse, drawn_telemetry: Draw, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("no,telemetry\n")
    paths = [str(drawn_telemetry("good", n_runs=1)), str(bad)]
    with pytest.raises(BadInput, match=r"bad\.csv: .*; the other 1 of 2 files are loaded$") as raised:
        ingest_workloads(WorkloadIngestParams(telemetry=paths, warehouse=warehouse))
    assert "\n" not in str(raised.value)
    assert fetch(warehouse, "SELECT count(*) AS n FROM workloads.runs")["n"].to_list() == [4]


def test_an_empty_inbox_is_no_error_and_what_lies_in_it_is_read(warehouse: Warehouse, drawn_telemetry: Draw) -> None:
    params = WorkloadIngestParams(warehouse=warehouse)
    assert ingest_workloads(params)["batches"] == []
    inbox = warehouse.home / "inbox-workloads"
    inbox.mkdir(parents=True)
    (inbox / "runs.parquet").write_bytes(drawn_telemetry("inbox", n_runs=1).read_bytes())
    assert ingest_workloads(params)["n_runs"] == 4


def test_a_manifest_names_the_files_and_their_labels(warehouse: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("at_s,a,b\n" + "".join(f"{at},{at % 2},1\n" for at in range(9)))
    (tmp_path / "all.csv").write_text("path,workload,round\none.csv,redis,2\n")
    read = ReadParams(manifest=str(tmp_path / "all.csv"))
    assert ingest_workloads(WorkloadIngestParams(read=read, warehouse=warehouse))["n_runs"] == 1
    found = fetch(warehouse, "SELECT workload, round FROM workloads.runs").to_dict("records")
    assert found == [{"workload": "redis", "round": "2"}]


def test_the_form_names_every_reader() -> None:
    from typing import get_args

    from flows.parameters import TelemetryReader
    from tasks.workloads.readers import READERS

    assert get_args(TelemetryReader) == ("auto", *READERS)
