"""The summary of a job log: counts, statistics, refusals, and that it depends on nothing but the rows."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput, NotFound
from tasks.jobs.params import SummaryParams
from tasks.jobs.summary import find_group, read_groups, read_summary, summarise
from tasks.warehouse.connection import fetch
from tasks.warehouse.copies import hash_tables
from tests.jobs.synthetic import SimulatedJob, simulate_runs

PARAMS = SummaryParams()
SCALED = [*("median_s", "mean_s", "std_s", "p05_s", "p25_s", "p75_s", "p95_s", "max_s", "excess_s", "history_median_s")]
UNSCALED = ["cov", "outlier_share_ratio", "history_cov", "new_cov", "slow_share"]


def groups_of(warehouse, source="log", params=PARAMS):
    summarise(warehouse, source, params)
    rows = fetch(warehouse, "SELECT * FROM jobs.groups WHERE source = $source ORDER BY group_key", {"source": source})
    return rows.set_index("group_key")


def test_statistics_of_five_runs_are_those_worked_out_by_hand(job_log):
    job = groups_of(job_log([{"runtime_s": float(x)} for x in (30, 10, 50, 20, 40)])).loc["job"]
    assert [job[name] for name in ("p05_s", "p25_s", "median_s", "p75_s", "p95_s", "max_s")] == [12, 20, 30, 40, 48, 50]
    assert job["std_s"] == pytest.approx(np.sqrt(250))
    assert job["excess_s"] == 30  # 10 beyond the median and 20 beyond it
    assert (job["n_runs"], job["n_finished"]) == (5, 5)


def test_runs_that_failed_or_go_on_are_counted_but_do_not_enter_the_statistics(job_log):
    rows = [{"runtime_s": x, "status": "completed"} for x in (10.0, 20.0, 30.0)]
    rows += [{"runtime_s": 9000.0, "status": status} for status in ("failed", "timeout", "cancelled")]
    rows += [{"runtime_s": None, "status": status} for status in ("running", "pending")]
    job = groups_of(job_log(pd.DataFrame(rows))).loc["job"]
    assert (job["n_runs"], job["n_finished"], job["n_failed"], job["n_cancelled"], job["n_ongoing"]) == (8, 3, 2, 1, 2)
    assert (job["median_s"], job["max_s"]) == (20, 30)


def test_a_run_that_was_changed_on_purpose_and_its_replay_are_no_history_of_the_job(job_log):
    rows = [{"runtime_s": x} for x in (10.0, 20.0, 30.0)]
    rows += [{"runtime_s": 9000.0, "what_if": kind, "matched_run_id": "0"} for kind in ("baseline", "no_spare")]
    job = groups_of(job_log(pd.DataFrame(rows))).loc["job"]
    assert (job["n_runs"], job["median_s"], job["max_s"]) == (3, 20, 30)


def test_a_status_can_be_counted_as_finished(job_log):
    rows = [{"runtime_s": 10.0}, {"runtime_s": 30.0, "status": "timeout"}]
    job = groups_of(job_log(rows), params=SummaryParams(statuses=["completed", "timeout"])).loc["job"]
    assert (job["n_finished"], job["max_s"]) == (2, 30)


def test_a_single_run_has_a_median_but_no_variation(job_log):
    job = groups_of(job_log([{"runtime_s": 7.0}])).loc["job"]
    assert job["median_s"] == 7
    assert job[["std_s", "cov", "history_median_s", "slow_share"]].isna().all()


def test_constant_runtimes_vary_by_nothing_and_zero_runtimes_have_no_ratio(job_log):
    rows = [{"runtime_s": 5.0, "group_key": "constant"}, {"runtime_s": 0.0, "group_key": "zero"}] * 6
    jobs = groups_of(job_log(rows))
    assert jobs.loc["constant", ["std_s", "cov", "outlier_share_ratio", "slow_share"]].tolist() == [0, 0, 0, 0]
    assert jobs.loc["zero", ["cov", "outlier_share_ratio", "slow_share"]].isna().all()


def test_the_wait_is_summarised_over_the_runs_that_have_one(job_log):
    job = groups_of(job_log([{"runtime_s": 1.0, "wait_s": wait} for wait in (4.0, None, 8.0)])).loc["job"]
    assert job["median_wait_s"] == 6


def test_the_same_rows_in_another_order_give_the_same_bits(job_log):
    rng = np.random.default_rng(1)
    runs = simulate_runs([SimulatedJob(name=f"job {i}", log_deviation=1, slow_share=0.1) for i in range(5)], rng)
    job_log(runs, source="straight")
    warehouse = job_log(runs.sample(frac=1, random_state=2), source="shuffled")
    pd.testing.assert_frame_equal(
        groups_of(warehouse, "straight").drop(columns="source"),
        groups_of(warehouse, "shuffled").drop(columns="source"),
        check_exact=True,
    )


@pytest.mark.parametrize("factor", [4.0, 0.25])
def test_scaling_all_runtimes_scales_the_quantiles_and_leaves_the_cov(job_log, factor):
    runs = simulate_runs([SimulatedJob(log_deviation=0.8, slow_share=0.1)], np.random.default_rng(3))
    job_log(runs, source="before")
    warehouse = job_log(runs.assign(runtime_s=factor * runs["runtime_s"]), source="after")
    before, after = groups_of(warehouse, "before").loc["job"], groups_of(warehouse, "after").loc["job"]
    for name in SCALED:
        assert after[name] == factor * before[name], name
    for name in UNSCALED:
        assert after[name] == pytest.approx(before[name]), name


def test_summarising_twice_changes_no_table(job_log):
    warehouse = job_log([{"runtime_s": float(x)} for x in range(1, 30)])
    first = summarise(warehouse, "log", PARAMS)
    before = hash_tables(warehouse)
    assert summarise(warehouse, "log", PARAMS) == first
    assert hash_tables(warehouse) == before


def test_a_summary_leaves_other_sources_alone(job_log):
    job_log([{"runtime_s": 1.0}], source="other")
    warehouse = job_log([{"runtime_s": 2.0}])
    groups_of(warehouse, "other")
    groups_of(warehouse, "log")
    assert groups_of(warehouse, "other").loc["job", "median_s"] == 1


def test_jobs_that_left_the_log_leave_the_summary(job_log):
    from tasks.warehouse.connection import writing

    warehouse = job_log([{"runtime_s": 1.0, "group_key": "old"}, {"runtime_s": 1.0}])
    groups_of(warehouse)
    with writing(warehouse) as connection:
        connection.execute("DELETE FROM jobs.runs WHERE group_key = 'old'").fetchall()
    assert list(groups_of(warehouse).index) == ["job"]


def test_a_source_that_mixes_simulated_with_measured_runs_is_refused(job_log):
    warehouse = job_log([{"runtime_s": 1.0, "is_simulated": i == 0} for i in range(3)])
    with pytest.raises(BadInput) as caught:
        summarise(warehouse, "log", PARAMS)
    assert str(caught.value) == (
        "source 'log': 1 simulated runs stand among 2 measured ones; expected one kind only, so that no figure mixes "
        "them; ingest the simulated log under a source of its own"
    )


def test_a_source_without_runs_is_named_with_those_that_have_some(job_log):
    warehouse = job_log([{"runtime_s": 1.0}])
    with pytest.raises(NotFound, match=r"source 'lgo' has no job runs; sources that have some: 'log'; fill it with"):
        summarise(warehouse, "lgo", PARAMS)


def test_asking_before_the_summary_says_how_to_make_it(job_log):
    warehouse = job_log([{"runtime_s": 1.0}])
    with pytest.raises(
        NotFound, match=r"source 'log' has no summary yet; make one with whorl jobs summary --source log"
    ):
        read_summary(warehouse, "log")


def test_a_summary_knows_that_files_were_added_since(job_log):
    warehouse = job_log([{"runtime_s": 1.0}])
    summarise(warehouse, "log", PARAMS)
    assert not read_summary(warehouse, "log")["is_stale"]
    job_log([{"runtime_s": 1.0}])
    assert read_summary(warehouse, "log")["is_stale"]


def test_totals_count_only_jobs_with_enough_runs(job_log):
    rows = [{"runtime_s": x, "group_key": "a"} for x in (1.0, 1.0, 1.0, 10.0)]
    rows += [{"runtime_s": x, "group_key": "b"} for x in (1.0, 1000.0)]
    warehouse = job_log(rows)
    summarise(warehouse, "log", PARAMS)
    found = read_summary(warehouse, "log")
    assert (found["n_groups"], found["n_supported_groups"], found["n_supported_runs"]) == (2, 1, 4)
    assert (found["outlier_share_ratio"], found["excess_s"]) == (0.25, 9)


@pytest.mark.parametrize(
    ("order", "first"), [("support", "often"), ("cov", "varying"), ("p95", "long"), ("waiting", "long")]
)
def test_groups_are_ordered_by_what_was_asked_for(job_log, order, first):
    rows = [{"runtime_s": 1.0, "group_key": "often"}] * 9
    rows += [{"runtime_s": x, "group_key": "varying"} for x in (1.0, 1.0, 1.0, 40.0)]
    rows += [{"runtime_s": x, "group_key": "long"} for x in (900.0, 1000.0, 1100.0)]
    warehouse = job_log(rows)
    summarise(warehouse, "log", PARAMS)
    assert read_groups(warehouse, "log", order=order, limit=1)["group_key"].tolist() == [first]


def test_groups_below_the_support_are_left_out(job_log):
    rows = [{"runtime_s": 1.0, "group_key": "a"}] * 2 + [{"runtime_s": 1.0, "group_key": "b"}] * 3
    warehouse = job_log(rows)
    summarise(warehouse, "log", PARAMS)
    assert read_groups(warehouse, "log")["group_key"].tolist() == ["b"]
    assert read_groups(warehouse, "log", min_support=1)["group_key"].tolist() == ["b", "a"]


@pytest.fixture
def warehouse(job_log):
    keys = ["etl", "etl daily", "etl weekly", "Report of sales", *(f"batch {i}" for i in range(8))]
    return job_log([{"runtime_s": 1.0, "group_key": key} for key in keys])


def test_the_exact_key_wins_over_longer_ones(warehouse):
    assert find_group(warehouse, "log", "etl") == "etl"


def test_a_unique_part_in_any_case_is_enough(warehouse):
    assert find_group(warehouse, "log", "WEEKLY") == "etl weekly"
    assert find_group(warehouse, "log", "sales") == "Report of sales"


def test_several_fitting_jobs_are_named(warehouse):
    with pytest.raises(NotFound) as caught:
        find_group(warehouse, "log", "batch")
    assert str(caught.value) == (
        "job 'batch': 8 jobs of source 'log' fit: 'batch 0', 'batch 1', 'batch 2', 'batch 3', 'batch 4' and 3 more; "
        "give more of the name"
    )


def test_an_unknown_job_is_answered_with_the_nearest_ones(warehouse):
    with pytest.raises(NotFound, match=r"job 'etl dayly': no job of source 'log' is called so; nearest: 'etl daily', "):
        find_group(warehouse, "log", "etl dayly")
