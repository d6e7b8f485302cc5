"""Figures 1, 3 and 4 of the paper and the causes of variation: what they choose, from any log."""

from datetime import datetime

import numpy as np
import pytest

from tasks.jobs.params import SummaryParams
from tasks.report.jobs_history import against_median, cov_drift_figure, fetch_density, over_time_figure, skyline_figure
from tasks.warehouse.connection import reading

PARAMS = SummaryParams()
NOON = datetime(2026, 1, 1, 12)
POINTS = "SELECT runtime_s AS x, wait_s AS y FROM jobs.runs WHERE source = $source"


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


def test_of_jobs_that_vary_alike_the_one_with_most_runs_is_shown(summarised):
    rows = [
        {"runtime_s": 5.0, "group_key": key} for key, n in (("few", 25), ("most", 40), ("many", 30)) for _ in range(n)
    ]
    assert lines_of(summarised(rows), n_lines=1)[2] == ["most"]


def test_jobs_with_three_runs_are_shown_only_where_there_is_nothing_better(summarised):
    rows = [{"runtime_s": 5.0, "group_key": f"short {i}"} for i in range(4) for _ in range(3)]
    assert len(lines_of(summarised(rows), n_lines=2)[2]) == 2
    rows = [{"runtime_s": 5.0, "group_key": f"long {i}"} for i in range(2) for _ in range(20)]
    assert set(lines_of(summarised(rows), n_lines=2)[2]) == {"long 0", "long 1"}


def test_slices_of_time_keep_every_run_and_the_longest_of_them(summarised):
    rows = [{"runtime_s": 10.0 + (i == 500) * 5000} for i in range(1000)]
    figure, rows, _ = lines_of(summarised(rows), max_points=50)
    assert figure.evidence == "n = 1,000 runs of 1 jobs"
    assert "a bar joins the shortest and the longest" in figure.words
    assert len(rows) <= 26  # two ends a slice, and the last moment is a slice of its own
    assert rows["runtime_s"].max() == 5010


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


def test_the_figure_and_the_summary_agree_on_the_slow_share(summarised, varied_runs):
    from tasks.jobs.summary import read_summary

    warehouse = summarised(varied_runs)
    found = read_summary(warehouse, "log")
    figure, bands = medians_of(warehouse)
    assert slow_share(bands) == pytest.approx(found["slow_share"])
    assert figure.evidence.startswith(f"n = {found['n_compared']:,} new runs")


def test_runs_that_were_changed_on_purpose_are_in_no_figure(summarised):
    rows = [{"runtime_s": 10.0} for _ in range(6)]
    rows += [{"runtime_s": 90.0, "what_if": "no_spare", "matched_run_id": "5"} for _ in range(4)]
    warehouse = summarised(rows)
    figure, bands = medians_of(warehouse)
    assert figure.evidence.startswith("n = 3 new runs")  # half of the six runs are new, and none is slow
    assert slow_share(bands) == 0
    assert lines_of(warehouse)[0].evidence.startswith("n = 6 runs")


def test_runs_of_no_length_are_counted_as_not_shown(summarised):
    figure, _ = medians_of(summarised([{"runtime_s": x} for x in (1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 2.0, 2.0)]))
    assert figure.evidence.startswith("n = 2 new runs")
    assert " 2 runs with a runtime or a median of 0 have no place" in figure.words


def test_ranks_are_those_of_spearman_also_with_ties(summarised):
    from scipy.stats import spearmanr

    past, new = [1, 1, 2, 3, 3, 5], [2, 1, 1, 4, 4, 2]
    rows = []
    for half in (past, new):
        rows += [{"runtime_s": 10.0 + s * d, "group_key": f"{i}"} for i, d in enumerate(half) for s in (-1, 0, 1)]
    with reading(summarised(rows)) as connection:
        drift = cov_drift_figure(connection, "log", PARAMS, 100)
    assert f"Rank correlation: {spearmanr(past, new).statistic:.2f}" in drift.words
    assert drift.evidence.startswith("n = 6 jobs")


@pytest.fixture
def fetched(job_log):
    def fetch(x, y, max_points):
        warehouse = job_log([{"runtime_s": float(a), "wait_s": float(b)} for a, b in zip(x, y, strict=True)])
        with reading(warehouse) as connection:
            return fetch_density(connection, POINTS, {"source": "log"}, max_points)

    return fetch


def test_few_points_are_kept_as_they_are(fetched):
    rows, n = fetched([1, 10, 100], [10, 10, 1], 3)
    assert (n, rows.to_numpy().tolist()) == (3, [[1, 10, 1], [10, 10, 1], [100, 1, 1]])


def test_hexagons_count_every_point_once(fetched):
    rng = np.random.default_rng(6)
    rows, n = fetched(np.exp(rng.normal(size=500)), np.exp(rng.normal(size=500)), 10)
    assert rows["n"].sum() == n == 500
    assert len(rows) < 500


def test_values_that_a_logarithm_cannot_show_are_left_out(fetched):
    assert fetched([0, 1, 1], [1, 0, 1], 10)[1] == 1


@pytest.mark.parametrize(("x", "y", "n"), [([5, 5, 5], [5, 5, 5], [3]), ([0, 0], [1, 1], [])])
def test_equal_points_are_one_hexagon_and_without_a_value_there_is_none(fetched, x, y, n):
    assert fetched(x, y, 1)[0]["n"].tolist() == n


def steps(*tokens, guaranteed=4.0):
    return [{"at_s": float(i), "tokens": float(n), "guaranteed": guaranteed} for i, n in enumerate(tokens)]


def run(run_id, runtime_s, *tokens, **others):
    return {"run_id": run_id, "runtime_s": runtime_s, "group_key": "job", "skyline": steps(*tokens), **others}


def skyline_of(warehouse):
    with reading(warehouse) as connection:
        return skyline_figure(connection, "log", PARAMS)


def test_of_the_longer_runs_the_one_with_the_largest_peak_over_its_allocation_is_shown(summarised):
    rows = [
        run("short", 1.0, 4, 40),
        run("long", 9.0, 4, 12, 2),
        run("as often", 9.0, 2, 6) | {"skyline": steps(2, 6, guaranteed=2.0)},
        run("allocated", 9.0, 4, 20, 2) | {"skyline": steps(4, 20, guaranteed=10.0)},
        run("what if", 9.0, 4, 80, what_if="no_spare"),
        run("failed", 9.0, 4, 80, status="failed"),
        *(run(f"usual {i}", 3.0, 4, 5) for i in range(20)),
    ]
    found = skyline_of(summarised(rows))
    assert found.evidence == "run long, one of 24 runs of its job"
    assert "of its allocation: 3 times" in found.words
    held = found.chart.args[0].query("what == 'held'")
    assert held[["at_s", "tokens"]].to_numpy().tolist() == [[0, 4], [1, 12], [2, 2], [9, 2]]


def test_a_job_with_few_runs_gives_the_skyline_only_where_there_is_no_better(summarised):
    rare = [run(f"rare {i}", 9.0, 4, 80) | {"group_key": "rare"} for i in range(3)]
    usual = [run(f"usual {i}", 9.0, 4, 5) for i in range(20)]
    assert "run usual" in skyline_of(summarised([*rare, *usual])).evidence
