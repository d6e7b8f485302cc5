"""Figures by key as tables: every word's evaluation is shown by these."""

from tasks.quantities import ratio, share
from tasks.report.evaluation import better_line, cell_of, list_table, listed, matrix, reasons

FIGURES = {
    "f1.ours": 0.5, "f1.ours.low": 0.4, "f1.ours.high": 0.6, "f1.plain": 0.7, "f1.after": 0.9, "recall.plain": 0.25,
    "f1.none": None, "f1.none.reason": "no label",
}  # fmt: skip
MEASURES = {"f1": ("F1", ratio), "recall": ("recall", share)}
ROWS = {"ours": ("ours", "later runs"), "plain": "a plain rule", "after": "known afterwards", "none": "nobody"}


def test_a_matrix_has_the_best_on_top_hindsight_last_and_leaves_out_what_nobody_measured():
    table = matrix(FIGURES, "by", ROWS, MEASURES, "{1}.{0}".format, sort_by="f1",
                   is_marked=True, aside="after")  # fmt: skip
    assert table.cells() == [
        ["a plain rule", "0.70", "25.0 %"],
        ["ours (later runs)", "0.50 (0.40 to 0.60)", "–"],
        ["known afterwards", "0.90", "–"],
    ]
    assert [[cell.is_marked for key, cell in row.items() if key != "name"] for row in table.rows] == [
        [True, True],
        [False, False],
        [False, False],
    ]


def test_where_less_is_better_the_least_is_on_top():
    found = matrix(FIGURES, "by", ROWS, MEASURES, "{1}.{0}".format, sort_by="f1", is_least=True)
    assert [row[0] for row in found.cells()] == ["ours (later runs)", "a plain rule", "known afterwards"]


def test_a_figure_that_cannot_be_had_says_why():
    rows = listed(FIGURES, {f"f1.{name}": (name, ratio) for name in ("ours", "none", "nobody")})
    assert list_table(rows).cells() == [["ours", "0.50"], ["none", "no label"]]
    assert reasons(FIGURES, "f1.") == ["no label"]
    assert cell_of(FIGURES, "f1.none", ratio).text == "–"


def test_a_rival_within_the_decimals_shown_is_not_better():
    assert better_line("F1", 0.5, {"a": 0.504, "b": 0.6, "c": 0.9, "d": None}, ratio) == [
        "F1: 0.50; better: c 0.90, b 0.60"
    ]
    assert better_line("F1", None, {"a": 1.0}, ratio) == better_line("F1", 0.5, {"a": 0.5}, ratio) == []
