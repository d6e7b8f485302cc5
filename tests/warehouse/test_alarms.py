"""Alarms: one for each happening, whoever finds it again."""

from datetime import UTC, datetime

from tasks.warehouse.alarms import Alarm, raise_alarms, read_alarms
from tasks.warehouse.connection import writing


def alarm(subject, *, message="slow", source="log"):
    return Alarm("jobs", source, "slow-run", subject, message, {"runtime_s": 1.0})


def test_an_alarm_is_named_by_what_happened_and_not_by_its_words():
    assert alarm("run-1", message="slow").alarm_id == alarm("run-1", message="very slow").alarm_id
    names = {alarm("run-1").alarm_id, alarm("run-2").alarm_id, alarm("run-1", source="other").alarm_id}
    assert len(names) == 3
    # parts of the name cannot be shifted into one another
    assert Alarm("jobs", "a", "b", "c", "", {}).alarm_id != Alarm("jobs", "a", "bc", "", "", {}).alarm_id


def test_only_new_alarms_are_written_and_returned_in_the_order_given(warehouse):
    with writing(warehouse) as connection:
        assert raise_alarms(connection, []) == []
        first = raise_alarms(connection, [alarm("b"), alarm("a"), alarm("b")], now=datetime(2026, 1, 1))
        second = raise_alarms(connection, [alarm("c"), alarm("a", message="again")], now=datetime(2026, 1, 2))
    assert first == [alarm("b").alarm_id, alarm("a").alarm_id]
    assert second == [alarm("c").alarm_id]
    found = read_alarms(warehouse)
    assert found["subject"].tolist() == ["c", "a", "b"]
    assert found["message"].unique().tolist() == ["slow"]


def test_the_clock_may_have_a_zone_and_rows_are_utc(warehouse):
    with writing(warehouse) as connection:
        raise_alarms(connection, [alarm("a")], now=datetime(2026, 1, 1, 12, tzinfo=UTC))
    assert read_alarms(warehouse)["raised_at"].iloc[0] == datetime(2026, 1, 1, 12)
