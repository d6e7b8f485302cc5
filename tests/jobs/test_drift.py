"""Which jobs have changed, which drifted to another shape, how often that is a false alarm, and by which statistics."""

import itertools

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.drift import COLUMNS, anderson_darling, drift_words, find_drift, log_bayes_factors, permutation_test
from tasks.jobs.normalisation import Bins
from tasks.jobs.params import DriftParams
from tasks.jobs.shapes import ShapeSet


def p_value(before, after, seed=0, most=2000):
    values = np.concatenate([before, after]).astype(float)
    is_after = np.arange(len(values)) >= len(before)
    rng = np.random.default_rng(seed)
    return permutation_test(values, np.arange(len(values)), is_after, rng, max_permutations=most)[1]


def of(values, is_after):
    return anderson_darling(np.array(values, dtype=float), np.array([is_after], dtype=bool))[0]


def test_two_below_two_by_hand():
    # N = 4, n = m = 2, C = 0 0 1 2: (4 * 0 - 2 * 1)^2 / (1 * 3) + (-4)^2 / (2 * 2) + (4 * 1 - 2 * 3)^2 / (3 * 1)
    # = 4 / 3 + 4 + 4 / 3 = 20 / 3, over n m = 4
    assert of([1, 2, 3, 4], [0, 0, 1, 1]) == pytest.approx(5 / 3)


def test_ties_by_hand():
    # values 1 1 2: h = 2 at j = 2, N = 3; before 1, 2; after 1: C = 1, n = 2, m = 1
    # 2 * (3 * 1 - 1 * 2)^2 / (2 * 1) / 2 = 1 / 2; cdfs at 1: 1 / 2 and 1
    assert of([1, 1, 2], [0, 1, 0]) == pytest.approx(1 / 2)
    assert of([1, 1, 2], [1, 0, 0]) == pytest.approx(1 / 2)


def test_p_values_are_those_of_all_deals():
    values, is_after = np.array([1.0, 2, 2, 3, 5, 8, 9]), np.array([0, 0, 1, 0, 0, 1, 1], dtype=bool)
    deals = np.array([[i in chosen for i in range(7)] for chosen in itertools.combinations(range(7), 3)])
    exact = (anderson_darling(values, deals) >= of(values, is_after) - 1e-9).mean()
    rng = np.random.default_rng(0)
    found = [permutation_test(values, np.arange(7), is_after, rng, max_permutations=5000)[1] for _ in range(200)]
    # p = 20 / deals has a spread of about p / root 20, and stopping at a hit puts it 1 / 20 above
    assert np.mean(found) == pytest.approx(exact, rel=0.12)


@pytest.mark.parametrize("draw", ["lognormal", "whole seconds"])
def test_without_a_change_p_values_are_below_0_05_in_one_of_twenty(draw):
    rng = np.random.default_rng(7)
    n_trials, hits = 600, 0
    for _ in range(n_trials):
        values = rng.lognormal(1, 0.7, 30) if draw == "lognormal" else rng.poisson(4, 30).astype(float)
        is_after = np.arange(30) >= 20
        hits += permutation_test(values, np.arange(30), is_after, rng, max_permutations=399)[1] <= 0.05
    assert 0.02 < hits / n_trials < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_trials)


def test_busy_days_alone_are_no_change_when_they_count_as_one():
    rng = np.random.default_rng(9)
    day, is_after = np.repeat(np.arange(28), 4), np.repeat(np.arange(28), 4) >= 21
    by_day, by_run = 0, 0
    for _ in range(200):
        values = np.exp(rng.normal(size=28)[day] + 0.3 * rng.normal(size=112))
        for_days = permutation_test(values, day, is_after, rng, max_permutations=399)[1]
        for_runs = permutation_test(values, np.arange(112), is_after, rng, max_permutations=399)[1]
        by_day, by_run = by_day + (for_days <= 0.05), by_run + (for_runs <= 0.05)
    assert 0.01 < by_day / 200 < 0.1
    assert by_run / 200 > 0.2  # what the stretches are for


BINS = Bins(kind="ratio", low=0, high=3, n_bins=3)


def shapes_of(*centres):
    k = len(centres)
    return ShapeSet(BINS, np.array(centres, dtype=float), np.full(k, 10), 0.0)


TWO = shapes_of([0.5, 0.25, 0.25], [0.25, 0.25, 0.5])


def factor(before, after, shapes=TWO):
    return np.exp(log_bayes_factors([before], [after], shapes))[0]


def test_one_run_on_each_side_by_hand():
    # before in bin 1: L = 1/2, 1/4; since in bin 3: M = 1/4, 1/2
    # one shape: (1/2 1/4 + 1/4 1/2) / 2 = 1/8; two: (1/2 1/2 + 1/4 1/4) / 2 = 5/32; 5/4 times likelier
    assert factor([1, 0, 0], [0, 0, 1]) == pytest.approx(5 / 4, rel=2e-3)  # no bin is quite empty
    # both in bin 1: one: (1/4 + 1/16) / 2, two: (1/8 + 1/8) / 2
    assert factor([1, 0, 0], [1, 0, 0]) == pytest.approx(4 / 5, rel=2e-3)


@pytest.mark.parametrize(("before", "after"), [([0, 0, 0], [5, 1, 0]), ([5, 1, 0], [0, 0, 0]), ([0, 4, 0], [0, 2, 0])])
def test_no_runs_and_runs_that_tell_nothing_are_no_evidence(before, after):
    assert factor(before, after) == pytest.approx(1)


def test_a_single_shape_leaves_nothing_to_change_to():
    assert factor([5, 1, 0], [0, 1, 5], shapes_of([0.4, 0.3, 0.3])) == 0


START, SINCE = pd.Timestamp("2026-01-01"), pd.Timestamp("2026-01-22")
PARAMS = DriftParams()
RATIO_BINS = Bins(kind="ratio", low=0, high=3, n_bins=32)


def bell(spread):
    """A shape around the median, as probabilities of the bins."""
    mass = np.exp(-0.5 * ((RATIO_BINS.centres - 1) / spread) ** 2)
    return mass / mass.sum()


SHAPES = ShapeSet(RATIO_BINS, np.stack([bell(0.05), bell(0.4)]), np.full(2, 10), 0.0)


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
    return find_drift(runs, params, SINCE, shapes=shapes, **kwargs).set_index("group_key")


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


def test_runs_in_too_few_stretches_to_tell_are_left_out():
    # 12 runs each on the first and on the last day: two stretches, one deal each way
    runs = log_of({"a": slower}, per_day=12)
    day = (runs["submitted_at"] - START).dt.days
    runs = runs[day.isin([0, 27])]
    drift = find_drift(runs, PARAMS, SINCE, shapes=SHAPES)
    assert drift.empty and drift.columns.tolist() == list(COLUMNS)


def test_a_log_of_minutes_has_stretches_of_minutes():
    runs = log_of({"a": slower, "b": steady})
    quick = runs.assign(submitted_at=START + (runs["submitted_at"] - START) / 1000)
    found = find_drift(quick, PARAMS, START + (SINCE - START) / 1000)
    assert found["stretches_after"].tolist() == [7, 7]
    assert found["has_changed"].tolist() == [True, False]


def test_constant_runtimes_and_runtimes_of_zero_have_not_changed():
    found = found_in(log_of({"constant": lambda _, n, __: np.full(n, 7.0), "zero": lambda _, n, __: np.zeros(n)}))
    assert found["p_value"].tolist() == [1.0, 1.0]
    assert np.isnan(found.loc["zero", "median_factor"])
    assert not found["has_drifted"].any()


@pytest.mark.parametrize("planted", [slower, wider])
def test_planted_changes_are_found_and_most_alarms_are_true(planted):
    jobs = {f"job {i:02}": planted if i < 4 else steady for i in range(20)}
    changed = found_in(log_of(jobs))["has_changed"]
    assert changed[[f"job {i:02}" for i in range(4)]].all()
    assert changed.sum() <= 5  # at most a fifth of them false


JOB = {
    "group_key": "etl", "n_before": 1200, "n_after": 40, "median_before_s": 100.0, "median_after_s": 200.0,
    "median_factor": 2.0, "spread_before_s": 10.0, "spread_after_s": 90.0, "q_value": 0.012, "has_changed": True,
    "has_drifted": True, "shape_before": 1, "shape_after": 5, "log_bayes_factor": np.log(250),
}  # fmt: skip


def test_a_drifted_job_says_from_which_shape_to_which_and_how_sure_that_is():
    assert drift_words(JOB) == (
        "etl: drifted from shape 1 to shape 5; median 100 s, now 3.3 min (2 ×); middle half within 10 s, now 90 s; "
        "1,200 runs before, 40 since, expected share of false alarms at most 1.2 %, two shapes 250 × likelier than one"
    )


def test_a_changed_job_of_the_same_shape_says_so():
    assert drift_words(JOB | {"has_drifted": False}).startswith("etl: changed; median")
