"""The automation for dead runs: it watches whorl's runs only, and waits for longer than two heartbeats."""

from datetime import timedelta

from prefect.events.schemas.automations import EventTrigger

from flows.engine.deploying import (
    HEARTBEAT,
    dead_run_automation,
)
from flows.engine.forms import TAG
from flows.engine.servers import FLOW_VARIABLES


def trigger() -> EventTrigger:
    found = dead_run_automation().trigger
    assert isinstance(found, EventTrigger)
    return found


def test_one_late_heartbeat_does_not_kill_a_run() -> None:
    assert trigger().within > timedelta(seconds=2 * int(FLOW_VARIABLES["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"]))


def test_runs_of_other_projects_on_the_same_server_are_left_alone() -> None:
    assert f"prefect.tag.{TAG}" in str(trigger().match_related)


def test_a_run_that_ended_is_not_marked() -> None:
    assert {HEARTBEAT, "prefect.flow-run.Completed", "prefect.flow-run.Failed"} <= trigger().expect
    assert trigger().after == {HEARTBEAT}
