"""`whorl jobs whatif`: what a person and a program get to see."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

Whorl = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("trained_log")


def test_a_change_is_told_with_what_it_can_and_cannot_claim(whorl: Whorl) -> None:
    ended = whorl("jobs", "whatif", "--set", "input=x2")
    assert ended.code == 0, ended.err
    shown = " ".join(ended.out.split())
    assert "change input_bytes=x2" in shown
    assert "of 12 jobs" in shown
    assert "95th percentile" in shown
    assert "What they do not - Nothing measured stands behind it" in shown
    assert "not measured: runs were done again with no_spare, newest_sku, steady_load only, if at all" in ended.err


def test_a_program_gets_one_value_and_more_data_take_longer(whorl: Whorl) -> None:
    ended = whorl("jobs", "whatif", "--set", "input=x2", "--json")
    found = json.loads(ended.out)
    assert (found["source"], found["job"], found["edits"]) == ("log", None, "input_bytes=x2")
    assert found["features"] == ["input_bytes", "input_ratio", "input_usual"]
    assert found["changes"]["median_s"]["change"] > 0
    assert found["changes"]["token_s"]["before"] is None  # the log says nothing of tokens
    assert found["pairs"] is None
    assert len(found["jobs"]) == 10
    assert set(found["moves"]) <= {"ratio", "delta"}


def test_one_job_is_asked_by_a_part_of_its_key(whorl: Whorl) -> None:
    found = json.loads(whorl("jobs", "whatif", "--set", "input=x2", "--job", "job03", "--json").out)
    assert found["job"] == "job03#00000003"
    assert found["changes"]["median_s"]["n_groups"] == 1
    assert [row["group_key"] for row in found["jobs"]] == ["job03#00000003"]


def test_nothing_is_written(whorl: Whorl, trained_log: Warehouse) -> None:
    whorl("jobs", "whatif", "--set", "input=x2")
    assert fetch(trained_log, "SELECT count(*) AS n FROM jobs.what_ifs")["n"].to_list() == [0]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "what-if: nothing is changed; expected at least one change"),
        (["--scenario", "newest_sku"], "the log says nothing of kinds of machine (SKUs)"),
        (["--set", "input=many"], "--set input=many: 'many' is not a number"),
        (["--set", "inputs=x2"], "the log has no feature 'inputs'"),
        (["--set-std", "cpu_load=0"], "the log has no standard deviation of 'cpu_load'"),
        (["--set", "input=x2", "--job", "nowhere"], "'nowhere'"),
        (["--set", "input=x2", "--source", "other"], "source 'other' has no trained model yet"),
    ],
)
def test_what_cannot_be_asked_is_one_line(whorl: Whorl, arguments: list[str], line: str) -> None:
    ended = whorl("jobs", "whatif", *arguments)
    assert ended.code != 0
    assert line in ended.err
    assert ended.out == ""
    assert len(ended.err.strip().splitlines()) == 1
