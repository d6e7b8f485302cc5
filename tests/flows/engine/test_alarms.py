"""Events for alarms: one each, the same event for the same alarm, and never a flood."""

from datetime import datetime
from typing import Any

import pytest

from flows.engine import alarms
from tasks.warehouse.alarms import Alarm, raise_alarms
from tasks.warehouse.connection import writing
from tasks.warehouse.place import Warehouse

sent: list[dict[str, Any]] = []


@pytest.fixture(autouse=True)
def caught(monkeypatch: pytest.MonkeyPatch) -> None:
    sent.clear()
    monkeypatch.setattr(alarms, "emit_event", lambda **event: sent.append(event))


def raised(warehouse: Warehouse, n_alarms: int) -> list[str]:
    found = [Alarm("jobs", "main", "slow-run", f"run {i}", f"run {i} was slow", {"n": i}) for i in range(n_alarms)]
    with writing(warehouse) as connection:
        return raise_alarms(connection, found, now=datetime(2026, 1, 1))


def test_an_alarm_is_an_event_of_its_word_with_message_and_evidence(warehouse: Warehouse) -> None:
    assert alarms.announce(warehouse, raised(warehouse, 1)) == 1
    [event] = sent
    assert event["event"] == "whorl.jobs.alarm"
    assert event["payload"]["message"] == "run 0 was slow"
    assert event["payload"]["evidence"] == {"n": 0}
    assert event["payload"]["raised_at"] == "2026-01-01T00:00:00Z"
    assert event["resource"]["prefect.resource.id"].startswith("whorl.alarm.")


def test_announced_again_it_is_the_same_event(warehouse: Warehouse) -> None:
    ids = raised(warehouse, 2)
    alarms.announce(warehouse, ids)
    alarms.announce(warehouse, ids)
    assert len({event["id"] for event in sent}) == 2
    assert [event["id"] for event in sent[:2]] == [event["id"] for event in sent[2:]]


def test_a_hundred_alarms_are_twenty_events_and_one_that_says_so(warehouse: Warehouse) -> None:
    assert alarms.announce(warehouse, raised(warehouse, 100)) == 21
    assert len(sent) == 21
    assert sent[-1]["payload"]["message"].startswith("80 more alarms of source main")


def test_no_alarm_is_no_event(warehouse: Warehouse) -> None:
    assert alarms.announce(warehouse, []) == 0
    assert sent == []
