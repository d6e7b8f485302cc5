"""Verdicts become alarms that name node, aspect, metrics and what to do."""

import pandas as pd

from tasks.nodes.detect.alarms import degradations
from tasks.nodes.detect.params import AlarmParams

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
    assert alarm.message.endswith("it shows in events_per_second of cpu-sysbench (4.0 deviations worse)")
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


def test_an_alarm_that_goes_on_under_a_new_model_is_not_told_again():
    """By the model before, executions 5, 6 and 7 were flagged; by the new one 4 is as well, which raises it at 6."""
    [before] = alarms_of([False] * 5 + [True] * 3).raised
    rows = judged([False] * 4 + [True] * 4)
    [alone] = degradations("log", rows, reasons(rows), "n", RULES).raised
    [after] = degradations("log", rows, reasons(rows), "n", RULES, told=[before.subject]).raised
    assert alone.subject == "a/cpu/a-cpu-006" != before.subject
    assert (after.subject, after.alarm_id) == (before.subject, before.alarm_id)


def test_a_later_alarm_of_the_same_node_has_a_name_of_its_own():
    rows = judged([False] * 5 + [True] * 3 + [False] * 3 + [True] * 3)
    raised = degradations("log", rows, reasons(rows), "m", RULES, told=["a/cpu/a-cpu-007"]).raised
    assert [(alarm.kind, alarm.subject) for alarm in raised] == [
        ("cleared-degradation", "a/cpu/a-cpu-007"),
        ("suspected-degradation", "a/cpu/a-cpu-013"),
    ]


def test_reasons_are_of_the_executions_of_the_alarm_alone():
    """What an execution before the alarm said is not said again."""
    rows = judged([True] + [False] * 5 + [True] * 3)
    said = reasons(rows).assign(metric=["old/m", *["new/m"] * 3])
    [alarm] = degradations("log", rows, said, "m", RULES).raised
    assert alarm.message.endswith("it shows in m of new (4.0 deviations worse)")


def test_an_alarm_that_the_present_model_does_not_have_is_withdrawn():
    """Two alarms were told: by this model the CPU of a is degraded, and nothing ever was of its disk."""
    rows = judged([False] * 5 + [True] * 3)
    still_open = {"a/cpu/a-cpu-007": ("a", "cpu"), "a/disk/a-disk-003": ("a", "disk")}
    raised = degradations("log", rows, reasons(rows), "n", RULES, told=still_open, still_open=still_open).raised
    assert [(alarm.kind, alarm.subject) for alarm in raised] == [
        ("suspected-degradation", "a/cpu/a-cpu-007"),
        ("cleared-degradation", "a/disk/a-disk-003"),
    ]
    assert raised[1].message == "node a, disk: not degraded by model n, which is in use now: withdrawn"


def test_two_alarms_that_are_one_by_the_present_model_go_on():
    rows = judged([False] * 5 + [True] * 6)
    still_open = {"a/cpu/a-cpu-007": ("a", "cpu"), "a/cpu/a-cpu-010": ("a", "cpu")}
    raised = degradations("log", rows, reasons(rows), "n", RULES, told=still_open, still_open=still_open).raised
    assert [(alarm.kind, alarm.subject) for alarm in raised] == [("confirmed-degradation", "a/cpu/a-cpu-007")]
