"""A run that failed at the warehouse is told once, not again as a row that could not be written."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from flows.engine import kept_runs
from flows.parameters import IngestParams, SummaryFlowParams
from tasks.errors import BadInput, WarehouseBroken, WarehouseBusy, WhorlError
from tasks.jobs.params import ReadParams
from tasks.warehouse.place import Warehouse

BUSY = WarehouseBusy("process 7 holds the lock")


def failing(error: WhorlError) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise error

    return fail


@pytest.fixture
def params(warehouse: Warehouse) -> SummaryFlowParams:
    warehouse.home.mkdir()
    warehouse.file.touch()
    return SummaryFlowParams(warehouse=warehouse)


@pytest.mark.parametrize("error", [BUSY, WarehouseBroken("a newer schema")], ids=["busy", "broken"])
def test_an_error_of_the_warehouse_is_told_once(
    params: SummaryFlowParams, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: WhorlError
) -> None:
    monkeypatch.setattr(kept_runs, "record_run", failing(error))
    with pytest.raises(type(error)), caplog.at_level(logging.WARNING):
        kept_runs.kept("jobs-summary", params, failing(error))
    assert caplog.messages == []


def test_another_error_than_that_of_the_work_is_a_warning(
    params: SummaryFlowParams, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kept_runs, "record_run", failing(BUSY))
    with pytest.raises(BadInput), caplog.at_level(logging.WARNING):
        kept_runs.kept("jobs-summary", params, failing(BadInput("a.csv", "is no log", "a job log")))
    assert caplog.messages == ["the run is missing in ops.runs: process 7 holds the lock"]


def test_work_that_is_done_is_not_undone_by_a_missing_row(
    params: SummaryFlowParams, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kept_runs, "record_run", failing(BUSY))
    with caplog.at_level(logging.WARNING):
        assert kept_runs.kept("jobs-summary", params, lambda: {"n": 1}) == {"n": 1}
    assert caplog.messages == ["the run is missing in ops.runs: process 7 holds the lock"]


@pytest.mark.parametrize("pseudonymise", [False, True])
def test_paths_of_a_pseudonymised_ingest_are_not_kept(
    params: SummaryFlowParams, monkeypatch: pytest.MonkeyPatch, pseudonymise: bool
) -> None:
    written: list[Any] = []
    monkeypatch.setattr(kept_runs, "record_run", lambda _, run: written.append(run))
    asked = IngestParams(
        paths=["/logs/ada", "/logs/ada lovelace.csv"],
        read=ReadParams(pseudonymise=pseudonymise),
        warehouse=params.warehouse,
    )
    with pytest.raises(BadInput):
        kept_runs.kept("jobs-ingest", asked, failing(BadInput("/logs/ada/grace.csv", "is no log", "a job log")))
    (run,) = written
    hidden = {"paths": ["(pseudonymised)"] * 2, "error": "BadInput: (pseudonymised): is no log; expected a job log"}
    whole = {"paths": asked.paths, "error": "BadInput: /logs/ada/grace.csv: is no log; expected a job log"}
    assert {"paths": run.parameters["paths"], **run.figures} == (hidden if pseudonymise else whole)
