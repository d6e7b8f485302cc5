"""`whorl jobs explain`: what a person and a program get to see."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

Whorl = Callable[..., Any]


@pytest.fixture
def longest(trained_log: Warehouse) -> str:
    """The run that took the longest."""
    return str(fetch(trained_log, "SELECT run_id FROM jobs.runs ORDER BY runtime_s DESC LIMIT 1")["run_id"].iloc[0])


def test_without_a_run_the_source_is_explained(whorl: Whorl, trained_log: Warehouse) -> None:
    ended = whorl("jobs", "explain")
    assert ended.code == 0, ended.err
    assert "144 that the model did not learn from" in ended.out
    assert "first reason of long runs" in ended.out
    assert "more history gives better accuracy" in ended.out
    assert "Window operators vary more" in ended.out
    assert "recorded causes" not in ended.out  # this log has none
    assert "need not be causes" in ended.err
    assert "the answer is kept" in ended.err
    again = whorl("jobs", "explain")
    assert again.out == ended.out
    assert "the answer is kept" not in again.err


def test_the_reason_of_a_run_is_told_with_what_is_usual(whorl: Whorl, trained_log: Warehouse, longest: str) -> None:
    ended = whorl("jobs", "explain", longest)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0].split() == ["run", longest]
    assert "longer because of" in lines
    first = lines[lines.index("longer because of") + 1]
    assert first.startswith("input")
    assert "usual" in first
    assert first.endswith("times as long") or "more on input" in first
    assert "the job has one of the more variable shapes, 1 of 0 (the steadiest) to 1, with probability" in ended.out


def test_the_next_run_of_a_job_is_explained(whorl: Whorl, trained_log: Warehouse) -> None:
    ended = whorl("jobs", "explain", "--job", "job03")
    assert ended.code == 0, ended.err
    assert "the next one" in ended.out
    assert "as if it came under the conditions of its last 10" in ended.out


def test_json_has_every_figure(whorl: Whorl, trained_log: Warehouse, longest: str) -> None:
    found = json.loads(whorl("jobs", "explain", longest, "--json").out)
    assert (found["source"], found["run_id"]) == ("log", longest)
    first = found["runtime"]["reasons"][0]
    assert {"family", "feature", "value", "typical", "contribution", "text"} <= set(first)
    assert first["family"] == "input"
    of_source = json.loads(whorl("jobs", "explain", "--json").out)
    assert set(of_source) == {"source", "model_id", "data_version", "families", "checks", "insights"}
    shares = [row["share"] for row in of_source["families"] if row["question"] == "runtime"]
    assert sum(shares) == pytest.approx(1)


@pytest.mark.slow
def test_the_recorded_causes_are_told_where_there_are_some(whorl: Whorl, trained_log: Warehouse) -> None:
    from tasks.warehouse.connection import writing

    with writing(trained_log) as connection:
        connection.execute("UPDATE jobs.runs SET recorded_cause = 'big_input' WHERE input_bytes > 1.4e6")
    ended = whorl("jobs", "explain")
    assert "mean reciprocal rank" in ended.out
    assert "a random order" in ended.out
    found = json.loads(whorl("jobs", "explain", "--json").out)
    ours = [row["mrr"] for row in found["checks"] if (row["order_name"], row["cause"]) == ("reasons", "all")]
    assert ours[0] > 0.5


def test_a_run_and_a_job_at_once_is_wrong_usage(whorl: Whorl, trained_log: Warehouse) -> None:
    ended = whorl("jobs", "explain", "r1", "--job", "job03")
    assert ended.code == 2
    assert "either a run or a job, not both" in ended.err


def test_an_unknown_run_is_one_line(whorl: Whorl, trained_log: Warehouse) -> None:
    ended = whorl("jobs", "explain", "r1")
    assert ended.code == 4
    assert ended.err.startswith("whorl: run 'r1': source 'log' has no run of this id; see the ids with whorl")
    assert len(ended.err.splitlines()) == 1


def test_a_source_without_a_model_says_how_to_make_one(whorl: Whorl, job_log: Callable[..., Any]) -> None:
    job_log([{"runtime_s": 1.0}])
    for arguments in ((), ("batch-000-000000",), ("--job", "job")):
        ended = whorl("jobs", "explain", *arguments)
        assert ended.code == 4
        assert ended.err.splitlines()[-1].endswith("make one with whorl jobs train --source log")
