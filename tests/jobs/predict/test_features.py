"""Features by hand, and that nothing which was not known at a submission is in them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.errors import NotFound
from tasks.jobs.columns import KNOWN_AFTER
from tasks.jobs.normalisation import Bins, histogram, historic_medians, normalise
from tasks.jobs.predict.features import FEATURES, HistoricShapes, feature_of, is_of_peers, make_features, pattern_of
from tasks.jobs.shapes import ShapeSet, log_posterior

KINDS = ["intrinsic", "resource", "environment", "vertices", "tokens", "history"]


def test_words_name_the_sku_the_operator_and_the_shape():
    assert feature_of("sku_load_mean_gen3").words == "load of SKU gen3 at submission"
    assert feature_of("op_HASH_JOIN").words == "HASH JOIN operators in the plan"
    assert feature_of("shape_delta_11").words == "chance of delta shape 11 by earlier runs"
    assert feature_of("vertex_share_gen_4_mean").words == "share of the job's earlier vertices on SKU gen_4"


def test_a_name_that_also_fits_a_pattern_is_itself():
    assert pattern_of("n_vertices_mean") == "n_vertices_mean"
    assert pattern_of("load_mean") == "load_mean"
    assert pattern_of("vertices_gen3_mean") == "vertices_<sku>_mean"


def test_kinds_stand_together_in_the_order_of_the_paper():
    kinds = [feature.kind for feature in FEATURES.values()]
    assert kinds == sorted(kinds, key=KINDS.index)


@pytest.mark.parametrize("name", ["runtime_s", "cpu_s", "used_cpus", "ended_at", "n_vertices", "wait_s", *KNOWN_AFTER])
def test_what_is_known_only_after_a_run_is_no_feature(name):
    with pytest.raises(NotFound, match=f"feature '{name}': no feature has this name"):
        feature_of(name)


START = pd.Timestamp("2026-01-05 06:00")  # a Monday
OUTCOMES = ["ended_at", "started_at", "runtime_s", "wait_s", "cpu_s", "used_cpus", "status", *KNOWN_AFTER]
OUTCOMES += ["vertices_old", "vertices_new", "n_vertices", "peak_memory_bytes"]


def bare(*rows):
    """Runs of a log with few columns: (group, submitted, runtime), in hours after the start and seconds."""
    frame = pd.DataFrame(rows, columns=["group_key", "submitted_at", "runtime_s"]).astype({"runtime_s": float})
    frame["submitted_at"] = START + pd.to_timedelta(frame["submitted_at"] * 3600.0, unit="s")
    ended_at = frame["submitted_at"] + pd.to_timedelta(frame["runtime_s"], unit="s")
    return frame.assign(run_id=[f"r{i}" for i in range(len(frame))], ended_at=ended_at, requested_cpus=4.0)


def rich(n, rng):
    """Runs with every column that features come from, of two jobs, some of them at the same moment."""
    submitted_at = START + pd.to_timedelta(rng.integers(0, 200, n), unit="s")
    runtime_s = rng.integers(0, 60, n).astype(float)
    old, new = rng.integers(0, 4, n).astype(float), rng.integers(0, 4, n).astype(float)
    figures = [
        *("requested_cpus", "requested_runtime_s", "requested_memory_bytes", "input_bytes", "estimated_rows"),
        *("estimated_cost", "spare_tokens_available", "queue_length", "load_mean", "load_sd", "offered_old"),
        *("sku_load_mean_old", "sku_load_sd_old", "sku_free_tokens_old", "op_FILTER", "op_HASH_JOIN", "used_cpus"),
        *("min_tokens", "peak_tokens", "spare_tokens_used", "read_bytes", "temp_bytes", "cpu_s", "peak_memory_bytes"),
    ]
    return pd.DataFrame(
        {
            "run_id": [f"r{i}" for i in range(n)], "group_key": rng.choice(["a", "b"], n),
            "submitted_at": submitted_at, "started_at": submitted_at,
            "ended_at": submitted_at + pd.to_timedelta(runtime_s, unit="s"), "runtime_s": runtime_s,
            "wait_s": rng.random(n), "status": "completed", "recorded_cause": rng.choice(["none", "load"], n),
            "vertices_old": old, "vertices_new": new, "n_vertices": old + new,
        }
        | {name: np.where(rng.random(n) < 0.2, np.nan, rng.random(n)) for name in figures}
    )  # fmt: skip


def shapes(medians_s):
    def one(kind, low, high):
        centres = np.array([[0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
        bins = Bins(kind=kind, low=low, high=high, n_bins=3)
        return ShapeSet(bins, centres, np.array([1, 1]), 0.0)

    return HistoricShapes({"ratio": one("ratio", 0, 2), "delta": one("delta", -10, 10)}, medians_s)


def test_features_worked_out_by_hand():
    # a: 10, 20, 40 and 30 s, one an hour
    log = bare(("a", 0, 10), ("a", 1, 20), ("a", 2, 40), ("a", 3, 30), ("a", 4.5, 1)).assign(
        input_bytes=[10.0, 20.0, 60.0, np.nan, 30.0], requested_cpus=[2.0, 2.0, 4.0, 8.0, 2.0],
        used_cpus=[1.0, 3.0, 2.0, 6.0, 9.0], op_FILTER=[1.0, 1.0, 1.0, 1.0, np.nan],
        op_JOIN=[2.0, 2.0, 2.0, 2.0, np.nan], vertices_old=[1.0, 0.0, 2.0, 0.0, 9.0],
        vertices_new=[3.0, 4.0, 2.0, 0.0, 9.0], n_vertices=[4.0, 4.0, 4.0, 0.0, 18.0],
    )  # fmt: skip
    found = make_features(log, log).iloc[4]
    expected = {
        "n_before": 4, "hour_of_day": 10.5, "day_of_week": 0, "input_bytes": 30,
        "input_ratio": 30 / 20,  # the median of 10, 20, 60 and a missing one
        "requested_tokens": 2, "tokens_ratio": 2 / 4, "mean_tokens_mean": 3, "mean_tokens_sd": np.sqrt(14 / 3),
        "log_median_before": np.log(25), "log_ratio_mean": np.log([10, 20, 40, 30]).mean() - np.log(25),
        "log_ratio_sd": np.log([10, 20, 40, 30]).std(ddof=1), "last_log_ratio": np.log(30 / 25),
        "ewma_log_ratio": np.average(np.log([10, 20, 40, 30]), weights=0.5 ** (np.arange(4)[::-1] / 5)) - np.log(25),
        "p25_p75_before": (32.5 - 17.5) / 25,
        "outlier_share_before": 2 / 3,  # 20 to 10, 40 to 15, and 30 to 20, but the first has no median
        "hours_since_last": 1.5 - 30 / 3600, "n_vertices_mean": 3, "vertices_old_mean": 0.75,
        "vertex_share_old_mean": (1 / 4 + 0 + 2 / 4) / 3,  # the run without vertices has no share
    }  # fmt: skip
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-12), name
    assert np.isnan(found["op_FILTER"])
    assert make_features(log, log)["n_operators"].tolist()[:4] == [3, 3, 3, 3]


def test_the_median_of_the_period_before_is_what_runtimes_are_compared_with():
    log = bare(("a", 0, 10), ("a", 1, 20), ("a", 2, 90))
    found = make_features(log, log, shapes({"a": 5.0})).iloc[2]
    assert found["last_log_ratio"] == pytest.approx(np.log(20 / 5))
    assert found["outlier_share_before"] == 1
    assert found["log_median_before"] == pytest.approx(np.log(15))


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 29), st.booleans(), st.sampled_from([{}, {"a": 9.0}]))
def test_nothing_that_ends_at_or_after_a_submission_changes_a_feature_of_it(seed, place, is_deleted, medians_s):
    rng = np.random.default_rng(seed)
    log, others = rich(30, rng), rich(30, rng)
    at = log["submitted_at"].iloc[place]
    is_row, is_later = (log["submitted_at"] <= at).to_numpy(), (log["ended_at"] >= at).to_numpy()
    before = make_features(log[is_row], log, shapes(medians_s))
    assert is_later[place]  # the outcome of the row itself is part of the future
    changed = log.copy()
    outcomes = [name for name in OUTCOMES if name in log]
    changed.loc[is_later, outcomes] = others.loc[is_later, outcomes]
    changed.loc[is_later, "ended_at"] = at + pd.to_timedelta(rng.integers(0, 99, is_later.sum()), unit="s")
    past = changed[~is_later] if is_deleted else changed
    after = make_features(changed[is_row], past, shapes(medians_s), columns=list(before))
    pd.testing.assert_frame_equal(before, after, check_exact=True)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_other_jobs_and_other_rows_change_nothing_but_what_is_of_the_log(seed):
    log = rich(40, np.random.default_rng(seed))
    found = make_features(log, log, shapes({}))
    mine = log[log["group_key"] == "a"]
    alone = make_features(mine, mine, shapes({}), columns=list(found))
    of_job = [name for name in found if not name.startswith("log_") or name in FEATURES]
    pd.testing.assert_frame_equal(found.loc[mine.index, of_job], alone[of_job], check_exact=True)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_order_of_the_rows_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    log = rich(40, rng).drop_duplicates(
        ["group_key", "submitted_at", "runtime_s"]
    )  # twins stand as they are read: by key
    found = make_features(log, log, shapes({}))
    mixed = log.iloc[rng.permutation(len(log))]
    again = make_features(mixed, log.iloc[rng.permutation(len(log))], shapes({}))
    pd.testing.assert_frame_equal(found, again.loc[found.index], rtol=1e-12)


def test_a_log_with_few_columns_has_the_features_that_it_allows():
    log = bare(("a", 0, 10), ("a", 1, 20), ("b", 2, 5))
    assert [name for name in make_features(log, log) if not is_of_peers(name)] == [
        *("hour_of_day", "day_of_week", "requested_tokens", "tokens_ratio", "n_before", "log_median_before"),
        *("log_ratio_mean", "log_ratio_sd", "last_log_ratio", "ewma_log_ratio", "p25_p75_before"),
        *("outlier_share_before", "hours_since_last"),
    ]


def test_a_job_never_seen_before_has_no_history():
    log = bare(("a", 0, 10), ("a", 1, 20))
    found = make_features(bare(("new", 5, 1)), log, shapes({})).iloc[0]
    assert found["n_before"] == 0
    has_value = ["hour_of_day", "day_of_week", "requested_tokens", "n_before"]
    assert [name for name in found[found.notna()].index if not is_of_peers(name)] == has_value
    assert found["job_runs"] == 0
    assert np.isnan(found["job_last"])
    assert found["log_last"] == pytest.approx(np.log(20))


def test_the_columns_of_a_trained_model_come_back_in_their_order():
    log = bare(("a", 0, 10), ("a", 1, 20))
    columns = ["read_bytes_mean", "n_before", "shape_delta_1", "hour_of_day", "load_mean"]
    found = make_features(log, log, columns=columns)
    assert list(found) == columns
    assert found["n_before"].tolist() == [0, 1]
    assert found[["read_bytes_mean", "shape_delta_1", "load_mean"]].isna().all(axis=None)
    assert set(found.dtypes) == {np.dtype(float)}


def test_an_operator_or_sku_that_is_not_there_is_zero_where_others_are_known():
    log = bare(("a", 0, 10), ("a", 1, 20)).assign(op_FILTER=[1.0, np.nan], offered_old=1.0)
    found = make_features(log, log, columns=["op_WINDOW", "offered_new", "vertices_new_mean"])
    assert found["op_WINDOW"].fillna(-1).tolist() == [0, -1]  # the second has no plan
    assert found["offered_new"].tolist() == [0, 0]
    assert found["vertices_new_mean"].isna().all()  # no vertices were logged


@pytest.mark.parametrize("n_rows", [0, 2])
def test_without_a_past_there_are_rows_but_no_history(n_rows):
    log = bare(("a", 0, 10), ("a", 1, 20))
    found = make_features(log.head(n_rows), log.head(0), shapes({}))
    assert len(found) == n_rows
    assert (found["n_before"] == 0).all()


def test_runtimes_of_zero_give_finite_features():
    log = bare(("a", 0, 0), ("a", 1, 0), ("a", 2, 5))
    found = make_features(log, log, shapes({"a": 0.0}))
    assert not np.isinf(found.to_numpy()).any()
    assert found["last_log_ratio"].tolist()[1:] == [0, 0]


BINS = Bins(kind="ratio", low=0, high=3, n_bins=5)  # up to 0, to 1, to 2, to 3, from 3
CENTRES = np.array([[0.1, 0.4, 0.3, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.6]])


def by_hand(medians_s):
    return HistoricShapes({"ratio": ShapeSet(BINS, CENTRES, np.ones(2, int), 0.0)}, medians_s)


def runs(runtimes_s, group="a"):
    submitted_at = START + pd.to_timedelta(np.arange(len(runtimes_s)) * 1000, unit="s")
    frame = pd.DataFrame({"group_key": group, "submitted_at": submitted_at, "runtime_s": np.array(runtimes_s, float)})
    return frame.assign(ended_at=submitted_at + pd.to_timedelta(frame["runtime_s"], unit="s"))


def posterior(ratios):
    counts = histogram(ratios, np.zeros(len(ratios), int), 1, BINS)
    return np.exp(log_posterior(counts, CENTRES))[0]


def test_it_is_the_posterior_of_the_runs_before_with_the_median_of_the_period_before():
    log = runs([5, 12, 31, 45, 9])
    found = make_features(log, log, by_hand({"a": 10.0}))[["shape_ratio_0", "shape_ratio_1"]]
    assert found.iloc[0].isna().all()
    for n in range(1, 5):
        assert found.iloc[n].to_numpy() == pytest.approx(posterior(log["runtime_s"].head(n) / 10))


def test_a_new_job_is_compared_with_the_median_that_each_run_had_then():
    log = runs([5, 12, 31, 45, 9])
    found = make_features(log, log, by_hand({}))[["shape_ratio_0", "shape_ratio_1"]]
    medians = historic_medians(log, {})["median_s"]
    ratios = normalise(log["runtime_s"], medians, "ratio")
    assert found.iloc[1].isna().all()  # the one run before had no median yet
    assert found.iloc[4].to_numpy() == pytest.approx(posterior(ratios[:4]))


def test_the_last_ten_runs_are_evidence_of_their_own():
    log = runs([5, 12, 31, 45, 9, 8, 7, 33, 12, 15, 6, 9, 9])
    found = make_features(log, log, by_hand({"a": 10.0}))[["recent_shape_ratio_0", "recent_shape_ratio_1"]]
    assert found.iloc[12].to_numpy() == pytest.approx(posterior(log["runtime_s"].iloc[2:12] / 10))
