"""Tables and JSON: what fits, what is shortened, and what machines get."""

import json
from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.cli.output import (
    clean,
    figure,
    fitted,
    moment,
    plain,
    say,
    setting,
    shorten,
    show_facts,
    show_json,
    show_table,
)
from tasks.quantities import counted
from tasks.report.result import Column, as_text, count

WIDE = (
    Column("key", "job", kind="key"),
    Column("n", "runs", kind="number"),
    Column("note", "note"),
    Column("more", "more", is_extra=True),
)
CELLS = {"key": ["k" * 60], "n": ["1,234,567"], "note": ["word " * 12], "more": ["m" * 30]}


def test_the_title_of_a_number_is_broken_before_anything_is_left_out() -> None:
    number = Column("n", "20 or more", kind="number")
    columns = (Column("key", "job", kind="key"), number, Column("x", "x", is_extra=True))
    cells = {"key": ["k" * 30], "n": ["1 %"], "x": ["xx"]}
    assert fitted(columns, cells, 46) == {"key": 30, "n": 10, "x": 2}
    assert fitted(columns, cells, 45) == {"key": 30, "n": 4, "x": 2}


def test_extras_go_first_then_keys_shrink_then_text_wraps() -> None:
    assert set(fitted(WIDE, CELLS, 500)) == {"key", "n", "note", "more"}
    roomy = fitted(WIDE, CELLS, 140)
    assert (set(roomy), roomy["key"]) == ({"key", "n", "note"}, 60)
    tight = fitted(WIDE, CELLS, 90)
    assert (tight["key"], tight["n"], tight["note"]) == (17, 9, 60)
    tighter = fitted(WIDE, CELLS, 70)
    assert (tighter["key"], tighter["n"], tighter["note"]) == (10, 9, 47)


def test_names_wrap_between_words_and_columns_go_from_the_last_on_where_nothing_else_helps() -> None:
    names = [Column(key, key, kind="name") for key in ("one", "other", "last")]
    cells = {"one": ["abc def-ghi"], "other": ["x" * 12], "last": ["y" * 9]}
    assert fitted(names, cells, 36) == {"one": 11, "other": 12, "last": 9}
    assert fitted(names, cells, 32) == {"one": 7, "other": 12, "last": 9}
    assert fitted(names, cells, 31) == {"one": 11, "other": 12}
    assert fitted(names, cells, 5) == {"one": 7}


def test_a_sentence_is_wrapped_on_a_terminal_alone_and_cannot_draw_on_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "a job-with-a-name is late\x1b[31m, since its input is large"
    monkeypatch.delenv("COLUMNS", raising=False)
    say(words, "")
    assert capsys.readouterr().out == f"{clean(words)}\n\n"
    monkeypatch.setenv("COLUMNS", "20")
    say(words)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "a job-with-a-name is"
    assert all(len(line) <= 20 for line in lines)
    assert all(line.startswith("  ") for line in lines[1:])


def test_a_number_is_never_cut(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    show_table([{"key": "k" * 60, "n": 1_234_567}], (WIDE[0], Column("n", "runs", count, kind="number")))
    assert "1,234,567" in capsys.readouterr().out


def test_output_that_is_no_terminal_is_whole_and_plain(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    show_table([{"key": "k" * 300, "n": 1}], (Column("key", "job", kind="key", style=lambda _: "red"), WIDE[1]))
    assert capsys.readouterr().out.splitlines() == ["job" + " " * 299 + "runs", "k" * 300 + " " * 5 + "1"]


def test_a_name_of_a_log_cannot_draw_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_table([{"key": "a\x1b[31m\nb\u202e[bold]c"}], (Column("key", "job", kind="key"),))
    show_facts({"job": "a\x1b[31m\nb"})
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[bold]c" in shown
    assert len(shown.splitlines()) == 3


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=60), st.integers(4, 60))
def test_a_shortened_key_fits_and_keeps_both_ends(key: str, width: int) -> None:
    short = shorten(key, width)
    assert len(short) <= width
    assert (short == key) == (len(key) <= width)
    assert short[:1] == key[:1]
    assert short[-1:] == key[-1:]


def test_values_are_readable() -> None:
    assert [count(1234567.0), count(None), count(float("nan"))] == ["1,234,567", "–", "–"]
    assert [counted(1, "file"), counted(1200, "file")] == ["1 file", "1,200 files"]
    shown = [as_text(None), as_text(True), as_text(["a", "b"]), as_text([]), as_text(pd.NaT)]
    assert shown == ["–", "yes", "a, b", "none", "–"]
    assert [figure(2000.0), figure("x"), figure(False)] == ["2,000", "x", "no"]
    assert [setting(""), setting([]), setting({}), setting(0)] == ["''", "none", "none", "0"]
    assert moment(datetime(2026, 1, 2, 3, 4, 5)) == "2026-01-02 03:04:05"
    assert clean("tab\there") == "tab here"


def test_machines_get_json_of_every_value_that_a_warehouse_has(capsys: pytest.CaptureFixture[str]) -> None:
    values = {
        "nan": (float("nan"), None), "inf": (np.float64("inf"), None),
        "whole": (Decimal("12345678901234567890"), 12345678901234567890), "share": (Decimal("0.5"), 0.5),
        "n": (np.int64(3), 3), "yes": (np.bool_(True), True),
        "at": (pd.Timestamp("2026-01-02 03:04:05"), "2026-01-02T03:04:05Z"), "never": (pd.NaT, None),
        "bytes": (b"\x00\xff", "00ff"), "text": ("Läufe\x1b", "Läufe\x1b"),
    }  # fmt: skip
    show_json({name: value for name, (value, _) in values.items()})
    written = capsys.readouterr().out
    assert json.loads(written) == {name: told for name, (_, told) in values.items()}
    assert "\x1b" not in written


def test_plain_leaves_a_list_a_list() -> None:
    assert plain([(1, 2), {"a": {3}}]) == [[1, 2], {"a": [3]}]
