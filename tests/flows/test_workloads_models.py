"""The flows about fingerprints, models and identifications, run here and now as the command line runs them."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.parameters import FingerprintFlowParams, WorkloadEvaluateParams, WorkloadIdentifyParams, WorkloadTrainParams
from flows.workloads import (
    evaluate_workloads,
    fingerprint_workloads,
    identify_workloads,
    train_workloads,
)
from tasks.errors import MissingTool, NotFound
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards
from tasks.warehouse.runs import compare_runs, list_runs, read_run
from tasks.workloads.evaluate.params import EvaluateParams
from tasks.workloads.fan_out_params import FanOutParams
from tasks.workloads.identify.params import IdentifyParams, TrainParams

pytestmark = pytest.mark.usefixtures("prefect_server")
ALONE = TrainParams()
ROOT = Path(__file__).parents[2]


def artifact(key: str) -> str:
    """The latest artifact under a key, as it reads."""
    from prefect.artifacts import Artifact

    found: Any = Artifact.get(key)
    assert found is not None
    return str(found.data).replace("\\", "")


def pictures_in(page: str) -> int:
    """How many images an artifact holds, each small enough for Prefect's page."""
    found = re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", page)
    assert all(len(picture) * 3 / 4 < 100_000 for picture in found)
    return len(found)


def steps_of_last_run() -> list[str]:
    """The names of the steps that the latest flow run has run, in order."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
    from prefect.client.schemas.sorting import FlowRunSort, TaskRunSort

    with get_client(sync_client=True) as client:
        [run] = client.read_flow_runs(sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=1)
        of_it = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
        found = client.read_task_runs(flow_run_filter=of_it, sort=TaskRunSort.EXPECTED_START_TIME_ASC)
    return [one.name.rsplit("-", 1)[0] for one in found]


@pytest.mark.slow
def test_the_second_fingerprinting_does_less_than_the_first(workloads_log: Warehouse) -> None:
    params = FingerprintFlowParams(source="log", fan_out=FanOutParams(runs_per_part=10), warehouse=workloads_log)
    first = fingerprint_workloads(params)
    assert (first["n_runs"], first["n_new"], first["n_done"], first["n_parts"]) == (24, 24, 0, 3)
    assert steps_of_last_run().count("cut-phases") == 3
    page = artifact("workloads-log-fingerprints")
    assert "24 runs of 24 cut now, in 3 parts; 0 had their phases" in page
    assert "| a | 6 |" in page
    assert Path(first["report"]).exists()
    second = fingerprint_workloads(params)
    assert (second["n_new"], second["n_done"], second["n_parts"]) == (0, 24, 0)
    assert "cut-phases" not in steps_of_last_run()


@pytest.mark.slow
def test_no_part_file_is_left_after_a_fingerprinting(workloads_log: Warehouse) -> None:
    fingerprint_workloads(FingerprintFlowParams(source="log", warehouse=workloads_log))
    parts = Path(workloads_log.landing_folder) / "fingerprints"
    assert [path for path in parts.rglob("*") if path.is_file()] == []


@pytest.mark.slow
def test_an_address_of_ray_without_prefect_ray_is_one_line(
    workloads_log: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "prefect_ray", None)
    fan_out = FanOutParams(ray_address="ray://head:10001")
    told = r"'ray://head:10001', and the Python package prefect-ray is not installed; .*pip install .*\[ray\]"
    with pytest.raises(MissingTool, match=told):
        fingerprint_workloads(FingerprintFlowParams(source="log", fan_out=fan_out, warehouse=workloads_log))
    found = fingerprint_workloads(FingerprintFlowParams(source="log", warehouse=workloads_log))
    assert found["n_new"] == 24  # nothing was lost


def test_the_extra_that_the_line_names_is_declared_and_pinned() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["ray"]
    assert [line.split(">")[0] for line in declared] == ["prefect-ray"]
    assert re.search(r"^prefect-ray==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)


def test_a_training_shows_what_it_made_of_the_held_out_runs(
    workloads_log: Warehouse, quick_identify: IdentifyParams
) -> None:
    params = WorkloadTrainParams(source="log", identify=quick_identify, train=ALONE, warehouse=workloads_log)
    found = train_workloads(params)
    assert (found["champion_id"], found["held_out"]) == (found["model_id"], "round 3")
    page = artifact("workloads-log-model")
    assert "16 runs of 4 workloads. It is in use now." in page
    assert "On 8 runs that were held out (round 3)" in page
    assert "What runs were taken for" in page and pictures_in(page) == 1
    assert Path(found["report"]).exists()
    [run] = list_runs(workloads_log).to_dict("records")
    assert read_run(workloads_log, run["run_id"])["figures"]["accuracy"] == found["accuracy"]
    assert cards(workloads_log.models)[0].run_id == run["run_id"]


def test_identifications_are_kept_and_shown_with_their_reasons(identifying_log: Warehouse) -> None:
    params = WorkloadIdentifyParams(source="log", warehouse=identifying_log)
    found = identify_workloads(params)
    assert (found["n_runs"], found["n_known"] + found["n_unknown"]) == (24, 24)
    assert fetch(identifying_log, "SELECT count(*) AS n FROM workloads.identifications")["n"].to_list() == [24]
    page = artifact("workloads-log-identifications")
    assert f"24 runs identified by {found['model_id']}" in page
    assert "| a-00 | a |" in page
    assert "What ran when" in page and pictures_in(page) == 1
    assert pictures_in(artifact("workloads-log-summary")) >= 1
    assert identify_workloads(params)["n_runs"] == 0
    assert "No run that had not been identified before" in artifact("workloads-log-identifications")
    one = identify_workloads(WorkloadIdentifyParams(source="log", run_ids=["b-01"], warehouse=identifying_log))
    assert one["run_ids"] == ["b-01"]


def test_an_identification_without_a_model_says_how_to_make_one(workloads_log: Warehouse) -> None:
    with pytest.raises(NotFound, match="make one with whorl workloads train --source log"):
        identify_workloads(WorkloadIdentifyParams(source="log", warehouse=workloads_log))


@pytest.fixture(scope="session")
def quick_evaluation(quick_identify: IdentifyParams) -> EvaluateParams:
    """The parameters of an evaluation of few splits."""
    params = EvaluateParams(identify=quick_identify, online_s=[10])
    few = {"repeats": 1, "max_slices": 1, "unknown_pairs": 1, "online_repeats": 1, "max_run_pairs": 20}
    return params.model_copy(update={"sample": params.sample.model_copy(update=few)})


@pytest.mark.slow
def test_two_experiments_on_a_source_can_be_compared(
    workloads_log: Warehouse, quick_evaluation: EvaluateParams
) -> None:
    for seed in (0, 1):
        asked = quick_evaluation.model_copy(update={"seed": seed})
        figures = evaluate_workloads(WorkloadEvaluateParams(source="log", evaluate=asked, warehouse=workloads_log))
        assert (figures["n"], figures["classes"]) == (24, 4)
    second, first = list_runs(workloads_log)["run_id"]
    rows = compare_runs(workloads_log, first, second).set_index("key")
    assert rows.loc["parameters.evaluate.seed", ["first", "second"]].tolist() == [0, 1]
    page = artifact("workloads-log-evaluation")
    assert "How well workloads are told apart: source log" in page
    assert "| known.accuracy |" in page
    assert pictures_in(page) >= 6  # confusion, distances, over time twice, phases, determined phases and more
    kept = fetch(workloads_log, "SELECT value FROM workloads.evaluation_figures WHERE key = 'known.accuracy'")
    assert kept["value"].to_list() == pytest.approx([figures["known.accuracy"]])
    assert cards(workloads_log.models) == []


@pytest.mark.slow
def test_files_are_evaluated_without_being_kept(
    warehouse: Warehouse, drawn_telemetry: Callable[..., Path], quick_evaluation: EvaluateParams
) -> None:
    path = drawn_telemetry("evening")
    params = WorkloadEvaluateParams(telemetry=[str(path)], evaluate=quick_evaluation, warehouse=warehouse)
    assert evaluate_workloads(params)["n"] == 24
    assert "evening.parquet" in artifact("workloads-files-evaluation")
    assert fetch(warehouse, "SELECT count(*) AS n FROM workloads.runs")["n"].to_list() == [0]
