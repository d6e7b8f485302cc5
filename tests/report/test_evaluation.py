"""Figures by key, and as tables: every word's evaluation is shown by these."""

from tasks.quantities import ratio, share
from tasks.report.evaluation import (
    better_line,
    cell_of,
    list_table,
    matrix,
    missing_lines,
    put,
    put_mean,
    reasons,
    rows_of,
)

FIGURES = {
    "f1.ours": 0.5, "f1.ours.low": 0.4, "f1.ours.high": 0.6, "f1.plain": 0.7, "recall.plain": 0.25,
    "f1.none": None, "f1.none.reason": "no label",
}  # fmt: skip
MEASURES = {"f1": ("F1", ratio), "recall": ("recall", share)}
ROWS = {"ours": ("ours", "later runs"), "plain": "a plain rule", "none": "nobody"}


def test_a_matrix_leaves_out_rows_and_columns_that_nobody_measured():
    table = matrix(FIGURES, "by", ROWS, MEASURES | {"auroc": ("AUROC", ratio)}, "{1}.{0}".format)
    assert table.cells() == [["ours (later runs)", "0.50 (0.40 to 0.60)", "–"], ["a plain rule", "0.70", "25.0 %"]]


def test_a_figure_that_cannot_be_had_says_why():
    shown = list_table(FIGURES, {f"f1.{name}": (name, ratio) for name in ("ours", "none", "nobody")})
    assert shown.cells() == [["ours", "0.50"], ["none", "no label"]]
    assert reasons(FIGURES, "f1.") == "no label"
    assert missing_lines(FIGURES | {"f1.other.reason": "no label"}, "f1.") == [
        "not measured: f1.none and 1 more: no label"
    ]
    assert cell_of(FIGURES, "f1.none", ratio).text == "–"


def test_a_rival_within_the_decimals_shown_is_not_better():
    assert better_line("F1", 0.5, {"a": 0.504, "b": 0.6, "c": 0.9, "d": None}, ratio) == [
        "F1: 0.50; better: c 0.90, b 0.60"
    ]
    assert better_line("F1", None, {"a": 1.0}, ratio) == better_line("F1", 0.5, {"a": 0.5}, ratio) == []


def test_a_missing_figure_is_none_with_its_reason():
    figures = {}
    put(figures, "a", 0.0)
    put(figures, "b", float("nan"))
    put_mean(figures, "c", [], "one round only")
    put_mean(figures, "d", [1.0, None, 1.0])
    put_mean(figures, "e", [0.5])
    none = {"b": None, "b.reason": "not a number", "c": None, "c.reason": "one round only"}
    assert figures == {"a": 0.0, **none, "d": 1.0, "d.deviation": 0.0, "e": 0.5}


def test_the_rows_of_figures_are_numbers_and_missing_ones():
    rows = rows_of({"n": 3, "name": "text", "a": None, "a.reason": "why"})
    assert rows["key"].tolist() == ["n", "a"] and rows["reason"].dropna().tolist() == ["why"]
    assert rows["value"].isna().tolist() == [False, True]
