"""A flow that is killed after any of its stages goes on where it was."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows import nodes, workloads
from flows.engine.forms import call
from flows.nodes import NodeIngestParams, NodeRankParams, NodeRecordParams, PreparedParams
from flows.workloads import (
    FingerprintFlowParams,
    WorkloadIdentifyParams,
    WorkloadIngestParams,
    WorkloadTrainParams,
    WorkloadWatchParams,
)
from tasks.nodes.params import ScoreParams
from tasks.warehouse.alarms import read_alarms, unannounced
from tasks.warehouse.connection import fetch, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards, champion
from tasks.workloads.intake import fetch_runs
from tasks.workloads.params import FanOutParams, IdentifyParams, TrainParams, WatchParams

pytestmark = [pytest.mark.usefixtures("prefect_server"), pytest.mark.slow]  # each stage starts a flow twice
QUICK = ScoreParams(resamples=100)
Die = Callable[[Any, str], Any]


class Killed(Exception):
    """In the place of a SIGKILL right after a stage."""


@pytest.fixture
def after(monkeypatch: pytest.MonkeyPatch) -> Die:
    """A context in which a flow's module, or artifacts for it, dies after the named stage was done once."""

    def dying(module: Any, stage: str) -> Any:
        module = module if hasattr(module, stage) else module.artifacts
        done = getattr(module, stage)

        def die(*args: Any, **kwargs: Any) -> Any:
            done(*args, **kwargs)
            raise Killed(stage)

        context = monkeypatch.context()
        patch = context.__enter__()
        patch.setattr(module, stage, die)
        return context

    return dying


def ended(context: Any, work: Callable[[], Any]) -> None:
    """Run what is to die, and take the fault away again."""
    try:
        with pytest.raises(Killed):
            work()
    finally:
        context.__exit__(None, None, None)


@pytest.mark.parametrize("stage", ["find_files", "land_executions", "ingest_batch", "source_version"])
def test_an_ingest(after: Die, stage: str, warehouse: Warehouse, drawn_executions: Callable[..., Path]) -> None:
    paths = [str(drawn_executions(nodes=1, runs=1, seed=seed)) for seed in (0, 1)]
    params = NodeIngestParams(results=paths, source="log", warehouse=warehouse)
    ended(after(nodes, stage), lambda: call(nodes.nodes_ingest, params))
    assert call(nodes.nodes_ingest, params)["n_executions"] == 12
    counts = fetch(
        warehouse, "SELECT count(*) AS n, count(DISTINCT execution_id) AS m, sum(n_metrics) AS v FROM nodes.executions"
    )
    assert counts["n"].to_list() == counts["m"].to_list() == [6]  # both files have the same ids: the later one counts
    assert fetch(warehouse, "SELECT count(*) AS n FROM nodes.metrics")["n"].to_list() == [int(counts["v"].iloc[0])]


@pytest.mark.parametrize("stage", ["landed_batches", "ingest_batch"])
def test_an_ingest_of_what_was_landed(
    after: Die, stage: str, warehouse: Warehouse, drawn_executions: Callable[..., Path]
) -> None:
    from tasks.nodes.steps import land_recording

    land_recording(str(drawn_executions(nodes=1, runs=1).parent), warehouse.landing_folder, "log", 6)
    params = NodeIngestParams(source="log", warehouse=warehouse)
    ended(after(nodes, stage), lambda: call(nodes.nodes_ingest, params))
    call(nodes.nodes_ingest, params)
    assert fetch(warehouse, "SELECT count(*) AS n FROM nodes.executions")["n"].to_list() == [6]


def test_a_recording_that_dies_after_landing_lands_once(
    after: Die, warehouse: Warehouse, drawn_executions: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(drawn_executions(nodes=1, runs=1).parent)
    told = {"folder": folder, "campaign": "c", "isolation": "none", "nodes": ["n"], "n_planned": 6, "n_clean": 6}
    told |= {"n_new": 6, "n_failed": 0, "unavailable": {}, "sampler_cores": 0.0}
    monkeypatch.setattr(nodes, "record", lambda params, folder: told)
    params = NodeRecordParams(folder=folder, landing=warehouse.landing_folder, source="log")
    ended(after(nodes, "land_recording"), lambda: call(nodes.nodes_record, params))
    assert len(call(nodes.nodes_record, params)["batches"]) == 1
    assert len(list(Path(warehouse.landing_folder).glob("nodes/*.json"))) == 1


@pytest.mark.parametrize("stage", ["preprocess", "write_report"])
def test_a_preprocessing(after: Die, stage: str, nodes_log: Warehouse) -> None:
    params = PreparedParams(source="log", score=QUICK, warehouse=nodes_log)
    ended(after(nodes, stage), lambda: call(nodes.nodes_preprocess, params))
    found = call(nodes.nodes_preprocess, params)
    in_use = champion(nodes_log.models, "nodes", "log", "preprocessor")
    assert in_use is not None
    assert in_use.model_id == found["model_id"]
    assert len(cards(nodes_log.models)) == 1
    n_rows = fetch(nodes_log, "SELECT count(*) AS n FROM nodes.decisions")["n"].to_list()
    assert n_rows == [found["n_recorded"]]


@pytest.mark.parametrize("stage", ["preprocess", "rank", "write_report"])
def test_a_ranking(after: Die, stage: str, nodes_log: Warehouse) -> None:
    params = NodeRankParams(source="log", score=QUICK, warehouse=nodes_log)
    ended(after(nodes, stage), lambda: call(nodes.nodes_rank, params))
    assert call(nodes.nodes_rank, params)["n_nodes"] == 3
    counts = fetch(nodes_log, "SELECT count(*) AS n, count(DISTINCT (aspect, node)) AS m FROM nodes.scores")
    assert counts["n"].to_list() == counts["m"].to_list() == [15]  # all, cpu, memory, disk, network


@pytest.mark.parametrize("stage", ["find_files", "land_telemetry", "ingest_batch", "source_version"])
def test_an_ingest_of_telemetry(
    after: Die, stage: str, warehouse: Warehouse, drawn_telemetry: Callable[..., Path]
) -> None:
    paths = [str(drawn_telemetry(name, workloads=name, n_runs=2)) for name in "ab"]
    params = WorkloadIngestParams(telemetry=paths, source="log", warehouse=warehouse)
    ended(after(workloads, stage), lambda: call(workloads.workloads_ingest, params))
    assert call(workloads.workloads_ingest, params)["n_runs"] == 4
    assert fetch(warehouse, "SELECT count(*) AS n FROM workloads.runs")["n"].to_list() == [4]
    assert fetch(warehouse, "SELECT count(*) AS n FROM workloads.counters")["n"].to_list() == [36]


@pytest.mark.parametrize("stage", ["plan_fingerprints", "cut_phases", "keep_phases", "clear_parts", "write_report"])
def test_a_fingerprinting(after: Die, stage: str, workloads_log: Warehouse) -> None:
    params = FingerprintFlowParams(source="log", fan_out=FanOutParams(runs_per_part=10), warehouse=workloads_log)
    module = workloads
    ended(after(module, stage), lambda: call(module.workloads_fingerprint, params))
    found = call(module.workloads_fingerprint, params)
    assert found["n_new"] + found["n_done"] == 24
    assert found["n_done"] == {"keep_phases": 10, "clear_parts": 24, "write_report": 24}.get(stage, 0)
    kept = fetch(
        workloads_log, "SELECT count(DISTINCT run_id) AS n, count(*) AS rows, sum(phase) AS s FROM workloads.phases"
    )
    assert kept["n"].to_list() == [24]
    assert list((Path(workloads_log.landing_folder) / "fingerprints").rglob("*.parquet")) == []


@pytest.mark.parametrize("stage", ["train", "write_report"])
def test_a_training(after: Die, stage: str, workloads_log: Warehouse, quick_identify: IdentifyParams) -> None:
    alone = TrainParams()
    params = WorkloadTrainParams(source="log", identify=quick_identify, train=alone, warehouse=workloads_log)
    ended(after(workloads, stage), lambda: call(workloads.workloads_train, params))
    found = call(workloads.workloads_train, params)
    in_use = champion(workloads_log.models, "workloads", "log", "identity")
    assert in_use is not None
    assert in_use.model_id == found["champion_id"]
    figures = fetch(workloads_log, "SELECT count(DISTINCT model_id) AS n FROM workloads.model_figures")
    assert figures["n"].to_list() == [len(cards(workloads_log.models))] == [2]


@pytest.mark.parametrize("stage", ["identify", "write_report"])
def test_an_identification(after: Die, stage: str, identifying_log: Warehouse) -> None:
    params = WorkloadIdentifyParams(source="log", warehouse=identifying_log)
    ended(after(workloads, stage), lambda: call(workloads.workloads_identify, params))
    assert call(workloads.workloads_identify, params)["n_runs"] == 0  # they stand there already
    kept = fetch(identifying_log, "SELECT count(*) AS n FROM workloads.identifications")
    assert kept["n"].to_list() == [24]


@pytest.mark.parametrize(
    "stage", ["record_live", "land_telemetry", "ingest_batch", "runs_of_batch", "identify", "watch", "announce_alarms"]
)
def test_a_watch(after: Die, stage: str, identifying_log: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    with writing(identifying_log) as connection, transaction(connection):
        connection.execute("UPDATE workloads.runs SET is_simulated = false")  # as what runs now is
    [run] = fetch_runs(identifying_log, "log", ["a-00"])
    live = replace(run, run_id="live", workload=None)
    monkeypatch.setattr("tasks.workloads.record.bench.record_live", lambda *_: live)
    watch = WatchParams(expected=["b"], min_confidence=0)
    params = WorkloadWatchParams(source="log", watch=watch, warehouse=identifying_log)
    ended(after(workloads, stage), lambda: call(workloads.workloads_watch, params))
    call(workloads.workloads_watch, params)
    assert len(read_alarms(identifying_log)) == 1
    assert unannounced(identifying_log, "workloads", "log") == []
