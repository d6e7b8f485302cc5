"""Verdicts become alarms that name node, aspect, metrics and what to do."""

import pandas as pd

from tasks.nodes.fingerprint.alarm_params import AlarmParams
from tasks.nodes.learned.watching import degradations

RULES = AlarmParams(flagged=3, last=4, min_executions=4, confirm=2, clear=3)


def judged(flags, node="a", aspect="cpu"):
    n = len(flags)
    return pd.DataFrame(
        {
            "node": node,
            "aspect": aspect,
            "execution_id": [f"{node}-{aspect}-{at:03}" for at in range(n)],
            "started_at": pd.Timestamp("2026-01-01") + pd.to_timedelta(range(n), unit="h"),
            "probability": [0.9 if one else 0.1 for one in flags],
            "is_flagged": flags,
            "is_contaminated": False,
        }
    )


def reasons(rows, metric="cpu-sysbench@1a2b3c4d/events_per_second"):
    own = rows[rows["is_flagged"]]
    return pd.DataFrame({"execution_id": own["execution_id"], "place": 1, "metric": metric, "deviation": -4.0})


def alarms_of(flags):
    rows = judged(flags)
    return degradations("log", rows, reasons(rows), "m", RULES)


def test_one_bad_execution_is_no_alarm():
    assert alarms_of([False] * 6 + [True] + [False] * 3).raised == ()


def test_a_suspected_node_is_told_with_its_metrics_and_asked_for_a_benchmark():
    found = alarms_of([False] * 5 + [True] * 3)
    [alarm] = found.raised
    assert (alarm.kind, alarm.subject) == ("suspected-degradation", "a/cpu/a-cpu-007")
    assert "node a, cpu: looks degraded since a-cpu-007 at 2026-01-01 07:00 UTC; 3 of 3 executions" in alarm.message
    assert alarm.message.endswith("it shows in events_per_second of cpu-sysbench (-4.0 deviations)")
    assert alarm.evidence["model_id"] == "m"
    assert found.watched.asking.to_dict("records") == [{"node": "a", "aspect": "cpu"}]
    assert found.watched.excluded == ()


def test_fresh_executions_that_are_flagged_confirm_and_exclude():
    found = alarms_of([False] * 5 + [True] * 5)
    [alarm] = found.raised
    [before] = alarms_of([False] * 5 + [True] * 3).raised
    assert (alarm.kind, alarm.subject) == ("confirmed-degradation", before.subject)
    assert alarm.alarm_id != before.alarm_id  # told anew
    assert found.watched.excluded == ("a",)


def test_what_recovered_is_told_to_those_who_were_told_of_it():
    rows = judged([False] * 5 + [True] * 3 + [False] * 3)
    assert degradations("log", rows, reasons(rows), "m", RULES).raised == ()
    [alarm] = degradations("log", rows, reasons(rows), "m", RULES, told=["a/cpu/a-cpu-007"]).raised
    assert alarm.kind == "cleared-degradation"
    assert "no longer degraded" in alarm.message


def test_aspects_are_followed_apart():
    rows = pd.concat([judged([False] * 5 + [True] * 3), judged([False] * 8, aspect="disk")], ignore_index=True)
    found = degradations("log", rows, reasons(rows), "m", RULES)
    assert {(row.aspect, row.state) for row in found.watched.states.itertuples()} == {
        ("cpu", "suspected"),
        ("disk", "healthy"),
    }
