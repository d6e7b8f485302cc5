"""Runs of flows: written once, listed, found by the beginning of their id, compared key by key."""

import math
from datetime import datetime, timedelta

import pytest

from tasks.errors import NotFound
from tasks.warehouse.connection import fetch
from tasks.warehouse.runs import RunRecord, compare_runs, list_runs, read_run, record_run

NOON = datetime(2026, 1, 1, 12)


@pytest.fixture
def record(warehouse):
    """A function that records a run of two seconds."""

    def write(run_id, *, minute=0, parameters=None, figures=None, **others):
        started_at = NOON + timedelta(minutes=minute)
        run = {"flow": "jobs-ingest", "word": "jobs", "source": "log", "status": "completed", **others}
        return record_run(
            warehouse,
            RunRecord(
                run_id=run_id, started_at=started_at, ended_at=started_at + timedelta(seconds=2),
                parameters=parameters or {}, figures=figures or {}, **run,
            ),
        )  # fmt: skip

    return write


def test_a_run_is_found_as_it_was_recorded(warehouse, record):
    record("abc", status="failed")  # which is replaced
    record("abcd")
    assert record("abc", parameters={"ü": [1, None]}, figures={"n": 3}) == "abc"
    found = read_run(warehouse, "abc")
    assert (found["parameters"], found["figures"], found["status"]) == ({"ü": [1, None]}, {"n": 3}, "completed")


def test_runs_are_listed_newest_first_with_their_length(warehouse, record):
    for minute in range(3):
        record(f"r{minute}", minute=minute)
    found = list_runs(warehouse, limit=2)
    assert found["run_id"].tolist() == ["r2", "r1"]
    assert found["runtime_s"].tolist() == [2.0, 2.0]


def test_the_beginning_of_an_id_is_enough_where_only_one_run_begins_so(warehouse, record):
    for run_id in ("abc1", "abd2", "xyz"):
        record(run_id)
    assert read_run(warehouse, "x")["run_id"] == "xyz"
    with pytest.raises(NotFound, match=r"run 'ab': 2 runs begin so: abc1, abd2; give more of the id"):
        read_run(warehouse, "ab")
    with pytest.raises(NotFound, match=r"run '%': no run of this home begins so; 'whorl runs list' shows"):
        read_run(warehouse, "%")


def test_comparison_shows_what_differs_and_which_run_is_best(warehouse, record):
    record("a", parameters={"k": {"deep": 8}, "same": 1, "flag": True}, figures={"crps": 0.5, "f1": 0.25, "word": "x"})
    record("b", parameters={"k": {"deep": 4}, "same": 1, "flag": False}, figures={"crps": 0.25, "f1": 0.5, "new": 1})
    record("c", parameters={"k": {"deep": 4}, "same": 1, "flag": False}, figures={"crps": 0.25, "f1": 0.75, "new": 1})
    found = compare_runs(warehouse, ["a", "b", "c"])
    assert found.columns.tolist() == ["key", "a", "b", "c", "best"]
    rows = found.set_index("key")
    assert rows.index.tolist() == [
        "figures.crps", "figures.f1", "figures.new", "figures.word", "parameters.flag", "parameters.k.deep",
    ]  # fmt: skip
    assert rows.loc["parameters.k.deep", ["a", "b", "c"]].tolist() == [8, 4, 4]
    assert rows["best"].tolist() == ["", "c", "", "", "", ""], "b and c have the least crps"
    assert compare_runs(warehouse, ["a", "b"]).set_index("key").loc["figures.crps", "best"] == "b"


BEST = {
    "predict.crps.model": "low", "label.log_loss.ratio": "low", "predict.log_score.model": "high",
    "window.macro_f1": "high", "false_alarms": "low", "n_jobs": "",
}  # fmt: skip


def test_which_way_a_figure_is_better_is_told_by_its_name(warehouse, record):
    for value, run_id in enumerate(("low", "high"), 1):
        record(run_id, figures=dict.fromkeys(BEST, value))
    found = compare_runs(warehouse, ["low", "high"]).set_index("key")["best"]
    assert found.to_dict() == {f"figures.{key}": best for key, best in BEST.items()}


def test_times_paths_and_places_are_no_differences(warehouse, record):
    for run_id in ("a", "b"):
        parameters = {"warehouse": {"home": run_id}, "paths": [f"/x/{run_id}", "/y"]}
        record(run_id, parameters=parameters, figures={"report": run_id, "out": f"/x/{run_id}"})
    assert compare_runs(warehouse, ["a", "b"]).empty


def test_a_figure_that_is_no_number_is_null_and_equal_to_itself(warehouse, record):
    for run_id in ("a", "b"):
        record(run_id, figures={"crps": math.nan, "deep": {"list": [1, math.inf]}})
    assert read_run(warehouse, "a")["figures"] == {"crps": None, "deep": {"list": [1, None]}}
    assert compare_runs(warehouse, ["a", "b"]).empty
    assert fetch(warehouse, "SELECT figures->'deep'->'list'->>0 AS one FROM ops.runs")["one"].tolist() == ["1", "1"]
