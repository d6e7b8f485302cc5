"""What is kept of a flow run, and what its log says."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from flows.engine import kept_runs
from flows.engine.kept_runs import OneLine, show_errors_in_one_line, show_steps
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


def record_of(error: Exception) -> logging.LogRecord:
    info = (type(error), error, None)
    return logging.LogRecord("prefect.flow_runs", logging.ERROR, __file__, 1, "Encountered %r", (error,), info)


def test_a_users_mistake_is_one_line_without_a_traceback() -> None:
    record = record_of(BadInput("x.csv", "is bad", "a good file", "export it again"))
    assert OneLine().filter(record)
    assert record.getMessage() == "x.csv: is bad; expected a good file; export it again"
    assert record.exc_info is None


def test_a_fault_in_the_code_keeps_its_traceback() -> None:
    record = record_of(ZeroDivisionError("division by zero"))
    assert OneLine().filter(record)
    assert record.exc_info is not None


def test_the_filter_is_set_once_however_often_flows_run() -> None:
    for _ in range(3):
        show_errors_in_one_line()
    filters = logging.getLogger("prefect.flow_runs").filters
    assert len([present for present in filters if isinstance(present, OneLine)]) == 1


def test_what_steps_log_reaches_the_run_but_not_a_quiet_terminal() -> None:
    root, steps = logging.getLogger(), logging.getLogger("tasks")
    handler = logging.StreamHandler()
    levels = {one: one.level for one in [*root.handlers, handler]}
    root.addHandler(handler)
    old_root, old_steps = root.level, steps.level
    try:
        root.setLevel(logging.WARNING)
        steps.setLevel(logging.NOTSET)
        show_steps()
        assert steps.isEnabledFor(logging.INFO)
        assert handler.level == logging.WARNING
    finally:
        root.removeHandler(handler)
        root.setLevel(old_root)
        steps.setLevel(old_steps)
        for one, level in levels.items():
            one.setLevel(level)
