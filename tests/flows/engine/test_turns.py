"""Network benchmarks of nodes that record at the same time: one after the other."""

import contextvars
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError

from flows.engine import turns
from flows.engine.turns import LIMIT, NoTurn, make_limit, network_turn, take_back_turns
from tasks.errors import WhorlError
from tasks.nodes.record.params import SHORT

pytestmark = pytest.mark.usefixtures("prefect_server")
CPU = next(one for one in SHORT if not one.is_network)
NETWORK = next(one for one in SHORT if one.is_network)


def limit() -> Any:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        return client.read_global_concurrency_limit_by_name(LIMIT)


def test_the_limit_is_made_once_and_an_operators_number_stays() -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import GlobalConcurrencyLimitUpdate

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
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import GlobalConcurrencyLimitUpdate

    with get_client(sync_client=True) as client:
        client.update_global_concurrency_limit(LIMIT, GlobalConcurrencyLimitUpdate(active_slots=1))


def test_what_a_killed_recorder_held_is_taken_back_on_a_server_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    make_limit()
    take_for_ever()
    monkeypatch.setattr(turns, "is_shared", lambda: True)
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
    monkeypatch.setattr(turns, "concurrency", refused)
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
    monkeypatch.setattr(turns, "concurrency", never_given_back)
    with caplog.at_level(logging.WARNING), network_turn(NETWORK):
        pass
    assert any("cannot be given back (connection reset)" in message for message in caplog.messages)


def test_a_fault_of_the_benchmark_itself_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "concurrency", never_given_back)
    with pytest.raises(ValueError, match="of its own"), network_turn(NETWORK):
        raise ValueError("of its own")
