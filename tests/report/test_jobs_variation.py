"""Figures 1 and 4 of the paper: what they choose, from any log."""

import pytest

from tasks.jobs.params import SummaryParams
from tasks.jobs.summary import read_summary
from tasks.report.jobs_variation import against_median, over_time_figure
from tasks.warehouse.connection import reading, writing

PARAMS = SummaryParams()


def lines_of(warehouse, n_lines=6, max_points=400):
    """The figure, its rows, and its jobs in their order."""
    with reading(warehouse) as connection:
        figure = over_time_figure(connection, "log", PARAMS, n_lines, max_points)
    [rows] = figure.chart.args[:1]
    return figure, rows, [name.split(" · ")[0] for name in dict.fromkeys(rows["job"])]


def medians_of(warehouse, max_points=1000):
    """The figure, and the rows of the table beside it."""
    with reading(warehouse) as connection:
        figure, bands = against_median(connection, "log", PARAMS, max_points, 0.1)
    return figure, bands.rows


def slow_share(bands):
    """Over all bands."""
    return sum(band["n"] * band["slow_share"] for band in bands) / sum(band["n"] for band in bands)


def test_the_jobs_shown_go_from_steady_to_varying_and_cover_both_ends(summarised, varied_runs):
    _, rows, _ = lines_of(summarised(varied_runs), n_lines=4)
    covs = [float(name.split("COV ")[1].split(",")[0]) for name in dict.fromkeys(rows["job"])]
    assert covs == sorted(covs)
    assert (covs[0] < 0.1, covs[-1] > 1, len(covs)) == (True, True, 4)


def test_of_jobs_that_vary_alike_the_one_with_most_runs_is_shown_by_those_that_came_or_started_last(summarised):
    sizes = {"few": 25, "most": 40, "many": 30}
    log = summarised([{"runtime_s": 5.0 + at, "group_key": key} for key, n in sizes.items() for at in range(n)])
    assert lines_of(log, n_lines=1)[2] == ["most"]
    figure, rows, _ = lines_of(log, n_lines=1, max_points=10)
    assert figure.evidence == "n = 10 runs of 1 jobs"
    assert rows["runtime_s"].tolist() == [35.0 + at for at in range(10)]
    with writing(log) as connection:
        connection.execute("UPDATE jobs.runs SET submitted_at = NULL")
    without = lines_of(log, n_lines=1, max_points=10)[1]
    assert without["runtime_s"].tolist() == rows["runtime_s"].tolist()
    assert without["submitted_at"].notna().all()


def test_jobs_with_three_runs_are_shown_only_where_there_is_nothing_better(summarised):
    rows = [{"runtime_s": 5.0, "group_key": f"short {i}"} for i in range(4) for _ in range(3)]
    assert len(lines_of(summarised(rows), n_lines=2)[2]) == 2
    rows = [{"runtime_s": 5.0, "group_key": f"long {i}"} for i in range(2) for _ in range(20)]
    assert set(lines_of(summarised(rows), n_lines=2)[2]) == {"long 0", "long 1"}


def test_the_share_of_slow_runs_is_counted_by_band_of_medians(summarised):
    rows = [{"runtime_s": x, "group_key": "short"} for x in [5.0] * 4]
    rows += [{"runtime_s": x, "group_key": "long"} for x in [100.0] * 4]
    rows += [{"runtime_s": x, "group_key": "short"} for x in (5.0, 14.9, 15.0, 50.0)]
    rows += [{"runtime_s": x, "group_key": "long"} for x in (100.0, 100.0, 100.0, 300.0)]
    _, bands = medians_of(summarised(rows))
    assert [(band["label"], band["n"], band["slow_share"]) for band in bands] == [
        ("1 s to 10 s", 4, 0.5),
        ("1 min to 10 min", 4, 0.25),
    ]


def test_the_figure_and_the_summary_agree_on_the_slow_share_and_a_sample_is_called_one(summarised, varied_runs):
    warehouse = summarised(varied_runs)
    found = read_summary(warehouse, "log")
    figure, bands = medians_of(warehouse, max_points=50)
    assert slow_share(bands) == pytest.approx(found["slow_share"])
    assert figure.evidence == f"n = {found['n_compared']:,} new runs, 50 of them drawn"
    assert len(figure.chart.args[0]) == 50


def test_runs_that_were_changed_on_purpose_are_in_no_figure(summarised):
    rows = [{"runtime_s": 10.0} for _ in range(6)]
    rows += [{"runtime_s": 90.0, "what_if": "no_spare", "matched_run_id": "5"} for _ in range(4)]
    warehouse = summarised(rows)
    figure, bands = medians_of(warehouse)
    assert figure.evidence == "n = 3 new runs"  # half of the six runs are new, and none is slow
    assert slow_share(bands) == 0
    assert lines_of(warehouse)[0].evidence.startswith("n = 6 runs")


def test_runs_of_no_length_are_counted_as_not_shown(summarised):
    figure, _ = medians_of(summarised([{"runtime_s": x} for x in (1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 2.0, 2.0)]))
    assert figure.evidence == "n = 2 new runs"
    assert " 2 runs with a runtime or a median of 0 have no place" in figure.words
