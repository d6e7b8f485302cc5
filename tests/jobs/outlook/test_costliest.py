"""Which jobs cost the most waiting through variation, measured and predicted."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.binned import Binned, Tails
from tasks.jobs.empirical import Empirical, gather_history
from tasks.jobs.outlook.costliest import costliest_jobs, mean_above
from tasks.jobs.outlook.params import CostParams

PARAMS = CostParams()


def past(*histories):
    groups = np.repeat(np.arange(len(histories)), [len(h) for h in histories])
    return Empirical(gather_history(np.concatenate(histories), groups), np.arange(len(histories)))


def log_of(jobs, days=2.0):
    """Runs evenly over so many days, first to last."""
    start = pd.Timestamp("2026-01-01")
    parts = [
        pd.DataFrame(
            {
                "group_key": key,
                "submitted_at": start + pd.to_timedelta(np.linspace(0, days, len(times)), unit="D"),
                "runtime_s": np.asarray(times, dtype=float),
            }
        )
        for key, times in jobs.items()
    ]
    return pd.concat(parts, ignore_index=True)


def test_three_runs_of_1_2_and_6_s_wait_4_thirds_of_a_second_above_their_median():
    assert mean_above(past([1.0, 2.0, 6.0]), 2) == pytest.approx([4 / 3])


def test_an_even_spread_from_0_to_2_s_waits_a_quarter_second_above_1_s():
    # the integral of (2 - t) / 2 from 1 to 2
    predicted = Binned([0.0, 2.0], [[1.0]], np.array([1.0]), "ratio")
    assert mean_above(predicted, np.array([[0.0, 1.0, 2.0, 5.0]])) == pytest.approx(np.array([[1, 0.25, 0, 0]]))


def test_an_exponential_tail_waits_its_mean_above_any_time_in_it():
    predicted = Binned([0.0, 1.0, 2.0], [[0.5, 0.5]], np.array([10.0]), "ratio", Tails(3.0))
    # half of the runs are beyond 10 s, by 30 s in the mean
    assert mean_above(predicted, 10) == pytest.approx([15.0], rel=1e-6)


def test_time_above_equals_that_of_many_draws():
    rng = np.random.default_rng(6)
    predicted = Binned(np.linspace(0, 3, 7), rng.dirichlet(np.ones(6), 1), np.array([20.0]), "ratio", Tails(0.5))
    draws = predicted.sample(rng, 400_000)[0]
    for time_s in (5.0, 20.0, 45.0):
        assert mean_above(predicted, time_s)[0] == pytest.approx(np.maximum(draws - time_s, 0).mean(), rel=0.02)


def test_time_above_never_rises_with_the_time():
    predicted = past(np.random.default_rng(0).lognormal(3, 1, 30))
    found = mean_above(predicted, np.linspace(0, 400, 100)[None, :])
    assert (np.diff(found) <= 1e-9).all() and (found >= 0).all()


def test_the_costliest_job_is_that_with_the_most_time_above_its_median_in_a_day():
    # rare: 3 runs in 2 days, 4 s above in the mean; often: 8 runs, (4 * 4) / 8 = 2 s; steady: nothing
    runs = log_of({"rare": [1, 1, 13], "often": [1, 1, 1, 1, 5, 5, 5, 5], "steady": [500.0] * 9})
    found = costliest_jobs(runs, PARAMS).set_index("group_key")
    assert found.index.tolist() == ["rare", "often", "steady"]
    assert found.loc[
        "rare", ["runs_per_day", "median_s", "above_median_s", "cost_s_per_day"]
    ].tolist() == pytest.approx([1.5, 1, 4, 6])
    # median of often is 3: half of the runs are 2 s above
    assert found.loc["often", ["above_median_s", "cost_s_per_day"]].tolist() == pytest.approx([1, 4])
    assert found["share_of_all"].tolist() == pytest.approx([0.6, 0.4, 0])


def test_only_so_many_jobs_are_listed_and_equal_ones_by_name():
    runs = log_of({key: [1, 2, 3] for key in "dcba"})
    assert costliest_jobs(runs, CostParams(n_jobs=2))["group_key"].tolist() == ["a", "b"]


def test_what_is_predicted_stands_beside_what_was_measured():
    runs = log_of({"a": [1, 2, 6], "b": [1, 1, 1]})
    predicted = past([10.0, 20.0, 60.0], [20.0, 20.0, 20.0])
    found = costliest_jobs(runs, PARAMS, predicted=predicted, keys=["a", "a"]).set_index("group_key")
    # mean of 40 / 3 and 0; 1.5 runs a day
    assert found.loc["a", "predicted_above_median_s"] == pytest.approx(20 / 3)
    assert found.loc["a", "predicted_cost_s_per_day"] == pytest.approx(10)
    assert np.isnan(found.loc["b", "predicted_cost_s_per_day"])


def test_the_interval_holds_the_true_cost_about_as_often_as_promised():
    rng = np.random.default_rng(1)
    jobs = {f"job {i:03}": rng.lognormal(3, 0.5, 60) for i in range(200)}
    found = costliest_jobs(log_of(jobs), CostParams(n_jobs=200, n_resamples=200))
    big = rng.lognormal(3, 0.5, 2_000_000)
    truth = np.maximum(big - np.exp(3), 0).mean() * 30
    held = ((found["low_s_per_day"] <= truth) & (found["high_s_per_day"] >= truth)).mean()
    assert 0.78 < held < 0.96


def test_the_order_of_the_rows_does_not_matter():
    rng = np.random.default_rng(2)
    runs = log_of({f"job {i}": rng.lognormal(3, 0.5, 20) for i in range(20)})
    shuffled = runs.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(costliest_jobs(runs, PARAMS), costliest_jobs(shuffled, PARAMS))


def test_a_job_with_too_few_runs_or_without_runtimes_is_left_out():
    runs = log_of({"a": [1, 2, 6], "few": [1, 900], "none": [np.nan, 5, np.inf, 900]})
    assert costliest_jobs(runs, PARAMS)["group_key"].tolist() == ["a"]


def test_a_log_without_jobs_of_enough_runs_or_without_length_is_refused():
    with pytest.raises(BadInput, match="no job with 3 runs; expected at least one; lower min_support"):
        costliest_jobs(log_of({"a": [1, 2]}), PARAMS)
    with pytest.raises(BadInput, match="a log of 0 days; expected submissions at different times, or `days`"):
        costliest_jobs(log_of({"a": [1, 2, 3]}, days=0), PARAMS)
    assert costliest_jobs(log_of({"a": [1, 2, 3]}, days=0), PARAMS, days=1)["runs_per_day"].tolist() == [3]


def test_missing_columns_and_keys_of_other_instances_are_refused():
    runs = log_of({"a": [1, 2, 6]})
    with pytest.raises(BadInput, match="no column runtime_s"):
        costliest_jobs(runs.drop(columns="runtime_s"), PARAMS)
    with pytest.raises(BadInput, match="keys: 2 of them; expected one for each of the 1 instances"):
        costliest_jobs(runs, PARAMS, predicted=past([1.0]), keys=["a", "b"])
