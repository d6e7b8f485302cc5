"""`whorl config`: what is set, and where."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Whorl = Callable[..., Any]


def test_each_key_says_where_its_value_came_from(whorl: Whorl, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHORL_JOBS__SUMMARY__MIN_SUPPORT", "5")
    found = json.loads(whorl("config", "--json").out)
    assert found["jobs.summary.min_support"] == {"value": 5, "from": "WHORL_JOBS__SUMMARY__MIN_SUPPORT"}
    assert found["whorl.home"] == {"value": str(home), "from": "WHORL_HOME"}
    assert found["whorl.port"]["from"] == "default"


def test_the_home_flag_is_named_as_a_flag(whorl: Whorl, tmp_path: Path) -> None:
    found = json.loads(whorl("config", "whorl", "--home", tmp_path / "other", "--json").out)
    assert found["whorl.home"] == {"value": str(tmp_path / "other"), "from": "flag"}


def test_a_relative_home_starts_where_the_user_stands(
    whorl: Whorl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = json.loads(whorl("config", "--home", "here", "--json").out)
    assert found["whorl.home"]["value"] == str(tmp_path / "here")


def test_a_word_shows_its_own_keys_only(whorl: Whorl) -> None:
    shown = whorl("config", "jobs").out.splitlines()
    assert {line.split(".")[0] for line in shown if not line.startswith(" ")} == {"jobs"}
    assert "jobs.read.time_zone: ''  (default)" in shown


@pytest.mark.parametrize("columns", [None, "80", "100"])
def test_no_line_is_wider_than_the_terminal_and_what_was_set_comes_first(
    whorl: Whorl, monkeypatch: pytest.MonkeyPatch, columns: str | None
) -> None:
    monkeypatch.setenv("WHORL_NODES__SCORE__RESAMPLES", "700")
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    shown = whorl("config").out.splitlines()
    assert "nodes.score.resamples: 700  (WHORL_NODES__SCORE__RESAMPLES)" in shown[:6]  # beside the path of the home
    assert max(map(len, shown)) <= int(columns or 100)
    listed = whorl("datasets", "list")
    assert max(map(len, listed.out.splitlines())) <= int(columns or 100)
    assert "left out at a width of" in listed.err and "licence, public home (--json has all)" in listed.err


def test_the_defaults_of_a_word_are_yaml_that_can_be_used(whorl: Whorl) -> None:
    shown = whorl("config", "--defaults", "jobs").out
    assert yaml.safe_load(shown)["summary"]["min_support"] == 3
    assert "# Finished runs that a job needs" in shown


@pytest.mark.parametrize("arguments", [["jobz"], ["--defaults", "jobz"]])
def test_an_unknown_word_names_those_that_there_are(whorl: Whorl, arguments: list[str]) -> None:
    ended = whorl("config", *arguments)
    assert ended.code == 4
    assert ended.err == "whorl: 'jobz': no such word; there are settings of whorl, jobs, workloads, nodes, advice\n"
