"""Figures 1 and 4 of the paper: what they choose, and that they can be drawn from any log."""

import pytest

from tasks.jobs.params import SummaryParams
from tasks.report.jobs_history import fetch_against_median, fetch_cov_drift, fetch_lines
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
