"""`whorl workloads changepoints`: where a series changes, as programs and people read it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Whorl = Callable[..., Any]


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """Two columns: one jumps at row 40, both are missing in row 10, and line 21 is empty."""
    rng = np.random.default_rng(1)
    jumps, noise = rng.normal(0, 1, 80) + 20 * (np.arange(80) >= 40), rng.normal(5, 1, 80)
    lines = ["jumps,noise", *(f"{a},{b}" for a, b in zip(jumps, noise, strict=True))]
    lines[11], lines[20] = ",", ""
    file = tmp_path / "series.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_one_json_value_holds_rows_and_probabilities(whorl: Whorl, series: Path) -> None:
    ended = whorl("workloads", "changepoints", series, "--json")
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert set(found) == {"changepoints", "probabilities"}
    assert found["changepoints"] == [40]
    assert 0.5 < found["probabilities"][0] <= 1


def test_a_method_without_probabilities_has_null_in_their_place(whorl: Whorl, series: Path) -> None:
    found = json.loads(whorl("workloads", "changepoints", series, "--method", "pelt", "--json").out)
    assert 40 in found["changepoints"]
    assert set(found["probabilities"]) == {None}


def test_each_column_can_be_asked_for_alone(whorl: Whorl, series: Path) -> None:
    found = json.loads(whorl("workloads", "changepoints", series, "--each", "--json").out)["counters"]
    assert (found["jumps"]["changepoints"], found["noise"]["changepoints"]) == ([40], [])
    lines = whorl("workloads", "changepoints", series, "--each").out.splitlines()
    assert lines[0].split() == ["column", "row", "probability"]
    assert [line.split()[:2] for line in lines[1:]] == [["jumps", "40"]]


def test_a_person_sees_a_table_or_a_line_that_says_there_is_nothing(whorl: Whorl, tmp_path: Path, series: Path) -> None:
    assert whorl("workloads", "changepoints", series).out.splitlines()[1].split()[0] == "40"
    flat = tmp_path / "flat.csv"
    flat.write_text("a\n" + "1\n" * 30)
    ended = whorl("workloads", "changepoints", flat)
    assert (ended.code, ended.out, ended.err) == (0, "", "no change in 30 samples\n")
    assert json.loads(whorl("workloads", "changepoints", flat, "--json").out) == {
        "changepoints": [],
        "probabilities": [],
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n3\n", "line 3: 1 fields; the header has 2"),
        ("a\n1\nx\n", "line 3: 'x' is no finite number"),
        ("1,2\n3,4\n", "no header line"),
        ("", "the file is empty"),
    ],
)
def test_a_broken_file_is_one_line_with_its_place(whorl: Whorl, tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "broken.csv"
    file.write_text(text)
    ended = whorl("workloads", "changepoints", file, "--json")
    assert ended.code == 3
    assert told in json.loads(ended.out)["error"]["message"]
    assert told in ended.err
    assert ended.err.count("\n") == 1
