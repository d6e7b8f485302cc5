"""The flows about executions of benchmarks themselves: recording, files in."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.nodes import (
    ingest_nodes,
    record_nodes,
)
from flows.parameters import NodeIngestParams, NodeRecordParams
from tasks.errors import BadInput
from tasks.nodes.steps import (
    land_recording,
    landed_batches,
)
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.runs import list_runs, read_run

pytestmark = pytest.mark.usefixtures("prefect_server")
FIGURES = {
    "campaign": "c",
    "isolation": "cgroups",
    "nodes": ["n"],
    "n_planned": 2,
    "n_clean": 2,
    "n_new": 2,
    "n_failed": 0,
    "unavailable": {},
    "sampler_cores": 0.002,
}
Draw = Callable[..., Path]


def artifact(key: str) -> str:
    """The latest artifact under a key."""
    from prefect.artifacts import Artifact

    found: Any = Artifact.get(key)
    assert found is not None
    return str(found.data).replace("\\", "")


def test_a_recording_stays_in_its_folder_unless_a_landing_folder_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from flows import nodes

    monkeypatch.setattr(nodes, "record", lambda params, folder: {"folder": folder} | FIGURES)
    found = record_nodes(NodeRecordParams(folder=str(tmp_path / "nodes")))
    assert found == {"folder": str(tmp_path / "nodes")} | FIGURES | {"batches": []}


def test_the_home_of_the_worker_stands_in_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from flows import nodes

    monkeypatch.setenv("WHORL_HOME", str(tmp_path / "there"))
    monkeypatch.setattr(nodes, "record", lambda params, folder: {"folder": folder} | FIGURES)
    found = record_nodes(NodeRecordParams(folder="{home}/recordings/{run}"))
    assert found["folder"].startswith(f"{tmp_path}/there/recordings/")
    assert "{" not in found["folder"]


def test_what_a_recorder_has_landed_is_loaded_by_the_next_ingest(
    monkeypatch: pytest.MonkeyPatch, warehouse: Warehouse, drawn_executions: Draw
) -> None:
    from flows import nodes

    part = drawn_executions(nodes=1, runs=2)
    monkeypatch.setattr(nodes, "record", lambda params, folder: {"folder": str(part.parent)} | FIGURES)
    params = NodeRecordParams(folder="anywhere", landing=warehouse.landing_folder, source="fleet")
    landed = record_nodes(params)["batches"]
    assert len(landed) == 1
    assert record_nodes(params)["batches"] == landed
    assert not warehouse.file.exists()  # recording never writes the warehouse
    asked = NodeIngestParams(source="fleet", warehouse=warehouse)
    found = ingest_nodes(asked)
    assert (found["batches"], found["n_landed"], found["n_executions"]) == (landed, 1, 12)
    assert ingest_nodes(asked)["batches"] == []
    assert fetch(warehouse, "SELECT count(*) AS n FROM nodes.executions WHERE source = 'fleet'")["n"].to_list() == [12]


@pytest.mark.slow
def test_two_nodes_share_a_landing_folder_without_touching_each_other(
    tmp_path: Path, warehouse: Warehouse, drawn_executions: Draw
) -> None:
    address = f"file://{tmp_path}/shared"
    for seed in (0, 1):
        folder = str(drawn_executions(nodes=1, runs=1, seed=seed).parent)
        land_recording(folder, address, "fleet", 6)
        land_recording(folder, address, "other", 6)
    there = warehouse.model_copy(update={"landing": address})
    assert len(landed_batches(there, "fleet")) == 2
    assert ingest_nodes(NodeIngestParams(source="fleet", warehouse=there))["n_landed"] == 2
    assert landed_batches(there, "fleet") == []
    assert len(landed_batches(there, "other")) == 2


def test_an_ingest_returns_keys_and_figures_and_publishes_what_it_read(
    warehouse: Warehouse, drawn_executions: Draw
) -> None:
    path = drawn_executions(runs=2)
    found = ingest_nodes(NodeIngestParams(results=[str(path)], source="night", warehouse=warehouse))
    assert (found["n_executions"], found["n_quarantined"], len(found["batches"])) == (36, 0, 1)
    assert path.name in artifact("nodes-night-ingest")
    [run] = list_runs(warehouse).to_dict("records")
    kept = read_run(warehouse, run["run_id"])
    assert (kept["flow"], kept["word"], kept["figures"]["n_executions"]) == ("nodes-ingest", "nodes", 36)


@pytest.mark.slow
def test_emulated_nodes_are_called_so_where_they_are_read(warehouse: Warehouse, drawn_executions: Draw) -> None:
    path = str(drawn_executions(runs=1, types=2, is_emulated=True))
    ingest_nodes(NodeIngestParams(results=[path], source="limits", warehouse=warehouse))
    page = artifact("nodes-limits-ingest")
    assert "Emulated:" in page and "3 nodes of the source are made of limits on a larger machine" in page


@pytest.mark.slow
def test_the_same_file_twice_adds_nothing(warehouse: Warehouse, drawn_executions: Draw) -> None:
    params = NodeIngestParams(results=[str(drawn_executions(runs=1))], warehouse=warehouse)
    assert ingest_nodes(params) == ingest_nodes(params)
    assert fetch(warehouse, "SELECT count(*) AS n FROM nodes.executions")["n"].to_list() == [18]


@pytest.mark.slow
def test_a_bad_file_is_one_line_and_does_not_hold_up_a_good_one(
    warehouse: Warehouse, drawn_executions: Draw, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("no,results\n")
    paths = [str(drawn_executions(runs=1)), str(bad)]
    with pytest.raises(BadInput, match=r"bad\.csv: .*the other 1 of 2 files are loaded$") as raised:
        ingest_nodes(NodeIngestParams(results=paths, warehouse=warehouse))
    assert "\n" not in str(raised.value)
    assert fetch(warehouse, "SELECT count(*) AS n FROM nodes.executions")["n"].to_list() == [18]


def test_an_empty_inbox_is_no_error_and_what_lies_in_it_is_read(warehouse: Warehouse, drawn_executions: Draw) -> None:
    params = NodeIngestParams(warehouse=warehouse)
    assert ingest_nodes(params)["batches"] == []
    inbox = warehouse.home / "inbox-nodes"
    inbox.mkdir(parents=True)
    (inbox / "executions-0001.parquet").write_bytes(drawn_executions(runs=1).read_bytes())
    found = ingest_nodes(params)
    assert (found["n_executions"], found["n_landed"]) == (18, 0)


def test_the_form_names_every_reader() -> None:
    from typing import get_args

    from tasks.nodes.reader_names import NodeReader
    from tasks.nodes.readers import READERS

    assert set(get_args(NodeReader)) == {"auto", *READERS}
