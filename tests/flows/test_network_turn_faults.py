"""A Prefect server that fails while nodes take turns: an execution is lost at most, never a campaign."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError

from flows.engine import turns
from flows.engine.turns import (
    NoTurn,
    network_turn,
)
from tasks.errors import WhorlError
from tasks.nodes.record.params import SHORT

NETWORK = next(one for one in SHORT if one.is_network)


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
