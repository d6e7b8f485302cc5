"""Steps as Prefect tasks: retries, keys, files, and turns on the network."""

import contextvars
import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitUpdate
from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError
from prefect.settings import PREFECT_LOCAL_STORAGE_PATH
from prefect.states import Failed

from flows.engine import forms, steps
from flows.engine.forms import in_short, of_evaluation, of_ingest
from flows.engine.steps import (
    LIMIT,
    NoTurn,
    is_io_error,
    load_each,
    make_limit,
    network_turn,
    step,
    take_back_turns,
    unless_refused,
)
from tasks.errors import BadInput, NotAllRead, NotFound, WarehouseBusy, WhorlError
from tasks.nodes.record.params import SHORT

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


def load(path: str) -> str:
    """The name of a file in capital letters; one that is called bad cannot be read."""
    if "bad" in path:
        raise BadInput(path, "no results", "results", "name another")
    return path.upper()


def test_a_file_that_cannot_be_read_does_not_hold_up_the_others() -> None:
    loaded, refused = load_each(["a", "bad-1", "b"], load)
    assert loaded == ["A", "B"]
    with pytest.raises(NotAllRead) as raised:
        unless_refused({"n": 2}, refused, 3, "results")
    line = "bad-1: no results; expected results; name another"
    assert str(raised.value) == f"{line}; the other 2 of 3 files are loaded"
    assert (raised.value.result, raised.value.refused) == ({"n": 2}, [line])
    assert unless_refused({"n": 2}, [], 2, "results") == {"n": 2}


def test_several_that_cannot_be_read_are_one_line_with_the_first() -> None:
    _, refused = load_each(["bad-1", "bad-2"], load)
    first = "bad-1: no results; expected results; name another"
    with pytest.raises(NotAllRead, match=f"^2 of 2 files: could not be read, the first: {first}; expected results$"):
        unless_refused({}, refused, 2, "results")


@pytest.mark.parametrize(
    ("paths", "told"),
    [(["/a/b.csv"], "b.csv"), (["s3://bucket"], "bucket"), (["/"], "/"), (["a", "b", "c"], "3 paths")],
)
def test_a_run_is_named_after_its_only_file_or_their_number(paths: list[str], told: str) -> None:
    assert in_short(paths) == told


@pytest.mark.parametrize(
    ("asked", "ingest", "evaluation"),
    [
        ({"logs": ["/x/y.log"], "source": "s"}, "ingest y.log into s", "evaluate y.log"),
        ({"logs": [], "source": "s"}, "ingest the inbox into s", "evaluate s"),
        ({"logs": ["a", "b"], "source": "s"}, "ingest 2 paths into s", "evaluate 2 logs"),
    ],
)
def test_a_run_says_what_it_reads_and_into_which_source(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], ingest: str, evaluation: str
) -> None:
    monkeypatch.setattr(forms, "flow_run", type("Run", (), {"parameters": asked}))
    assert of_ingest("logs", "the inbox") == ingest
    assert of_evaluation("logs", "logs") == evaluation


pytestmark = pytest.mark.usefixtures("prefect_server")
CPU = next(one for one in SHORT if not one.is_network)
NETWORK = next(one for one in SHORT if one.is_network)


def limit() -> Any:
    with get_client(sync_client=True) as client:
        return client.read_global_concurrency_limit_by_name(LIMIT)


def test_the_limit_is_made_once_and_an_operators_number_stays() -> None:
    make_limit()
    assert make_limit() is False
    assert limit().limit == 1
    with get_client(sync_client=True) as client:
        client.update_global_concurrency_limit(LIMIT, GlobalConcurrencyLimitUpdate(limit=2))
        make_limit()
        assert limit().limit == 2
        client.update_global_concurrency_limit(LIMIT, GlobalConcurrencyLimitUpdate(limit=1))


def test_a_network_benchmark_waits_for_that_of_another_node_and_others_do_not() -> None:
    make_limit()
    entered, may_leave, order = threading.Event(), threading.Event(), []

    def other_node() -> None:
        with network_turn(NETWORK):
            entered.set()
            may_leave.wait(60)
            order.append("other")

    settings = contextvars.copy_context()  # which server: a thread would not know
    thread = threading.Thread(target=settings.run, args=(other_node,))
    thread.start()
    assert entered.wait(60)
    with network_turn(CPU):
        order.append("cpu")
    threading.Timer(0.5, may_leave.set).start()
    began = time.monotonic()
    with network_turn(NETWORK):
        order.append("network")
    thread.join(60)
    assert order == ["cpu", "other", "network"]
    assert time.monotonic() - began < 60
    assert limit().active_slots == 0


def take_for_ever() -> None:
    """A turn of a recorder that was killed, on a server that has forgotten its lease."""
    with get_client(sync_client=True) as client:
        client.update_global_concurrency_limit(LIMIT, GlobalConcurrencyLimitUpdate(active_slots=1))


def test_what_a_killed_recorder_held_is_taken_back_on_a_server_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    make_limit()
    take_for_ever()
    monkeypatch.setattr(steps, "is_shared", lambda: True)
    assert take_back_turns() == 1
    with network_turn(NETWORK):
        assert limit().active_slots == 1
    assert take_back_turns() == 0


def test_on_a_shared_server_the_turn_of_another_node_stays() -> None:
    make_limit()
    with network_turn(NETWORK):
        assert take_back_turns() == 0
        assert limit().active_slots == 1


@contextmanager
def refused(*_: Any, **__: Any) -> Iterator[None]:
    """A limit whose server does not answer."""
    raise ConcurrencySlotAcquisitionError("Unable to acquire") from ConnectionError("connection refused\nat once")
    yield


@contextmanager
def never_given_back(*_: Any, **__: Any) -> Iterator[None]:
    """A limit whose server is gone at the end of the turn."""
    try:
        yield
    finally:
        raise ConnectionError("connection reset")


def test_a_turn_that_is_not_given_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "concurrency", refused)
    with pytest.raises(NoTurn) as raised, network_turn(NETWORK):
        raise AssertionError("nobody has a turn")
    assert isinstance(raised.value, WhorlError)
    assert str(raised.value) == (
        "network-qperf: the Prefect server gives no turn for the network (connection refused); see that it answers "
        "and record again, which goes on"
    )


def test_what_was_measured_is_not_lost_when_a_turn_cannot_be_given_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(steps, "concurrency", never_given_back)
    with caplog.at_level(logging.WARNING), network_turn(NETWORK):
        pass
    assert any("cannot be given back (connection reset)" in message for message in caplog.messages)


def test_a_fault_of_the_benchmark_itself_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "concurrency", never_given_back)
    with pytest.raises(ValueError, match="of its own"), network_turn(NETWORK):
        raise ValueError("of its own")
