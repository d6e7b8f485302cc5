"""When a step is tried again, what a continued run skips, and how results are kept."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from prefect import flow
from prefect.settings import PREFECT_LOCAL_STORAGE_PATH
from prefect.states import Failed

from flows.engine import steps
from flows.engine.steps import is_io_error, step
from tasks.errors import BadInput, NotFound, WarehouseBusy

calls: list[str] = []


@step
def look_at(path: str) -> str:
    """A step that says that it ran."""
    calls.append(path)
    return f"key of {path}"


@step
def look_beside(path: str) -> str:
    """Another step, with the same inputs."""
    calls.append(f"beside {path}")
    return f"key beside {path}"


@step
def fail_with(kind: str) -> str:
    """A step that fails in one of several ways."""
    calls.append(kind)
    raise {
        "disk": OSError(5, "Input/output error"),
        "missing": FileNotFoundError("no such file"),
        "input": BadInput("x.csv", "is bad", "a good file"),
        "code": ZeroDivisionError("division by zero"),
    }[kind]


@pytest.fixture(autouse=True)
def no_calls() -> Iterator[None]:
    calls.clear()
    yield


@pytest.mark.parametrize(
    ("error", "is_worth_it"),
    [
        (OSError(5, "Input/output error"), True),
        (ConnectionResetError("peer has gone"), True),
        (TimeoutError("no answer"), True),
        (FileNotFoundError("no such file"), False),
        (PermissionError("not yours"), False),
        (BadInput("x.csv", "is bad", "a good file"), False),
        (NotFound("source 'x' has no runs"), False),
        (ZeroDivisionError("division by zero"), False),
        (WarehouseBusy("in use by process 7"), False),  # at a terminal the stated wait is the whole wait
    ],
)
def test_only_faults_of_disk_and_network_are_tried_again(error: Exception, is_worth_it: bool) -> None:
    assert is_io_error(None, None, Failed(data=error)) is is_worth_it  # type: ignore[arg-type]


def test_a_busy_warehouse_is_tried_again_where_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", "a deployment")
    assert is_io_error(None, None, Failed(data=WarehouseBusy("in use"))) is True  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "n_tries"), [("disk", 4), ("missing", 1), ("input", 1), ("code", 1)])
def test_a_step_is_tried_four_times_for_a_disk_fault_and_once_for_a_mistake(
    prefect_server: None, kind: str, n_tries: int
) -> None:
    quick = fail_with.with_options(retry_delay_seconds=0, retry_jitter_factor=None)

    @flow
    def once() -> str:
        return quick(kind)

    with pytest.raises((OSError, BadInput, ZeroDivisionError)):
        once()
    assert calls == [kind] * n_tries


def test_one_run_does_a_step_once_and_a_new_run_does_it_again(prefect_server: None) -> None:
    @flow
    def twice() -> list[str]:
        return [look_at("a.csv"), look_at("a.csv"), look_at("b.csv")]

    assert twice() == ["key of a.csv", "key of a.csv", "key of b.csv"]
    assert calls == ["a.csv", "b.csv"]
    twice()
    assert calls == ["a.csv", "b.csv"] * 2


def test_two_steps_with_the_same_inputs_have_results_of_their_own(prefect_server: None) -> None:
    @flow
    def both() -> list[str]:
        return [look_at("a.csv"), look_beside("a.csv"), look_at("a.csv")]

    assert both() == ["key of a.csv", "key beside a.csv", "key of a.csv"]
    assert calls == ["a.csv", "beside a.csv"]


def test_changed_code_of_any_function_below_a_step_does_it_again(
    prefect_server: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    @flow
    def twice() -> None:
        look_at("a.csv")
        monkeypatch.setattr(steps, "code_hash", lambda: "after the change")
        look_at("a.csv")

    twice()
    assert calls == ["a.csv", "a.csv"]


def test_the_code_hash_sees_every_file_of_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "jobs" / "deep.sql").write_text("SELECT 1")
    monkeypatch.setattr(steps.tasks, "__file__", str(tmp_path / "__init__.py"))
    before = steps.code_hash.__wrapped__()
    (tmp_path / "jobs" / "deep.sql").write_text("SELECT 2")
    assert steps.code_hash.__wrapped__() != before


def test_what_a_step_keeps_is_its_key_as_json(prefect_server: None) -> None:
    @flow
    def once() -> str:
        return look_at("kept.csv")

    once()
    files = [file for file in Path(PREFECT_LOCAL_STORAGE_PATH.value()).glob("*") if file.is_file()]
    kept = [json.loads(file.read_text()) for file in files]  # a pickle would not load
    assert '"key of kept.csv"' in [one.get("result") for one in kept], kept
