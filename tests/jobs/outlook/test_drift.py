"""Which jobs have changed, which have drifted to another shape, and how often that is a false alarm."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.outlook.drift import COLUMNS, find_drift
from tasks.jobs.outlook.params import DriftParams
from tasks.jobs.pmf import Bins
from tasks.jobs.shapes import ShapeSet

START, SINCE = pd.Timestamp("2026-01-01"), pd.Timestamp("2026-01-22")
PARAMS = DriftParams()
BINS = Bins(kind="ratio", low=0, high=3, n_bins=32)


def bell(spread):
    """A shape around the median, as probabilities of the bins."""
    mass = np.exp(-0.5 * ((BINS.centres - 1) / spread) ** 2)
    return mass / mass.sum()


SHAPES = ShapeSet(BINS, np.stack([bell(0.05), bell(0.4)]), np.full(2, 0.5), np.full(2, 10), 0.0)


def log_of(jobs, *, days=28, per_day=3):
    """Runs of each job: jobs maps a name to a function of (rng, n, is_after) that gives runtimes."""
    rng = np.random.default_rng(11)
    at = START + pd.to_timedelta(np.repeat(np.arange(days), per_day) + rng.random(days * per_day) * 0.99, unit="D")
    parts = [
        pd.DataFrame({"group_key": key, "submitted_at": at, "runtime_s": draw(rng, len(at), np.asarray(at >= SINCE))})
        for key, draw in jobs.items()
    ]
    return pd.concat(parts, ignore_index=True)


def steady(rng, n, _):
    return 100 * (1 + 0.05 * rng.normal(size=n))


def wider(rng, n, is_after):
    return 100 * np.clip(1 + np.where(is_after, 0.4, 0.05) * rng.normal(size=n), 0.01, None)


def slower(rng, n, is_after):
    return steady(rng, n, None) * np.where(is_after, 2, 1)


def found_in(runs, params=PARAMS, shapes=SHAPES, **kwargs):
    return find_drift(runs, params, shapes=shapes, since_at=SINCE, **kwargs).table.set_index("group_key")


def test_a_job_that_became_erratic_drifts_from_the_narrow_to_the_wide_shape_and_its_neighbours_do_not():
    found = found_in(log_of({"a": steady, "b": wider, "c": steady, "d": steady}))
    assert found.index[0] == "b"
    assert found["has_drifted"].to_dict() == {"a": False, "b": True, "c": False, "d": False}
    assert found.loc["b", ["shape_before", "shape_after"]].tolist() == [0, 1]
    assert found.loc["b", "log_bayes_factor"] > np.log(1000) > found.loc["a", "log_bayes_factor"]
    assert found.loc["b", "p_shape_after"] > 0.99
    assert found.loc["b", "spread_after_s"] > 4 * found.loc["b", "spread_before_s"]


def test_a_job_that_became_twice_as_slow_has_changed_by_that_factor():
    found = found_in(log_of({"a": steady, "b": slower}))
    assert found["has_changed"].to_dict() == {"b": True, "a": False}
    assert found.loc["b", "median_factor"] == pytest.approx(2, rel=0.05)
    counts = found.loc["b", ["n_before", "n_after", "stretches_before", "stretches_after"]]
    assert counts.tolist() == [63, 21, 21, 7]


def test_without_shapes_jobs_change_and_do_not_drift():
    found = found_in(log_of({"a": steady, "b": wider}), shapes=None)
    assert found["has_changed"].to_dict() == {"b": True, "a": False}
    assert not found["has_drifted"].any()
    assert (found[["shape_before", "shape_after"]] == -1).all(axis=None)


def test_shapes_are_those_of_runs_against_the_historic_median():
    # against a median of 50 s all runs lie at twice the median, which only the wide shape allows
    found = found_in(log_of({"a": steady}), medians_s={"a": 50.0})
    assert found.loc["a", ["shape_before", "shape_after"]].tolist() == [1, 1]


def test_the_order_of_the_rows_changes_nothing():
    runs = log_of({"a": steady, "b": wider, "c": slower}).assign(runtime_s=lambda frame: frame["runtime_s"].round())
    pd.testing.assert_frame_equal(found_in(runs), found_in(runs.sample(frac=1, random_state=3)))


def test_other_jobs_do_not_change_the_evidence_of_a_job():
    alone, among = (found_in(log_of(jobs)) for jobs in ({"a": slower}, {"a": slower, "b": steady}))
    columns = ["statistic", "median_factor", "log_bayes_factor"]
    assert alone.loc["a", columns].tolist() == pytest.approx(among.loc["a", columns].tolist(), rel=1e-12)


def test_the_unit_of_time_does_not_matter_to_the_test():
    runs = log_of({"a": steady, "b": slower})
    in_ms = runs.assign(runtime_s=runs["runtime_s"] * 1000)
    assert found_in(runs)["p_value"].tolist() == found_in(in_ms)["p_value"].tolist()


def test_a_log_is_compared_from_so_many_days_before_its_last_run_on():
    runs = log_of({"a": steady})
    drift = find_drift(runs, DriftParams(since_days=7))
    assert drift.since_at == runs["submitted_at"].max() - pd.Timedelta(days=7)
    assert find_drift(runs, DriftParams(before_days=10)).table["n_before"].item() < 33


def test_jobs_with_too_few_runs_are_counted_and_left_out():
    runs = log_of({"a": steady, "few": steady})
    runs = runs[(runs["group_key"] == "a") | (runs["submitted_at"] < SINCE)]
    drift = find_drift(runs, PARAMS, since_at=SINCE)
    assert (drift.table["group_key"].tolist(), drift.n_small) == (["a"], 1)


def test_runs_in_too_few_stretches_to_tell_are_left_out_and_counted_by_themselves_if_asked():
    # 12 runs each on the first and on the last day: two stretches, one deal each way
    runs = log_of({"a": slower}, per_day=12)
    day = (runs["submitted_at"] - START).dt.days
    runs = runs[day.isin([0, 27])]
    assert find_drift(runs, PARAMS, since_at=SINCE).n_small == 1
    alone = DriftParams(n_stretches=0)
    assert find_drift(runs, alone, since_at=SINCE).table["has_changed"].tolist() == [True]


def test_a_log_of_minutes_has_stretches_of_minutes():
    runs = log_of({"a": slower, "b": steady})
    quick = runs.assign(submitted_at=START + (runs["submitted_at"] - START) / 1000)
    found = find_drift(quick, PARAMS, since_at=START + (SINCE - START) / 1000).table
    assert found["stretches_after"].tolist() == [7, 7]
    assert found["has_changed"].tolist() == [True, False]


def test_runs_that_did_not_finish_are_no_evidence():
    runs = log_of({"a": steady})
    more = runs.assign(runtime_s=np.nan)
    pd.testing.assert_frame_equal(found_in(runs), found_in(pd.concat([runs, more], ignore_index=True)))


def test_constant_runtimes_and_runtimes_of_zero_have_not_changed():
    found = found_in(log_of({"constant": lambda _, n, __: np.full(n, 7.0), "zero": lambda _, n, __: np.zeros(n)}))
    assert found["p_value"].tolist() == [1.0, 1.0]
    assert np.isnan(found.loc["zero", "median_factor"])
    assert not found["has_drifted"].any()


@pytest.mark.parametrize("n_rows", [0, 3])
def test_a_log_with_nothing_to_compare_gives_an_empty_table(n_rows):
    drift = find_drift(log_of({"a": steady}).head(n_rows), PARAMS, shapes=SHAPES)
    assert drift.table.empty
    assert drift.table.columns.tolist() == list(COLUMNS)


def test_missing_columns_are_refused():
    with pytest.raises(BadInput, match="no column runtime_s; expected a frame with group_key, submitted_at, runtime_s"):
        find_drift(log_of({"a": steady}).drop(columns="runtime_s"), PARAMS)


def shuffled(runs, rng):
    """The same runs with the times of submission dealt anew within each job: nothing can have changed."""
    return runs.assign(submitted_at=runs.groupby("group_key")["submitted_at"].transform(lambda x: rng.permutation(x)))


def test_of_shuffled_logs_hardly_any_raises_an_alarm_and_p_values_are_as_stated():
    runs, rng = log_of({f"job {i}": steady if i % 2 else wider for i in range(12)}), np.random.default_rng(5)
    tables = [found_in(shuffled(runs, rng), PARAMS.model_copy(update={"seed": seed})) for seed in range(20)]
    together = pd.concat(tables)
    assert len(together) == 240
    assert sum(table["has_changed"].any() for table in tables) <= 3  # 1 of 20 is stated
    assert 0.01 < (together["p_value"] <= PARAMS.false_discovery_rate).mean() < 0.1
    assert together["has_drifted"].mean() <= together["has_changed"].mean() <= 0.02


@pytest.mark.parametrize("planted", [slower, wider])
def test_planted_changes_are_found_and_most_alarms_are_true(planted):
    jobs = {f"job {i:02}": planted if i < 4 else steady for i in range(20)}
    changed = found_in(log_of(jobs))["has_changed"]
    assert changed[[f"job {i:02}" for i in range(4)]].all()
    assert changed.sum() <= 5  # at most a fifth of them false


def test_no_change_is_found_where_none_was_planted():
    assert not found_in(log_of({f"job {i}": steady for i in range(20)}))["has_changed"].any()
