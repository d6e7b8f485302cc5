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
    assert record("abc", parameters={"ü": [1, None]}, figures={"n": 3}) == "abc"
    found = read_run(warehouse, "abc")
    assert (found["parameters"], found["figures"], found["status"]) == ({"ü": [1, None]}, {"n": 3}, "completed")


def test_a_run_that_is_recorded_again_is_replaced(warehouse, record):
    record("abc", status="failed")
    record("abc", status="completed")
    assert fetch(warehouse, "SELECT status FROM ops.runs")["status"].tolist() == ["completed"]


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
    with pytest.raises(NotFound, match=r"run 'ab': 2 runs begin so \(abc1, abd2\); 'whorl runs list' shows them all"):
        read_run(warehouse, "ab")
    with pytest.raises(NotFound, match=r"run '%': 0 runs begin so \(none\)"):
        read_run(warehouse, "%")


def test_a_full_id_is_found_though_others_begin_with_it(warehouse, record):
    for run_id in ("a", "ab", "abc"):
        record(run_id)
    assert read_run(warehouse, "ab")["run_id"] == "ab"


def test_comparison_shows_what_differs_and_numbers_as_a_ratio(warehouse, record):
    record("a", parameters={"k": {"deep": 8}, "same": 1, "flag": True}, figures={"crps": 0.5, "zero": 0, "word": "x"})
    record("b", parameters={"k": {"deep": 4}, "same": 1, "flag": False}, figures={"crps": 0.25, "zero": 2, "new": 1})
    rows = {row["key"]: row for row in compare_runs(warehouse, "a", "b").to_dict("records")}
    shown = {key: row for key, row in rows.items() if key.startswith(("parameters", "figures"))}
    assert set(shown) == {
        "parameters.k.deep", "parameters.flag", "figures.crps", "figures.zero", "figures.word", "figures.new",
    }  # fmt: skip
    assert (shown["parameters.k.deep"]["ratio"], shown["figures.crps"]["ratio"]) == (0.5, 0.5)
    assert all(math.isnan(shown[key]["ratio"]) for key in ("figures.zero", "parameters.flag", "figures.word"))


def test_a_figure_that_is_no_number_is_null_and_equal_to_itself(warehouse, record):
    for run_id in ("a", "b"):
        record(run_id, figures={"crps": math.nan, "deep": {"list": [1, math.inf]}})
    assert read_run(warehouse, "a")["figures"] == {"crps": None, "deep": {"list": [1, None]}}
    assert compare_runs(warehouse, "a", "b")["key"].tolist() == ["run_id"]
    assert fetch(warehouse, "SELECT figures->'deep'->'list'->>0 AS one FROM ops.runs")["one"].tolist() == ["1", "1"]
