"""The graph from files to answers: what it does once, it does not do again, unless what it had made is gone."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from prefect import Flow

from flows.engine.forms import call
from flows.pipeline import PipelineParams, whorl_pipeline
from tasks.errors import NotFound
from tasks.jobs.params import JobsParams, quick
from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import known_sources
from tests.conftest import JobLog


@pytest.fixture(scope="module")
def answered(
    prefect_server: None,
    tmp_path_factory: pytest.TempPathFactory,
    varied_runs: Callable[..., pd.DataFrame],
    drawn_executions: Callable[..., Path],
    _the_same_runs_are_evaluated_once: None,
) -> Iterator[tuple[PipelineParams, dict[str, Any]]]:
    """A home whose inboxes hold jobs and nodes, after one run of the graph: its parameters and result."""
    home = tmp_path_factory.mktemp("pipeline")
    for inbox in ("inbox", "inbox-nodes"):
        (home / inbox).mkdir()
    runs = varied_runs(480)
    starts = pd.Timestamp("2026-01-01") + pd.to_timedelta(range(len(runs)), unit="min")
    runs.assign(run_id=range(len(runs)), started_at=starts).to_csv(home / "inbox" / "runs.csv", index=False)
    shutil.copy(drawn_executions(runs=10), home / "inbox-nodes")
    jobs = JobsParams()
    params = PipelineParams(
        jobs=jobs.model_copy(update={"evaluate": quick(jobs.evaluate)}),
        trains_network=False,
        warehouse=Warehouse(home=home),
    )
    yield params, run(params)


def run(params: PipelineParams) -> dict[str, Any]:
    """The result of the graph."""
    called: Flow[..., dict[str, Any]] = whorl_pipeline
    return call(called, params)


def test_files_of_the_inboxes_become_answers_of_each_word(answered: tuple[PipelineParams, dict[str, Any]]) -> None:
    _, found = answered
    said = found["said"]
    assert found["n_done"] == found["n_nodes"] == len(said) == 13
    assert said["nodes-ingest main"] == "1 of 1 files are in the warehouse"
    assert said["jobs-ingest main"].startswith("1 of 1 files are in the warehouse; runs of one job are ")
    assert said["jobs-preprocess main"] == "480 runs of 12 jobs"
    assert said["jobs-answer main"].startswith("the next runs of 12 jobs")
    assert "executions degraded" in said["nodes-fingerprint main"]
    assert not [line for name, line in said.items() if "page" in name and line != "its page is written"]


def test_a_second_run_does_nothing(answered: tuple[PipelineParams, dict[str, Any]]) -> None:
    params, first = answered
    again = run(params)
    assert again["n_done"] == 0
    assert again["said"] == first["said"]


def test_what_is_gone_is_made_again_with_all_that_rests_on_it(answered: tuple[PipelineParams, dict[str, Any]]) -> None:
    params, _ = answered
    with writing(params.warehouse) as connection, transaction(connection):
        connection.execute("DELETE FROM jobs.shapes").fetchall()
    assert run(params)["n_done"] == 1
    shutil.rmtree(params.warehouse.models / "jobs")
    assert run(params)["n_done"] >= 2, "the model, and the answer that rests on it"
    assert run(params)["n_done"] == 0


def test_a_new_file_is_read_and_its_source_answered_again(
    answered: tuple[PipelineParams, dict[str, Any]], drawn_executions: Callable[..., Path]
) -> None:
    params, _ = answered
    only_nodes = params.model_copy(update={"words": ("nodes",)})
    assert run(only_nodes)["n_done"] == 0
    newer = params.warehouse.home / "inbox-nodes" / "executions-0002.parquet"
    shutil.copy(drawn_executions(runs=5, seed=2), newer)
    found = run(only_nodes)
    assert found["n_done"] == found["n_nodes"]
    assert found["said"]["nodes-ingest main"] == "2 of 2 files are in the warehouse"


def test_other_settings_are_another_answer(answered: tuple[PipelineParams, dict[str, Any]]) -> None:
    params, _ = answered
    summary = params.jobs.summary.model_copy(update={"min_support": 5})
    changed = params.model_copy(update={"jobs": params.jobs.model_copy(update={"summary": summary})})
    assert run(changed.model_copy(update={"words": ("jobs",)}))["n_done"] > 0


def test_too_few_runs_are_an_answer_and_no_failure(prefect_server: None, job_log: JobLog) -> None:
    warehouse = job_log([{"runtime_s": 60.0}])
    found = run(PipelineParams(words=("jobs",), warehouse=warehouse))
    assert found["said"]["jobs-preprocess log"] == "1 runs of 1 jobs"
    assert "runs" in found["said"]["jobs-train log"]


def test_an_empty_home_has_nothing_to_do(prefect_server: None, tmp_path: Path) -> None:
    assert run(PipelineParams(warehouse=Warehouse(home=tmp_path))) == {"n_nodes": 0, "n_done": 0, "said": {}}


def test_an_inbox_is_read_into_its_own_source_alone_and_others_need_rows(prefect_server: None, job_log: JobLog) -> None:
    params = PipelineParams(words=("jobs",), warehouse=job_log([{"runtime_s": 60.0}]))
    inbox = params.warehouse.home / "inbox"
    inbox.mkdir()
    (inbox / "runs.csv").write_text("run_id,name,started_at,runtime_s\nr1,etl,2026-01-01T00:00:00,60\n")
    with pytest.raises(NotFound, match="source 'nope': no rows of jobs; there are: 'log'; fill one with 'whorl jobs"):
        run(params.model_copy(update={"sources": ("nope",)}))
    assert {name.split()[1] for name in run(params.model_copy(update={"sources": ("log",)}))["said"]} == {"log"}
    into_lab = run(params.model_copy(update={"sources": ("lab",), "inbox_source": "lab"}))
    assert into_lab["said"]["jobs-ingest lab"].startswith("1 of 1 files are in the warehouse")
    assert known_sources(params.warehouse, "jobs") == ["lab", "log"]
