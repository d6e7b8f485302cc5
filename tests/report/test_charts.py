"""Kinds of charts: declarative, with named colours, no more data than a page should carry."""

import json

import numpy as np
import pandas as pd
import pytest

from tasks.errors import WhorlError
from tasks.report import charts, jobs, nodes, workloads
from tasks.report.charts import Axis

RUNS = pd.DataFrame({"at": pd.date_range("2026-01-01", periods=4, freq="h"), "s": [1.0, 2.0, np.nan, 3.123456789]})
ONE = pd.DataFrame({"row": ["a"], "v": [0.5], "low": [0.4], "high": [0.6]})


def spec(chart):
    return charts.spec_of(chart)


def rows_in(chart):
    return next(iter(spec(chart)["datasets"].values()))


def test_times_are_utc_and_numbers_have_five_digits_and_missing_ones_are_null():
    rows = rows_in(charts.lines(RUNS, Axis("at", "when", "time"), Axis("s", "seconds")))
    assert rows[0]["at"] == 1767225600000
    assert [row["s"] for row in rows] == [1.0, 2.0, None, 3.1235]


def test_colours_have_names_in_a_chart_and_both_schemes_know_them():
    found = spec(charts.intervals(ONE, Axis("v", "share", "share"), "row"))
    assert '"@blue"' in json.dumps(found)
    for scheme in ("light", "dark"):
        assert "@" not in json.dumps(charts.themed(found, scheme)).replace("@{", "")
    assert charts.PALETTE["light"].keys() == charts.PALETTE["dark"].keys()


def test_a_chart_with_too_much_data_is_refused_with_what_to_do():
    rows = pd.DataFrame({"x": np.arange(20_000.0), "y": np.arange(20_000.0)})
    with pytest.raises(WhorlError, match="expected at most 200,000: bin or sample before"):
        spec(charts.scatter(rows, Axis("x", "x"), Axis("y", "y"), {"same": 1.0}))


def test_a_sample_keeps_both_ends_and_the_order():
    kept = charts.sampled(pd.DataFrame({"v": range(1000)}), 10)["v"].tolist()
    assert (len(kept), kept[0], kept[-1], sorted(kept)) == (10, 0, 999, kept)


def test_cells_are_shares_of_their_row_and_an_empty_row_has_none():
    cells = charts.cells_of([[3, 1], [0, 0]], ["a", "b"], ["a", "b"], of="ran", to="called")
    assert cells.to_dict("records") == [
        {"ran": "a", "called": "a", "share": 0.75, "runs": 3},
        {"ran": "a", "called": "b", "share": 0.25, "runs": 1},
    ]


def test_a_template_has_no_data_and_takes_rows_by_name():
    for module in (jobs, nodes, workloads):
        found = charts.template_of(module.item_chart())
        assert "datasets" not in found
        assert '"name": "rows"' in json.dumps(found)


def test_a_chart_becomes_an_image_without_a_browser_that_is_small_enough_for_an_artifact():
    frame = pd.DataFrame({"x": range(200), "y": np.sin(np.arange(200) / 9)})
    png = charts.to_png(spec(charts.scatter(frame, Axis("x", "x"), Axis("y", "y"), {"same": 1.0})))
    assert png.startswith(b"\x89PNG") and 1_000 < len(png) < 40_000


def test_the_same_chart_is_drawn_once_in_a_process_and_one_with_other_rows_anew(monkeypatch):
    import vl_convert

    draw, drawn = vl_convert.vegalite_to_png, []
    monkeypatch.setattr(
        vl_convert, "vegalite_to_png", lambda text, scale: drawn.append(text) or draw(text, scale=scale)
    )
    frames = [pd.DataFrame({"x": [0.0, 1.0], "y": [0.25, at]}) for at in (0.5, 0.5, 0.75)]
    first, again, other = (charts.to_png(spec(charts.lines(one, Axis("x", "x"), Axis("y", "y")))) for one in frames)
    assert first == again != other and len(drawn) == 2


def test_a_rule_at_one_place_is_drawn_once_and_not_once_a_row():
    rows = pd.DataFrame({"low": [0.0, 0.5], "end": [0.5, 1.0], "share": [0.25, 0.75]})
    found = spec(charts.histogram(rows, Axis("low", "x"), Axis("share", "share", "share"), rule=0.4))
    [rule] = [layer for layer in found["layer"] if layer["mark"]["type"] == "rule"]
    assert (len(rule["data"]["values"]), rule["encoding"]["x"]) == (1, {"datum": 0.4})


def test_panels_stand_in_the_order_of_their_rows_each_with_axes_of_its_own():
    rows = pd.concat([ONE.assign(panel=name) for name in ("slow", "fast")])
    found = spec(charts.intervals(rows, Axis("v", "share", "share"), "row", panel="panel"))
    assert found["facet"]["row"]["sort"] == ["slow", "fast"]
    assert found["resolve"]["scale"] == {"x": "independent", "y": "independent"}
