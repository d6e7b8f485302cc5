"""Figures 1 and 4 of the paper: what they choose, and that they can be drawn from any log."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.params import SummaryParams
from tasks.report.against_median import draw_against_median, fetch_against_median
from tasks.report.cov_drift import draw_cov_drift, fetch_cov_drift
from tasks.report.images import to_png, to_svg
from tasks.report.runtimes_over_time import draw_lines, fetch_lines
from tasks.report.style import NARROW_IN, WIDE_IN, log_time_axis, new_figure, plain_label
from tasks.warehouse.connection import reading

PARAMS = SummaryParams()
LEAST_PT = 9


def lines_of(warehouse, n_lines=6, max_points=400):
    with reading(warehouse) as connection:
        return fetch_lines(connection, "log", PARAMS, n_lines=n_lines, max_points=max_points)


def medians_of(warehouse, max_points=1000):
    with reading(warehouse) as connection:
        return fetch_against_median(connection, "log", PARAMS, max_points=max_points)


def test_the_jobs_shown_go_from_steady_to_varying_and_cover_both_ends(summarised, varied_runs):
    lines = lines_of(summarised(varied_runs), n_lines=4)
    covs = [job.cov for job in lines.jobs]
    assert covs == sorted(covs)
    assert (covs[0] < 0.1, covs[-1] > 1, len(covs)) == (True, True, 4)


def test_of_jobs_that_vary_alike_the_one_with_most_runs_is_shown(summarised):
    rows = [
        {"runtime_s": 5.0, "group_key": key} for key, n in (("few", 25), ("most", 40), ("many", 30)) for _ in range(n)
    ]
    assert [job.group_key for job in lines_of(summarised(rows), n_lines=1).jobs] == ["most"]


def test_jobs_with_three_runs_are_shown_only_where_there_is_nothing_better(summarised):
    rows = [{"runtime_s": 5.0, "group_key": f"short {i}"} for i in range(4) for _ in range(3)]
    assert len(lines_of(summarised(rows), n_lines=2).jobs) == 2
    rows = [{"runtime_s": 5.0, "group_key": f"long {i}"} for i in range(2) for _ in range(20)]
    assert {job.group_key for job in lines_of(summarised(rows), n_lines=2).jobs} == {"long 0", "long 1"}


def test_slices_of_time_keep_every_run_and_the_longest_of_them(summarised):
    rows = [{"runtime_s": 10.0 + (i == 500) * 5000} for i in range(1000)]
    lines = lines_of(summarised(rows), max_points=50)
    assert lines.n_runs == 1000
    assert lines.has_slices
    assert len(lines.runs) <= 26  # two ends a slice, and the last moment is a slice of its own
    assert lines.runs["high_s"].max() == 5010


def test_the_share_of_slow_runs_is_counted_by_band_of_medians(summarised):
    rows = [{"runtime_s": x, "group_key": "short"} for x in [5.0] * 4]
    rows += [{"runtime_s": x, "group_key": "long"} for x in [100.0] * 4]
    rows += [{"runtime_s": x, "group_key": "short"} for x in (5.0, 14.9, 15.0, 50.0)]
    rows += [{"runtime_s": x, "group_key": "long"} for x in (100.0, 100.0, 100.0, 300.0)]
    medians = medians_of(summarised(rows))
    assert [(band.low_s, band.high_s, band.n, band.slow_share) for band in medians.bands] == [
        (1, 10, 4, 0.5),
        (60, 600, 4, 0.25),
    ]
    assert [band.label for band in medians.bands] == ["1 s to 10 s", "1 min to 10 min"]
    assert medians.slow_share == 0.375


def test_the_figure_and_the_summary_agree_on_the_slow_share(summarised, varied_runs):
    from tasks.jobs.summary import read_summary

    warehouse = summarised(varied_runs)
    found = read_summary(warehouse, "log")
    medians = medians_of(warehouse)
    assert medians.slow_share == pytest.approx(found["slow_share"])
    assert medians.n_points == found["n_compared"]


def test_runs_that_were_changed_on_purpose_are_in_no_figure(summarised):
    rows = [{"runtime_s": 10.0} for _ in range(6)]
    rows += [{"runtime_s": 90.0, "what_if": "no_spare", "matched_run_id": "5"} for _ in range(4)]
    warehouse = summarised(rows)
    medians = medians_of(warehouse)
    assert (medians.n_points, medians.slow_share) == (3, 0.0)  # half of the six runs are new, and none is slow
    assert lines_of(warehouse).n_runs == 6


def test_runs_of_no_length_are_counted_as_not_shown(summarised):
    medians = medians_of(summarised([{"runtime_s": x} for x in (1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 2.0, 2.0)]))
    assert (medians.n_points, medians.n_hidden) == (2, 2)


def test_the_rank_correlation_of_covs_is_one_when_the_order_stays(summarised, varied_runs):
    steady = [f"job {i}" for i in range(8)]
    rows = []
    for half in range(2):
        for i, key in enumerate(steady):
            rows += [{"runtime_s": 10.0 + sign * (i + 1 + half), "group_key": key} for sign in (-1, 0, 1)]
    with reading(summarised(rows)) as connection:
        drift = fetch_cov_drift(connection, "log", max_points=100)
    assert drift.rank_correlation == pytest.approx(1)
    assert drift.density.n_points == 8


def test_ranks_are_those_of_spearman_also_with_ties(summarised):
    from scipy.stats import spearmanr

    past, new = [1, 1, 2, 3, 3, 5], [2, 1, 1, 4, 4, 2]
    rows = []
    for half in (past, new):
        rows += [{"runtime_s": 10.0 + s * d, "group_key": f"{i}"} for i, d in enumerate(half) for s in (-1, 0, 1)]
    with reading(summarised(rows)) as connection:
        drift = fetch_cov_drift(connection, "log", max_points=100)
    assert drift.rank_correlation == pytest.approx(spearmanr(past, new).statistic)


@pytest.fixture
def drawn(summarised, varied_runs):
    warehouse = summarised(varied_runs)
    lines, medians = lines_of(warehouse), medians_of(warehouse, max_points=50)
    with reading(warehouse) as connection:
        covs = fetch_cov_drift(connection, "log", max_points=1000)
    return {
        "lines": lambda width: draw_lines(lines, width),
        "medians": lambda width: draw_against_median(medians, width),
        "covs": lambda width: draw_cov_drift(covs, width),
    }


def test_every_figure_is_the_same_svg_each_time_and_a_png_under_100_kb(drawn):
    for name, draw in drawn.items():
        assert to_svg(draw(NARROW_IN), name, "alt") == to_svg(draw(NARROW_IN), name, "alt")
        assert len(to_png(draw(WIDE_IN))) < 100_000


def test_no_letter_is_smaller_than_nine_points_and_axes_have_units(drawn):
    for name, draw in drawn.items():
        figure = draw(WIDE_IN)
        figure.canvas.draw()
        texts = [text for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize")) if text.get_text()]
        assert texts
        assert min(text.get_fontsize() for text in texts) >= LEAST_PT, name


def test_colours_follow_the_page(drawn):
    svg = to_svg(drawn["medians"](NARROW_IN), "medians", "alt")
    assert "var(--density-1)" in svg
    assert "var(--orange)" in svg
    assert "#c6dbef" not in svg


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "$\\frac{", "a" * 500, "日本語", "tab\there", "\x00\x1b[31m", ""]
)
def test_any_name_can_stand_in_a_figure(summarised, name):
    lines = lines_of(summarised([{"runtime_s": float(x), "group_key": name} for x in range(1, 30)]))
    svg = to_svg(draw_lines(lines, NARROW_IN), "lines", "alt")
    assert "<script" not in svg
    assert "\x00" not in svg
    assert to_png(draw_lines(lines, NARROW_IN))


def test_a_label_is_one_line_and_keeps_both_ends_of_a_long_name():
    assert plain_label("a\nb\x07c") == "a b c"
    assert plain_label("start" + "x" * 100 + "end", 21).startswith("startx")
    assert plain_label("start" + "x" * 100 + "end", 21).endswith("xend")
    assert len(plain_label("x" * 100, 21)) == 21


@pytest.mark.parametrize(("low", "high"), [(1e-4, 1e7), (0.5, 2), (59, 61), (3, 4)])
def test_a_time_axis_has_a_few_ticks_in_human_units(low, high):
    axes = new_figure(5, 3).subplots()
    log_time_axis(axes, "x", low, high, 7)
    ticks = axes.get_xticks()
    assert len(ticks) <= 7
    assert all(low <= tick <= high for tick in ticks)
    if high / low > 100:
        assert len(ticks) >= 4
        assert np.diff(np.log(ticks)).min() > 1


def test_drawing_leaves_matplotlibs_settings_as_they_were(drawn):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    to_png(drawn["covs"](WIDE_IN))
    assert dict(mpl.rcParams) == before


def test_all_runs_at_one_moment_still_have_a_time_axis(summarised):
    moment = pd.Timestamp("2026-01-01")
    lines = lines_of(summarised([{"runtime_s": float(x), "submitted_at": moment} for x in range(1, 6)]))
    assert to_png(draw_lines(lines, NARROW_IN))
