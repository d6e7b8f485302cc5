"""The workloads of a source in one result: what ran, what should not have, and what is missing."""

import pandas as pd
import pytest

from tasks.errors import BadInput, NotFound
from tasks.report.workloads import called, fetch_workloads, timeline_figure, workload_items, workloads_result
from tasks.warehouse.alarms import Alarm, raise_alarms
from tasks.warehouse.connection import reading, writing
from tasks.workloads.params import WorkloadsReportParams
from tests.report import rows


def result_of(warehouse, source="box"):
    with reading(warehouse) as connection:
        return workloads_result(fetch_workloads(connection, source, WorkloadsReportParams()), "workload.html")


def looked_at(*found):
    columns = ["run_id", "workload", "label", "hour"]
    frame = pd.DataFrame([dict(zip(columns, one, strict=True)) for one in found])
    at = pd.to_datetime([f"2026-03-01 {hour:02}:00" if hour else None for hour in frame.pop("hour")])
    known = frame["workload"].notna()
    return frame.assign(is_known=known, confidence=0.9, started_at=at)


def test_the_latest_run_is_the_answer_and_how_many_are_odd_stands_beside_it(warehouse, fill_workloads):
    result = result_of(fill_workloads(warehouse))
    assert result.answer.startswith("The latest run, round-2/005, is redis (97.1 % sure); 1 of 6 identified runs")
    assert (result.state, result.certainty) == ("look", "The model called 98.7 % of 7 held-out runs right (model m1).")
    assert result.reasons[0] == "cpu.user_cores in phase 2 matches best: 5.1 against 5.0"


def test_a_run_that_has_raised_an_alarm_is_not_as_it_should_be(warehouse, fill_workloads):
    with writing(fill_workloads(warehouse)) as connection:
        raise_alarms(connection, [Alarm("workloads", "box", "unexpected-workload", "round-2/005", "redis runs", {})])
    assert "; 2 of 6 identified runs are not what they should be" in result_of(warehouse).answer


def test_runs_that_nobody_identified_are_called_by_the_command_that_keeps_it(warehouse, fill_workloads):
    with writing(fill_workloads(warehouse)) as connection:
        connection.execute("DELETE FROM workloads.identifications").fetchall()
    assert result_of(warehouse).action == "Next: `whorl workloads watch --source box --newest 20`."


def test_all_that_is_known_has_its_part(warehouse, fill_workloads, told):
    result = result_of(fill_workloads(warehouse))
    drawn = {figure.name for part in result.sections for figure in part.figures if figure.chart}
    assert drawn == {"timeline", "confusion", "series"}
    words = told(result)
    assert "unknown, most like nginx" in words
    assert "No row is in quarantine." in words


def test_of_a_group_that_was_watched_the_list_says_which(warehouse, fill_workloads):
    fill_workloads(warehouse)

    def listed():
        [table] = [
            one for part in result_of(warehouse).sections for one in part.tables if one.name == "identifications"
        ]
        return {column.key for column in table.columns}, {row["run_id"]: row["subject"] for row in table.rows}

    assert "subject" not in listed()[0]
    with writing(warehouse) as connection:
        connection.execute(
            "UPDATE workloads.runs SET conditions = {subject: 'kv.service'} WHERE run_id = 'round-2/005'"
        )
    keys, groups = listed()
    assert "subject" in keys and groups["round-2/005"] == "kv.service"


def test_runs_are_listed_by_workload_and_input_and_lead_to_their_pages(warehouse, fill_workloads, rows_of):
    listed = rows_of(result_of(fill_workloads(warehouse)), "Runs by workload and input")
    assert [(row["workload"], row["input"], row["n_runs"]) for row in listed] == [
        ("nginx", "input 0", "2"),
        ("nginx", "input 1", "1"),
        ("redis", "input 0", "2"),
        ("redis", "input 1", "1"),
    ]


def test_a_source_without_phases_or_model_says_how_to_make_them(warehouse, put_rows, told):
    words = told(result_of(put_rows(warehouse, "workloads", "box", **rows.telemetry())))
    for verb in ("fingerprint", "train", "watch"):
        assert f"whorl workloads {verb} --source box" in words


def test_runs_without_a_label_are_shown_by_what_they_are_like_and_how_to_name_them(workloads_log, told):
    with writing(workloads_log) as connection:
        connection.execute("UPDATE workloads.runs SET workload = NULL").fetchall()
    result = result_of(workloads_log, "log")
    assert result.answer == "24 runs without a label, of 4 kinds; none was identified yet."
    assert result.action == "Next: `whorl workloads clusters --source log`."
    words = told(result)
    assert "whorl workloads ingest --manifest FILE --source log" in words and "what sets it apart" in words.lower()


def test_simulated_runs_are_called_simulated_and_never_mixed(warehouse, put_rows):
    put_rows(warehouse, "workloads", "box", **rows.telemetry(simulated=True))
    assert result_of(warehouse).notices == ("Simulated: these runs were drawn, not measured.",)
    one = rows.telemetry(n_runs=1)["runs"][0] | {"run_id": "other"}
    put_rows(warehouse, "workloads", "box", runs=[one])
    with pytest.raises(BadInput, match="6 simulated runs stand among 1 measured ones"):
        result_of(warehouse)


def test_a_source_without_runs_is_told(warehouse):
    with pytest.raises(NotFound, match="source 'box' has no runs of workloads"):
        result_of(warehouse)


def test_a_run_is_odd_if_it_is_unknown_or_not_its_label_or_has_raised_an_alarm():
    runs = looked_at(("d", "b", None, 4), ("a", "a", "a", 1), ("c", None, None, 3), ("b", "a", "b", 2))
    assert timeline_figure(runs, ["d"]).evidence == "n = 4 identified runs, 3 not what they should be"


def test_what_a_run_was_called_is_told_in_words():
    assert called({"is_known": True, "workload": "redis", "nearest": "redis"}) == "redis"
    assert called({"is_known": False, "workload": None, "nearest": "nginx"}) == "unknown, most like nginx"


def test_without_a_run_the_timeline_says_so():
    assert timeline_figure(pd.DataFrame()).words == "No run was identified yet."


def test_every_workload_has_a_page_with_its_runs(warehouse, fill_workloads):
    with reading(fill_workloads(warehouse)) as connection:
        items = dict(workload_items(connection, fetch_workloads(connection, "box", WorkloadsReportParams())))
    assert items["redis"].answer == "3 runs of redis; 3 of 3 identified ones were called so."
    assert items["nginx"].state == "look"  # one of its runs is unknown
