"""The runs of a source as one frame: which of them, in which order, and what lists become."""

import pandas as pd
import pytest

from tasks.errors import BadInput, NotFound
from tasks.jobs.predict.rows import read_runs

NOON = pd.Timestamp("2026-01-01 12:00")


def sku(name, *, load=0.5, free=4.0):
    return {"sku": name, "tokens": 10.0, "free_tokens": free, "load_mean": load, "load_sd": 0.1}


def vertices(*names):
    return [{"vertex": i, "sku": name, "mean_tokens": 1.0} for i, name in enumerate(names)]


def test_a_plain_log_has_no_columns_of_skus_vertices_or_operators(job_log):
    runs = read_runs(job_log([{"runtime_s": 1.0}, {"runtime_s": 2.0}]), "log")
    assert runs["runtime_s"].tolist() == [1, 2]
    assert list(runs.index) == [0, 1]
    assert not [name for name in runs if name.startswith(("offered_", "vertices_", "n_vertices", "sku_", "op_"))]
    assert "skus" not in runs
    assert "operators" not in runs


def test_runs_stand_by_submission_then_by_id_and_a_start_stands_in_for_a_missing_submission(job_log):
    rows = [
        {"run_id": "c", "submitted_at": NOON, "runtime_s": 3.0},
        {"run_id": "a", "submitted_at": NOON, "runtime_s": 1.0},
        {"run_id": "b", "submitted_at": NOON + pd.Timedelta("1h"), "runtime_s": 2.0},
    ]
    log = job_log(rows)
    job_log([{"run_id": "0", "submitted_at": NOON + pd.Timedelta("30min"), "runtime_s": 9.0}])
    assert read_runs(log, "log")["run_id"].tolist() == ["a", "c", "0", "b"]


def test_a_run_without_a_submission_is_placed_by_its_start(job_log, put_plain):
    log = job_log([{"run_id": "late", "submitted_at": NOON + pd.Timedelta("1h"), "runtime_s": 1.0}])
    put_plain(log, "UPDATE jobs.runs SET submitted_at = NULL")
    runs = read_runs(log, "log")
    assert runs["submitted_at"].tolist() == [NOON + pd.Timedelta("1h")]
    put_plain(log, "UPDATE jobs.runs SET started_at = NULL")
    assert read_runs(log, "log").empty


def test_only_finished_runs_with_a_runtime_are_read_and_other_statuses_on_request(job_log):
    statuses = ["completed", "unknown", "failed", "cancelled", "running"]
    rows = [{"run_id": status, "status": status, "runtime_s": 1.0} for status in statuses]
    rows.append({"run_id": "none", "status": "completed", "runtime_s": None})
    log = job_log(rows)
    assert sorted(read_runs(log, "log")["run_id"]) == ["completed", "unknown"]
    assert read_runs(log, "log", statuses=["failed"])["run_id"].tolist() == ["failed"]


def test_what_ifs_are_left_out_with_their_skus_unless_asked_for(job_log):
    rows = [
        {"run_id": "real", "runtime_s": 1.0, "skus": [sku("old")]},
        {"run_id": "if", "runtime_s": 1.0, "what_if": "newest_sku", "skus": [sku("new")]},
    ]
    log = job_log(rows)
    plain, both = read_runs(log, "log"), read_runs(log, "log", with_what_ifs=True)
    assert plain["run_id"].tolist() == ["real"]
    assert "offered_new" not in plain
    assert both["run_id"].tolist() == ["real", "if"]
    assert both["offered_new"].tolist() == [0, 1]


def test_skus_become_columns_with_0_for_one_that_was_not_offered(job_log):
    rows = [
        {"run_id": "1", "runtime_s": 1.0, "skus": [sku("gen5", load=0.25), sku("gen6", free=7.0)]},
        {"run_id": "2", "runtime_s": 1.0, "skus": [sku("gen6", load=0.75)]},
    ]
    runs = read_runs(job_log(rows), "log")
    assert runs[["offered_gen5", "offered_gen6"]].to_numpy().tolist() == [[1, 1], [0, 1]]
    assert runs["sku_load_mean_gen5"].iloc[0] == 0.25
    assert pd.isna(runs["sku_load_mean_gen5"].iloc[1])
    assert runs["sku_load_mean_gen6"].tolist() == [0.5, 0.75]
    assert runs["sku_load_sd_gen6"].tolist() == [0.1, 0.1]
    assert runs["sku_free_tokens_gen6"].tolist() == [7, 4]


def test_a_run_that_lists_no_sku_and_no_vertex_is_unknown_and_not_zero(job_log):
    rows = [
        {"run_id": "1", "runtime_s": 1.0, "skus": [sku("gen5")], "vertices": vertices("gen5", "gen5", "gen6")},
        {"run_id": "2", "runtime_s": 1.0},
    ]
    runs = read_runs(job_log(rows), "log")
    assert runs.loc[0, ["vertices_gen5", "vertices_gen6", "n_vertices"]].tolist() == [2, 1, 3]
    assert runs.loc[1, ["offered_gen5", "vertices_gen5", "vertices_gen6", "n_vertices"]].isna().all()


def test_lists_stand_beside_their_own_run_whatever_the_order_in_the_file(job_log):
    rows = [
        {
            "run_id": str(i),
            "submitted_at": NOON - pd.Timedelta(i, unit="min"),
            "runtime_s": 1.0,
            "skus": [sku("s", free=i)],
        }
        for i in range(5)
    ]
    runs = read_runs(job_log(rows), "log")
    assert runs["run_id"].tolist() == list("43210")
    assert runs["sku_free_tokens_s"].tolist() == [4, 3, 2, 1, 0]


def test_a_sku_that_a_run_lists_twice_counts_once_with_all_its_tokens(job_log):
    rows = [{"runtime_s": 1.0, "skus": [sku("gen5", load=0.2, free=1.0), sku("gen5", load=0.4, free=2.0)]}]
    runs = read_runs(job_log(rows), "log")
    assert runs["offered_gen5"].tolist() == [1]
    assert runs["sku_load_mean_gen5"].tolist() == [pytest.approx(0.3)]
    assert runs["sku_free_tokens_gen5"].tolist() == [3]


def test_operators_become_counts_and_a_run_without_a_plan_has_none(job_log):
    rows = [
        {"run_id": "1", "runtime_s": 1.0, "operators": '{"SCAN": 2, "JOIN": 1}'},
        {"run_id": "2", "runtime_s": 1.0, "operators": '{"SORT": 1}'},
        {"run_id": "3", "runtime_s": 1.0},
        {"run_id": "4", "runtime_s": 1.0, "operators": '{"SCAN": 2, "JOIN": 1}'},
    ]
    runs = read_runs(job_log(rows), "log")
    assert [name for name in runs if name.startswith("op_")] == ["op_JOIN", "op_SCAN", "op_SORT"]
    assert runs.loc[[0, 1, 3], ["op_JOIN", "op_SCAN", "op_SORT"]].to_numpy().tolist() == [
        [1, 2, 0],
        [0, 0, 1],
        [1, 2, 0],
    ]
    assert runs.loc[2, ["op_JOIN", "op_SCAN", "op_SORT"]].isna().all()


def test_runs_of_another_source_with_the_same_ids_add_nothing(job_log):
    log = job_log([{"run_id": "1", "runtime_s": 1.0, "skus": [sku("gen5")]}])
    job_log([{"run_id": "1", "runtime_s": 5.0, "skus": [sku("gen6")]}], source="other")
    runs = read_runs(log, "log")
    assert runs["runtime_s"].tolist() == [1]
    assert "offered_gen6" not in runs


def test_simulated_runs_among_measured_ones_are_refused_and_an_unknown_source_is_named(job_log):
    log = job_log([{"runtime_s": 1.0}, {"runtime_s": 1.0, "is_simulated": True}])
    with pytest.raises(BadInput, match="1 simulated runs stand among 1 measured ones"):
        read_runs(log, "log")
    with pytest.raises(NotFound, match="nowhere"):
        read_runs(log, "nowhere")


@pytest.fixture
def put_plain():
    """A function that runs a statement in a warehouse."""
    from tasks.warehouse.connection import transaction, writing

    def put(warehouse, statement):
        with writing(warehouse) as connection, transaction(connection):
            connection.execute(statement).fetchall()

    return put
