"""Verdicts become states and alarms by stated rules, told in words, and what watching costs."""

import json

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from tasks.nodes.detect.alarms import degradations, evidence_of, message_of, time_shares, watch_nodes
from tasks.nodes.history import read_results
from tasks.nodes.node_words import NO_REASON
from tasks.nodes.params import AlarmParams, ReadParams

FEW = AlarmParams(flagged=2, last=3, min_executions=2, confirm=2, clear=2)
FIRST = pd.Timestamp("2026-01-01")
LETTERS = {"healthy": "h", "suspected": "S", "confirmed": "C", "cleared": "k"}


def judged(row, *, node="a", aspect="cpu", hours=None, prefix=""):
    """Executions an hour apart. `.`: not flagged; `!`: flagged; `x`: flagged and disturbed; `c`: disturbed; `?`: not
    judged."""
    hours = range(len(row)) if hours is None else hours
    probability = [{"!": 0.9, "x": 0.9, "?": np.nan}.get(mark, 0.1) for mark in row]
    return pd.DataFrame(
        {
            "node": node,
            "aspect": aspect,
            "execution_id": [f"{prefix}{node}-{aspect}-{at:03}" for at in range(len(row))],
            "started_at": [FIRST + pd.Timedelta(hours=hour) for hour in hours],
            "probability": probability,
            "is_flagged": [one > 0.5 for one in probability],
            "is_contaminated": [mark in "xc" for mark in row],
        }
    )


def states(row, params=FEW, **told):
    """After each execution that counts: later ones change no earlier state."""
    rows = judged(row, **told)
    found = [watch_nodes(rows[: at + 1], params).states["state"] for at, mark in enumerate(row) if mark in ".!"]
    return "".join(LETTERS[state] for [state] in found)


MONTH_H = 30 * 24


@pytest.mark.parametrize(
    ("row", "expected", "rules", "hours"),
    [
        (".!....", "hhhhhh", {}, None),  # one spike is no alarm
        ("!..!..!..!", "hhhhhhhhhh", {}, None),  # nor is one in every three
        ("!.!", "hhS", {}, None),
        ("..!!!!!!", "hhhSSCCC", {}, None),  # degraded for good: suspected, confirmed by two more, one alarm
        ("!!!!...", "hSSCCkk", {}, None),  # recovered
        ("!!...", "hSSkk", {}, None),  # a false alarm
        ("!!.!.!.!", "hSSSSCCC", {}, None),  # flapping: never two clean ones in a row, and confirmed in time
        ("!!..!!", "hSSkkS", {}, None),  # flags from before the clearing no longer count, two new ones do
        ("!!..!.!", "hSSkkkS", {"last": 5}, None),  # nor do they with a longer window
        ("!c!", "hS", {}, None),  # what was disturbed is as if it had not been
        ("!xxx.", "hh", {}, None),  # and raises nothing
        ("!!ccc", "hS", {}, None),  # clears nothing
        ("!!xxx", "hS", {}, None),  # confirms nothing
        ("!!???", "hS", {}, None),  # nor does what nobody could judge
        ("!!c!x!", "hSSC", {}, None),
        ("!!!!!", "hhhSS", {"min_executions": 4}, None),  # a new node is given time
        ("!!.!", "hhhS", {"min_executions": 3}, None),  # the newest must be flagged itself: it has just run well
        ("!!", "hS", {}, [0, MONTH_H]),
        ("!!!", "hhS", {}, [0, MONTH_H + 1, MONTH_H + 2]),  # flags far apart in time are spikes
        ("!!!!", "hSSC", {}, [0, 1, 1000, 2000]),  # an alarm does not lapse while nobody looks
        ("!!..", "hSSk", {}, [0, 1, 1000, 2000]),
    ],
)
def test_states_of_a_node(row, expected, rules, hours):
    assert states(row, FEW.model_copy(update=rules), hours=hours) == expected


def test_an_alarm_going_on_is_one_alarm_and_says_what_brought_it():
    found = watch_nodes(judged(".!!!!!..!!"), FEW)
    first, second = found.alarms.to_dict("records")
    assert first["state"] == "cleared" and second["state"] == "suspected"
    assert [first[f"{name}_by"][-1] for name in ("raised", "confirmed", "cleared")] == ["2", "4", "7"]
    assert first["first_execution"] == "a-cpu-001" and first["cleared_at"] == FIRST + pd.Timedelta(hours=7)
    assert (
        first["executions"] == [f"a-cpu-{at:03}" for at in range(1, 8)] and first["flagged"] == first["executions"][:5]
    )
    assert first["probability"] == pytest.approx(0.9)
    assert second["first_execution"] == "a-cpu-008" and second["raised_by"] == "a-cpu-009"
    assert pd.isna(second["confirmed_by"]) and pd.isna(second["cleared_at"])


def test_the_state_of_each_node_and_aspect_is_told_with_what_is_to_be_done():
    rows = [
        judged("....", node="a"),
        judged("!!", node="b"),
        judged("!!!!", node="c", aspect="disk"),
        judged("....", node="c"),
        judged("!!..", node="d"),
        judged("ccx", node="e"),
    ]
    found = watch_nodes(pd.concat(rows), FEW)
    told = found.states.set_index(["node", "aspect"])
    assert told["state"].to_dict() == {
        ("a", "cpu"): "healthy", ("b", "cpu"): "suspected", ("c", "cpu"): "healthy", ("c", "disk"): "confirmed",
        ("d", "cpu"): "cleared", ("e", "cpu"): "healthy",
    }  # fmt: skip
    assert found.excluded == ("c",)
    assert found.states.loc[found.states["asks_for_benchmark"], "node"].tolist() == ["b"]
    assert told["n_recent_flagged"].tolist() == [0, 2, 0, 3, 1, 0]
    assert told["n_executions"].tolist() == [4, 2, 4, 4, 4, 0]
    assert told.loc[("e", "cpu"), "n_left_out"] == 3 and pd.isna(told.loc[("e", "cpu"), "last_at"])
    assert told.loc[("d", "cpu"), "since_execution"] == "d-cpu-003"
    assert told.loc[("c", "disk"), "since"] == FIRST  # its first bad execution, not the one that confirmed it
    assert told.loc[("b", "cpu"), "since_execution"] == "b-cpu-000"
    assert pd.isna(told.loc[("a", "cpu"), "since"])


def test_rows_may_come_in_any_order():
    rows = judged("..!!.!!!..")
    shuffled = rows.sample(frac=1, random_state=3)
    for name in ("states", "alarms"):
        pd.testing.assert_frame_equal(getattr(watch_nodes(shuffled, FEW), name), getattr(watch_nodes(rows, FEW), name))


def test_of_two_verdicts_about_an_execution_the_last_row_counts_and_none_twice():
    spike = judged(".!.")
    assert watch_nodes(pd.concat([spike, spike.iloc[[1]].assign(probability=0.95)]), FEW).alarms.empty
    rows = judged("!!")
    mended = pd.concat([rows, rows.iloc[[1]].assign(probability=0.1, is_flagged=False)])
    assert watch_nodes(mended, FEW).alarms.empty


def test_executions_without_a_start_do_not_count_beside_those_with_one():
    """They would be the newest for good: what the node runs next could neither confirm nor clear what they raised."""
    rows = judged("..!!")
    rows.loc[[2, 3], "started_at"] = pd.NaT
    states = watch_nodes(rows, FEW).states
    assert states["state"].tolist() == ["healthy"]
    assert (states["n_executions"].tolist(), states["n_left_out"].tolist()) == ([2], [2])


def test_where_no_start_is_known_executions_count_in_the_order_of_their_ids_and_are_never_too_old():
    rows = judged("..!!").assign(started_at=pd.NaT).iloc[::-1]
    found = watch_nodes(pd.concat([rows, judged("!!..", node="b")]), FEW)
    assert found.states["state"].tolist() == ["suspected", "cleared"]
    assert found.alarms["node"].tolist() == ["b", "a"]  # the one without a time last
    assert found.alarms["executions"].iloc[1] == ["a-cpu-002", "a-cpu-003"]


def test_executions_come_in_the_order_of_the_history(tmp_path):
    """Equal starts, and those of a node without any, are in the order of their ids in both."""
    lines = ["b,z,2026-01-02", "b,y,2026-01-02", "b,x,2026-01-01", "a,u,", "a,t,", "b,s,2026-01-03", "a,r,"]
    rows = [f"{line.split(',')[1]},{line.split(',')[0]},cpu-x,{line.split(',')[2]},rate,1" for line in lines]
    file = tmp_path / "a.csv"
    file.write_text("\n".join(["execution_id,node,benchmark,started_at,metric,value", *rows, ""]))
    executions = read_results([str(file)], ReadParams()).history.executions
    assert executions["execution_id"].tolist() == ["x", "y", "z", "s", "r", "t", "u"]
    told = executions.assign(probability=0.9, is_flagged=True, is_contaminated=False).sample(frac=1, random_state=1)
    found = watch_nodes(told, FEW).alarms.set_index("node")["executions"]
    for node, own in executions.groupby("node"):
        assert found[node] == own["execution_id"].tolist()


def test_nothing_judged_gives_empty_tables():
    found = watch_nodes(judged(""), FEW)
    assert found.states.empty and found.alarms.empty
    assert found.excluded == () and not found.states["asks_for_benchmark"].any()


@pytest.mark.parametrize("seed", range(3))
def test_alarms_of_a_node_never_overlap_and_the_disturbed_change_nothing(seed):
    row = "".join(np.random.default_rng(seed).choice(list("..!!xc"), 40))
    found = watch_nodes(judged(row), FEW)
    alarms = found.alarms
    assert (alarms["raised_at"].iloc[1:].to_numpy() > alarms["cleared_at"].iloc[:-1].to_numpy()).all()
    assert (alarms["state"].iloc[:-1] == "cleared").all()
    kept = [at for at, mark in enumerate(row) if mark in ".!"]
    without = watch_nodes(judged(row).iloc[kept], FEW)
    pd.testing.assert_frame_equal(without.alarms, alarms)


def test_more_flags_than_executions_looked_at_cannot_be_asked_for():
    with pytest.raises(ValidationError, match="expected flagged <= last"):
        AlarmParams(flagged=4, last=3)
    with pytest.raises(ValidationError):
        AlarmParams(flagged=1)  # one spike is no alarm


def alarm_of(row):
    """The only alarm of executions an hour apart; `!` is flagged."""
    rows = judged(row, node="n-1", aspect="disk")
    [alarm] = watch_nodes(rows.assign(execution_id=[f"run-{at}" for at in range(len(row))]), FEW).alarms.to_dict(
        "records"
    )
    return alarm


WORSE = "clat 11.3 ms, usually 4.1 to 4.9: worse (9 deviations)"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            ".!!",
            f"looks degraded since 2026-01-01 01:00 UTC (run-1), 2 of 2 executions flagged; {WORSE}; "
            "a fresh benchmark will tell, 2 executions in a row without a flag clear it",
        ),
        (
            ".!!!.!",
            "is degraded since 2026-01-01 01:00 UTC (run-1), confirmed 2026-01-01 05:00 UTC (run-5), 4 of 5 executions "
            f"flagged; {WORSE}; leave the node out until 2 executions in a row without a flag clear it",
        ),
    ],
)
def test_an_alarm_says_since_when_what_it_rests_on_and_what_would_clear_it(row, told):
    assert message_of(alarm_of(row), [WORSE], FEW) == f"node n-1, disk: {told}"


def test_an_alarm_that_no_metric_alone_explains_or_whose_times_nobody_knows_says_so():
    alarm = {**alarm_of("!!"), "first_at": pd.NaT}
    assert evidence_of(alarm)["first_at"] is None
    told = message_of(alarm, [], FEW)
    assert f"; {NO_REASON}; a fresh" in told and "since the execution run-0, 2 of 2" in told


def test_a_cleared_alarm_says_by_what():
    assert message_of(alarm_of("!!.."), [], FEW) == (
        "node n-1, disk: no longer degraded, cleared 2026-01-01 03:00 UTC (run-3) by 2 executions in a row without a "
        "flag; it was so since 2026-01-01 00:00 UTC (run-0), 2 of 4 executions flagged"
    )


def test_evidence_is_plain_json_and_says_null_for_what_has_not_happened():
    found = json.loads(json.dumps(evidence_of(alarm_of("!!")), allow_nan=False))
    assert found == {
        "node": "n-1", "aspect": "disk", "state": "suspected", "first_execution": "run-0", "raised_by": "run-1",
        "confirmed_by": None, "cleared_by": None, "first_at": "2026-01-01T00:00:00Z",
        "raised_at": "2026-01-01T01:00:00Z", "confirmed_at": None, "cleared_at": None, "n_executions": 2,
        "n_flagged": 2, "probability": 0.9,
    }  # fmt: skip


RULES = AlarmParams(flagged=3, last=4, min_executions=4, confirm=2, clear=3)


def raised_of(flags, *, metric="events_per_second", model="m", **asked):
    """What is raised of node a, whose flagged executions say 4.1 events a second, usually 9 to 11."""
    rows = judged(flags)
    own = rows[rows["is_flagged"]]
    told = {"metric": metric, "unit": "1/s", "value": 4.1, "usual_low": 9.0, "usual_high": 11.0, "deviation": 14.0}
    said = pd.DataFrame({"execution_id": own["execution_id"], "place": 1} | told)
    return degradations("log", rows, said, model, RULES, **{"announced": (), "still_open": {}} | asked)[1]


FIRST_TOLD = "a/cpu/a-cpu-007"


def test_fresh_executions_that_are_flagged_confirm_what_was_told_with_its_metrics():
    [before], [after] = raised_of(".....!!!"), raised_of(".....!!!!!")
    assert (before.kind, before.subject) == ("suspected-degradation", FIRST_TOLD)
    assert "; events_per_second 4.1 a second, usually 9.0 to 11.0: worse (14 deviations); " in before.message
    assert before.evidence["model_id"] == "m"
    assert (after.kind, after.subject) == ("confirmed-degradation", FIRST_TOLD)
    assert after.alarm_id != before.alarm_id  # told anew


def test_what_recovered_is_told_to_those_who_were_told_of_it_and_a_later_alarm_has_a_name_of_its_own():
    assert raised_of(".....!!!...") == []
    assert [(alarm.kind, alarm.subject) for alarm in raised_of(".....!!!...!!!", announced=[FIRST_TOLD])] == [
        ("cleared-degradation", FIRST_TOLD),
        ("suspected-degradation", "a/cpu/a-cpu-013"),
    ]


def test_an_alarm_that_goes_on_under_a_new_model_is_not_told_again():
    """By the model before, executions 5, 6 and 7 were flagged; by the new one 4 is as well, which raises it at 6."""
    [before] = raised_of(".....!!!")
    [alone] = raised_of("....!!!!", model="n")
    [after] = raised_of("....!!!!", model="n", announced=[before.subject])
    assert alone.subject == "a/cpu/a-cpu-006" != before.subject
    assert (after.subject, after.alarm_id) == (before.subject, before.alarm_id)


def test_reasons_are_of_the_executions_of_the_alarm_alone():
    """What an execution before the alarm said is not said again."""
    [alarm] = raised_of("!.....!!!", metric=["old", *["new"] * 3])
    assert "; new 4.1 a second" in alarm.message and "old" not in alarm.message


def test_an_alarm_that_the_present_model_does_not_have_is_withdrawn_and_two_that_are_one_by_it_go_on():
    """By this model the CPU of a is degraded since one time, and nothing ever was of its disk."""
    still_open = {FIRST_TOLD: ("a", "cpu"), "a/cpu/a-cpu-010": ("a", "cpu"), "a/disk/a-disk-003": ("a", "disk")}
    raised = raised_of(".....!!!!!!", model="n", announced=still_open, still_open=still_open)
    assert [(alarm.kind, alarm.subject) for alarm in raised] == [
        ("confirmed-degradation", FIRST_TOLD),
        ("cleared-degradation", "a/disk/a-disk-003"),
    ]
    assert raised[1].message == "node a, disk: not degraded by model n, which is in use now: withdrawn"


def test_the_pace_is_that_of_the_record():
    """Node a: 25 starts within a day are one an hour. Node b: three in half a day are four a day; c ran once."""
    rows = [("a", hour, 30.0) for hour in range(25)] + [
        ("b", 0, 10.0),
        ("b", 6, 20.0),
        ("b", 12, np.nan),
        ("c", 0, 9.0),
    ]
    executions = pd.DataFrame(rows, columns=["node", "hour", "duration_s"]).sample(frac=1, random_state=1)
    executions = executions.assign(started_at=FIRST + pd.to_timedelta(executions["hour"], unit="h"))
    expected = {"a": 30 / 3600, "b": 4 * 15 / 86_400, "c": np.nan}
    assert time_shares(executions).to_dict() == pytest.approx(expected, nan_ok=True)
    assert time_shares(executions.iloc[:0]).empty
