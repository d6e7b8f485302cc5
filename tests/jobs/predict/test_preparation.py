"""A log made ready: its periods, what the history knows, shapes of small logs, and no look ahead."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.errors import BadInput, NotFound
from tasks.jobs.params import BinParams, CharacteriseParams, ShapeParams, SplitParams
from tasks.jobs.predict.preparation import assign_periods, leaks, prepare, read_runs, with_ends

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


START = pd.Timestamp("2026-01-01")


def runs_at(minutes, **columns):
    return pd.DataFrame({"submitted_at": START + pd.to_timedelta(list(minutes), unit="min"), **columns})


SPLITS = {  # periods of runs a minute apart, parameters, parts
    "half are history and three tenths training": ([None] * 10, {}, "1111122233"),
    "shares that were asked for": ([None] * 10, {"history_share": 0.2, "training_share": 0.6}, "1122222233"),
    "recorded ones in the order of their first runs": (list("zzbbzaacca"), {}, "1122133333"),
    "a run without one by its time": ([None, "a", None, "b", None, "c", None, None], {}, "11122333"),
    "two are too few": (["a"] * 2 + ["b"] * 8, {}, "1111122233"),
    "three are enough": (["a", "b"] + ["c"] * 8, {}, "1233333333"),
}


@pytest.mark.parametrize(("periods", "params", "expected"), SPLITS.values(), ids=SPLITS)
def test_runs_are_split_by_recorded_periods_or_by_shares(periods, params, expected):
    runs = runs_at(range(len(periods)), period=periods)
    assert "".join(assign_periods(runs, SplitParams(**params)).str[1]) == expected


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), min_size=3, max_size=60).filter(lambda at: len(set(at)) >= 3))
def test_periods_follow_time_keep_ties_together_and_are_never_empty(minutes):
    found = assign_periods(runs_at(minutes), SplitParams())
    of_time = pd.DataFrame({"at": minutes, "part": found.astype(str)}).drop_duplicates().sort_values("at")
    assert of_time["at"].is_unique
    assert of_time["part"].is_monotonic_increasing
    assert set(of_time["part"]) == {"D1", "D2", "D3"}


def test_two_times_of_submission_are_too_few():
    with pytest.raises(BadInput, match=r"runs of 2 different times of submission; expected at least three"):
        assign_periods(runs_at([1, 1, 2, 2]), SplitParams())


def test_shares_that_leave_no_test_are_refused():
    with pytest.raises(ValidationError, match="so that some runs are left to test"):
        SplitParams(history_share=0.7, training_share=0.3)


PARAMS = CharacteriseParams(bins=BinParams(ranges="data", n_bins=30), shapes=ShapeParams(k=2))


def ready(runs, params=PARAMS):
    return prepare(runs, params)


def test_historic_medians_are_those_of_the_first_part_alone(log_of):
    found = ready(log_of([1.0, 2.0, 3.0, 4.0, 5.0, 50.0, 60.0, 70.0, 80.0, 90.0]))
    assert found.history_s.to_dict() == {"job": 3}
    assert found.runs["median_s"].tolist() == [3] * 10
    assert set(found.runs["median_source"]) == {"history"}


def test_a_job_that_is_new_after_the_first_part_is_compared_with_its_own_runs_before(log_of):
    found = ready(log_of([1.0] * 5 + [4.0, 6.0, 8.0, 9.0, 9.0], ["a"] * 5 + ["b"] * 5))
    assert found.runs["median_source"].tolist()[5:] == ["none"] + ["before"] * 4
    assert found.runs["median_s"].tolist()[6:] == [4, 5, 6, 7]


def test_rows_of_all_parts_have_features_on_the_same_index(drawn):
    found = ready(drawn(120))
    pd.testing.assert_index_equal(found.features.index, found.runs.index)
    assert found.is_part("D1").sum() == 60
    assert found.is_part("D2", "D3").sum() == 60
    assert {"shape_ratio_0", "shape_delta_1", "log_median_before", "input_ratio"} <= set(found.features)


def test_what_happens_in_the_test_changes_no_feature_of_the_training(drawn):
    runs = drawn(120)
    changed = runs.copy()
    changed.loc[96:, "runtime_s"] *= 7
    one, other = ready(runs), ready(changed)
    assert (one.runs["part"][:96] != "D3").all()
    pd.testing.assert_frame_equal(one.features[:96], other.features[:96], check_exact=True)
    assert (one.shapes["ratio"].centres == other.shapes["ratio"].centres).all()
    assert not one.features[97:].equals(other.features[97:])


def test_runs_whose_log_tells_no_end_end_after_their_runtime(log_of):
    runs = log_of([1.0, 2.5, 3.0])
    expected = runs["ended_at"].tolist()
    untold = runs.assign(ended_at=runs["ended_at"].where([True, False, True]))
    assert with_ends(untold)["ended_at"].tolist() == expected
    waited = untold.assign(started_at=untold["started_at"] + pd.Timedelta("9s"))
    assert with_ends(waited)["ended_at"][1] == expected[1] + pd.Timedelta("9s")
    unstarted = untold.assign(started_at=pd.NaT)
    assert with_ends(unstarted)["ended_at"].tolist() == expected
    assert untold["ended_at"].isna().sum() == 1  # the argument stays


def test_a_log_of_one_job_of_constant_runtimes_has_one_shape(log_of, caplog):
    found = ready(log_of([5.0] * 30))
    assert {kind: len(shapes.centres) for kind, shapes in found.shapes.items()} == {"ratio": 1, "delta": 1}
    assert ": 1 shape, of jobs with at least " in caplog.text
    assert found.features["shape_ratio_0"][1:].tolist() == [1] * 29


def test_a_history_of_0_s_alone_has_no_shapes_of_ratios(log_of):
    assert set(ready(log_of([0.0] * 9)).shapes) == {"delta"}


def own(log_of, **columns):
    runtime_s = np.exp(np.random.default_rng(0).normal(3, 1, 200))
    return log_of(runtime_s, **{f"own_{name}": values for name, values in columns.items()})


def test_a_column_that_nearly_is_the_runtime_is_left_out_and_named_whatever_its_unit(log_of):
    runs = own(log_of)
    runs = runs.assign(
        own_took_ms=np.where(runs.index < 190, 1000 * runs["runtime_s"], 7.0), own_score=np.log(runs["runtime_s"])
    )
    found = leaks(runs, {"took_ms", "score"}, ())
    assert found["took_ms"].startswith("is the runtime in 95.0% of the runs")
    assert found["score"].startswith("rises with the runtime (rank correlation 1.000)")
    assert leaks(runs, (), {"took_ms", "score"}) == {}  # who says so knows better


@pytest.mark.parametrize(
    ("name", "is_result"),
    [
        *(("exit_code", True), ("exitCode", True), ("job_status", True), ("EndTime", True), ("build duration", True)),
        *(("weekend", False), ("friend", False), ("branch", False), ("statuses_url", False), ("stage", False)),
    ],
)
def test_a_column_that_is_called_like_a_result_is_no_feature(log_of, name, is_result):
    runs = own(log_of, **{name: np.arange(200) % 3})
    assert (name in leaks(runs, {name}, ())) is is_result


def test_of_all_columns_only_those_said_to_be_known_before_are_features(log_of):
    rng = np.random.default_rng(1)
    runs = own(log_of, tests=rng.random(200), branch=np.where(rng.random(200) < 0.7, "main", "dev"), old=np.nan)
    assert set(leaks(runs, (), ())) == {"tests", "branch", "old"}
    found = prepare(runs, PARAMS, known_before={"branch"})
    assert found.left_out == {
        "tests": "is not said to be known before the run",
        "old": "is not said to be known before the run",
    }
    assert found.categories == {"own_branch": ["main", "dev"]}
    assert found.features["own_branch"].tolist() == (runs["own_branch"] == "dev").astype(float).tolist()
    assert "own_tests" not in found.features


def test_a_column_that_is_said_to_be_known_before_and_is_not_there_is_told(log_of, caplog):
    runs = own(log_of, branch=np.arange(200) % 3)
    prepare(runs, PARAMS, known_before={"branch", "event"})
    assert "known before: no column event; own columns: branch" in caplog.messages


def test_a_value_that_was_not_there_before_the_test_counts_as_a_rare_one(log_of):
    branch = np.where(np.arange(200) < 160, "main", "new").astype(object)
    branch[3] = None
    found = prepare(own(log_of, branch=branch), PARAMS, named={"branch"}).features["own_branch"]
    assert found[0] == 0 and np.isnan(found[3]) and found[199] == 1
