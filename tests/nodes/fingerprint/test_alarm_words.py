"""Alarms in words: what a person reads, and what is kept."""

import json

import pandas as pd

from tasks.nodes.detect.alarms import (
    evidence_of,
    kind_of,
    message_of,
    subject_of,
    watch_nodes,
)
from tasks.nodes.detect.params import AlarmParams

FIRST = pd.Timestamp("2026-01-01")
FEW = AlarmParams(flagged=2, last=3, min_executions=2, confirm=2, clear=2)


def alarm_of(row):
    """The only alarm of executions an hour apart; `!` is flagged."""
    rows = pd.DataFrame(
        {
            "node": "n-1",
            "aspect": "disk",
            "execution_id": [f"run-{at}" for at in range(len(row))],
            "started_at": [FIRST + pd.Timedelta(hours=at) for at in range(len(row))],
            "probability": [0.95 if mark == "!" else 0.05 for mark in row],
            "is_flagged": [mark == "!" for mark in row],
            "is_contaminated": False,
        }
    )
    [alarm] = watch_nodes(rows, FEW).alarms.to_dict("records")
    return alarm


def test_a_suspicion_says_what_it_rests_on_and_what_comes_next():
    alarm = alarm_of(".!!")
    assert kind_of(alarm) == "suspected-degradation" and subject_of(alarm) == "n-1/disk/run-2"
    assert message_of(alarm) == (
        "node n-1, disk: looks degraded since run-2 at 2026-01-01 02:00 UTC; 2 of 2 executions flagged from run-1 on, "
        "median probability 95.0 %; a fresh benchmark will tell"
    )


def test_a_confirmed_alarm_keeps_its_subject_and_says_to_leave_the_node_out():
    alarm = alarm_of(".!!!.!")
    assert kind_of(alarm) == "confirmed-degradation" and subject_of(alarm) == "n-1/disk/run-2"
    assert message_of(alarm) == (
        "node n-1, disk: is degraded, confirmed by run-5 at 2026-01-01 05:00 UTC; 4 of 5 executions flagged "
        "from run-1 on, median probability 95.0 %; leave the node out"
    )


def test_a_cleared_alarm_says_so():
    alarm = alarm_of("!!..")
    assert kind_of(alarm) == "cleared-degradation"
    told = "node n-1, disk: no longer degraded, cleared by run-3 at 2026-01-01 03:00 UTC; 2 of 4 executions flagged"
    assert message_of(alarm).startswith(told)


def test_evidence_is_plain_json_and_says_null_for_what_has_not_happened():
    found = json.loads(json.dumps(evidence_of(alarm_of("!!")), allow_nan=False))
    assert found == {
        "node": "n-1",
        "aspect": "disk",
        "state": "suspected",
        "first_execution": "run-0",
        "raised_by": "run-1",
        "confirmed_by": None,
        "cleared_by": None,
        "raised_at": "2026-01-01T01:00:00Z",
        "confirmed_at": None,
        "cleared_at": None,
        "n_executions": 2,
        "n_flagged": 2,
        "probability": 0.95,
    }


def test_an_alarm_whose_times_nobody_knows_is_told_without_them():
    alarm = {**alarm_of("!!"), "raised_at": pd.NaT}
    assert "since run-1; 2 of 2" in message_of(alarm) and evidence_of(alarm)["raised_at"] is None
