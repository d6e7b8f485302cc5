"""Runtime Variation in Big Data Analytics (Zhu et al. 2023), section 4.1 and footnote 3: values worked out by hand."""

import math

import pandas as pd
import pytest

from tasks.jobs.params import SummaryParams
from tasks.jobs.summary import read_summary, summarise
from tasks.warehouse.connection import fetch


def group(warehouse, key="job", **params):
    summarise(warehouse, "log", SummaryParams(**params))
    rows = fetch(warehouse, "SELECT * FROM jobs.groups WHERE group_key = $key", {"key": key})
    return rows.iloc[0]


def runs(*runtimes_s, job="job"):
    return [{"runtime_s": float(runtime_s), "group_key": job} for runtime_s in runtimes_s]


def test_cov_is_the_standard_deviation_over_the_mean(job_log):
    found = group(job_log(runs(8, 10, 12)))
    assert (found["mean_s"], found["std_s"], found["cov"]) == (10, 2, 0.2)  # (4 + 0 + 4) / 2 = 4, its root 2


def test_cov_is_biased_the_same_seconds_of_jitter_make_it_large_for_a_short_job(job_log):
    warehouse = job_log([*runs(5, 10, 15, job="short"), *runs(995, 1000, 1005, job="long")])
    assert group(warehouse, "short")["std_s"] == group(warehouse, "long")["std_s"] == 5
    assert group(warehouse, "short")["cov"] == 0.5
    assert group(warehouse, "long")["cov"] == 0.005


def test_cov_is_unstable_one_run_of_twenty_changes_it_while_the_median_stays(job_log):
    steady = group(job_log(runs(*[10] * 20)))
    assert (steady["median_s"], steady["cov"]) == (10, 0)
    # 19 runs of 10 and one of 1000: mean 59.5, variance (19 * 49.5^2 + 940.5^2) / 19 = 49005
    shaken = group(job_log(runs(*[10] * 19, 1000, job="shaken")), "shaken")
    assert (shaken["median_s"], shaken["mean_s"]) == (10, 59.5)
    assert shaken["cov"] == pytest.approx(math.sqrt(49005) / 59.5)


def test_cov_is_coarse_two_shapes_share_one_value_but_not_their_slow_runs(job_log):
    # values 10 and 30, a share p of them 30: COV^2 = n / (n - 1) * p (1 - p) (20 / (10 + 20 p))^2,
    # which for p = 1/2 and for p = 1/10 is n / (n - 1) / 4
    two_modes = [10, 30] * 10
    rare_slow = [10] * 9 + [30] + [10] * 9 + [30]
    params = {"outlier_ratio": 3}
    warehouse = job_log([*runs(*two_modes, job="two modes"), *runs(*rare_slow, job="rare slow")])
    first, second = group(warehouse, "two modes", **params), group(warehouse, "rare slow", **params)
    assert first["cov"] == pytest.approx(second["cov"]) == pytest.approx(math.sqrt(20 / 19) / 2)
    assert (first["outlier_share_ratio"], second["outlier_share_ratio"]) == (0, 0.1)


def test_outliers_are_ten_times_the_median_or_more_than_900_s_above_it(job_log):
    found = group(job_log(runs(*[100] * 7, 999, 1000, 1001)))
    assert found["median_s"] == 100
    assert found["outlier_share_ratio"] == 0.2  # 1000 and 1001
    assert found["outlier_share_delta"] == 0.1  # 1001 alone: 1000 is 900 above, not more


def test_the_stalagmite_holds_the_new_runs_far_above_the_historic_median(job_log):
    # the first half by submission is history: its median is 10, and three times that is 30
    found = group(job_log(runs(9, 10, 10, 11, 10, 29, 30, 300)))
    assert (found["n_history"], found["history_median_s"], found["n_new"]) == (4, 10, 4)
    assert found["slow_share"] == 0.5  # 30 and 300


def test_the_history_is_split_by_submission_and_not_by_the_order_of_the_rows(job_log):
    early = pd.date_range("2026-01-01", periods=4, freq="h")
    late = pd.date_range("2026-02-01", periods=4, freq="h")
    rows = [{"runtime_s": 50.0, "submitted_at": at} for at in late]
    rows += [{"runtime_s": 10.0, "submitted_at": at} for at in early]
    found = group(job_log(rows))
    assert (found["history_median_s"], found["slow_share"]) == (10, 1)


def test_historic_and_new_cov_are_those_of_their_halves(job_log):
    found = group(job_log(runs(8, 10, 12, 5, 10, 15)))
    assert (found["history_cov"], found["new_cov"]) == (0.2, 0.5)


def test_recurrence_counts_instances_by_the_support_of_their_job(job_log):
    rows = [*runs(*[1] * 20, job="a"), *runs(*[1] * 3, job="b"), *runs(1, 1, job="c"), *runs(1, job="d")]
    warehouse = job_log(rows)
    summarise(warehouse, "log", SummaryParams())
    found = read_summary(warehouse, "log")
    assert found["recurring_share"] == pytest.approx(25 / 26)
    assert found["support_3_share"] == pytest.approx(23 / 26)
    assert found["support_20_share"] == pytest.approx(20 / 26)
