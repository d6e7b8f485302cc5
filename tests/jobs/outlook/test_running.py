"""A running job's chance to be done in time, and how long it still takes."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput, BadSetting
from tasks.jobs.binned import Binned, Tails
from tasks.jobs.empirical import Empirical, gather_history
from tasks.jobs.outlook.params import OutlookParams
from tasks.jobs.outlook.running import chances_in_time, remaining_s, running_outlook

PARAMS = OutlookParams()
NOW = pd.Timestamp("2026-02-01 12:00")


def past(*histories):
    groups = np.repeat(np.arange(len(histories)), [len(h) for h in histories])
    return Empirical(gather_history(np.concatenate(histories), groups), np.arange(len(histories)))


def even(n=1):
    """Evenly spread from 0 to 100 s."""
    return Binned([0.0, 1.0], np.ones((n, 1)), np.full(n, 100.0), "ratio")


def binned(n=5, seed=2):
    rng = np.random.default_rng(seed)
    edges, shapes = np.linspace(0, 4, 13), rng.dirichlet(np.ones(12), n)
    return Binned(edges, shapes, rng.lognormal(3, 1, n), "ratio", Tails(1.5))


def test_half_way_through_100_even_seconds_the_chance_for_75_is_one_half():
    # P(T <= 75 | T > 50) = 25 / 50
    assert chances_in_time(even(), 50, 75) == pytest.approx([0.5])


def test_after_three_of_ten_past_runs_the_chance_is_that_of_the_seven_left():
    runs = np.arange(1.0, 11.0)
    # longer than 3: 4 ... 10; done by 6: 4, 5 and 6
    assert chances_in_time(past(runs), 3, 6) == pytest.approx([3 / 7])


@pytest.mark.parametrize("deadline_s", [30.0, 50.0])
def test_a_deadline_that_has_passed_has_no_chance(deadline_s):
    assert chances_in_time(even(), 50, deadline_s).tolist() == [0.0]


def test_at_elapsed_0_the_chance_is_the_predicted_one_up_to_the_beyond_level():
    predicted = binned()
    asked = np.broadcast_to(np.linspace(0, 500, 300), (5, 300))
    found, cdf = chances_in_time(predicted, 0, asked), predicted.cdf(asked)
    below = asked < predicted.quantile(0.99)[:, None]
    assert found[below] == pytest.approx(cdf[below], abs=1e-12)
    assert (found <= cdf + 1e-12).all() and (found >= cdf - 0.01).all()


def test_a_job_of_no_length_is_done_at_once_if_it_has_not_begun():
    assert chances_in_time(past([0.0, 0.0, 5.0]), 0, 0) == pytest.approx([2 / 3])


def test_the_chance_rises_with_the_deadline_and_stays_a_probability():
    for elapsed_s in (0.0, 10.0, 40.0, 500.0, 1e7):
        asked = np.broadcast_to(np.geomspace(1, 1e9, 300), (5, 300))
        found = chances_in_time(binned(), elapsed_s, asked)
        assert (np.diff(found, axis=1) >= -1e-12).all()
        assert (found >= 0).all() and (found <= 1).all()
        assert found[:, -1] == pytest.approx(np.ones(5), abs=0.01)


def test_beyond_every_past_run_it_lasts_twice_as_long_with_one_quarter():
    # the longest of ten was 10 s; after 100 s: P(T > 200 | T > 100) = (100 / 200)^2
    runs = past(np.arange(1.0, 11.0))
    assert chances_in_time(runs, 100, 200) == pytest.approx([0.75])


def test_beyond_all_that_was_expected_the_longer_it_lasts_the_longer_it_may_still_last():
    found = [remaining_s(past([5.0] * 20), elapsed_s, 0.5)[0] for elapsed_s in (6, 60, 1e12)]
    # half of the runs that lasted e last less than root 2 times e
    assert found == pytest.approx([(np.sqrt(2) - 1) * e for e in (6, 60, 1e12)])


def test_a_job_predicted_to_take_no_time_has_an_answer_while_it_runs():
    runs = past([0.0] * 5)
    assert chances_in_time(runs, 4, 8) == pytest.approx([0.75])
    assert np.isfinite(chances_in_time(runs, 1e-6, 1e-5)).all()


def test_a_run_at_the_edge_of_the_prediction_is_treated_like_one_just_before():
    predicted = Binned([0.0, 1.0, 2.0], [[0.9, 0.1]], np.array([100.0]), "ratio")
    edge = predicted.quantile(0.99)[0]
    before, after = (chances_in_time(predicted, edge + step, 2 * edge)[0] for step in (-1e-6, 1e-6))
    assert before == pytest.approx(after, abs=1e-5)


def test_what_is_left_after_50_even_seconds_is_spread_over_the_other_50():
    left = remaining_s(even(), 50, np.array([[0.5, 0.9]]))
    assert left == pytest.approx(np.array([[25.0, 45.0]]))


def test_what_is_left_at_elapsed_0_is_the_predicted_quantile():
    predicted = binned()
    for q in (0.1, 0.5, 0.9, 0.98):
        assert remaining_s(predicted, 0, q) == pytest.approx(predicted.quantile(q), rel=1e-6)


def test_by_the_quantile_of_what_is_left_the_chance_to_be_done_is_its_level():
    predicted = binned()
    for elapsed_s in (1.0, 20.0, 300.0, 1e5):
        for q in (0.3, 0.9, 0.999):
            left = remaining_s(predicted, elapsed_s, q)
            assert (left >= 0).all()
            asked = (elapsed_s + left) * (1 + 1e-6)
            assert (chances_in_time(predicted, elapsed_s, asked) >= q - 1e-6).all()
            earlier = elapsed_s + left * (1 - 1e-5) - 1e-6
            assert (chances_in_time(predicted, elapsed_s, np.maximum(earlier, 0)) <= q + 1e-3).all()


def test_of_simulated_runs_that_last_long_the_stated_share_is_done_in_time():
    rng = np.random.default_rng(8)
    predicted = binned(n=1)
    runs = predicted.sample(rng, 200_000)[0]
    elapsed_s = float(np.quantile(runs, 0.6))
    left = runs[runs > elapsed_s]
    for deadline_s in np.quantile(left, [0.2, 0.5, 0.8]):
        chance = chances_in_time(predicted, elapsed_s, deadline_s)[0]
        assert (left <= deadline_s).mean() == pytest.approx(chance, abs=0.01)


@pytest.mark.parametrize(("elapsed_s", "deadline_s"), [(-1, 5), (float("nan"), 5), (1, float("inf"))])
def test_what_is_no_time_is_refused(elapsed_s, deadline_s):
    with pytest.raises(BadSetting, match="expected a number of seconds, 0 or more"):
        chances_in_time(even(), elapsed_s, deadline_s)


def test_a_run_with_two_ages_is_refused():
    with pytest.raises(BadInput, match="a run has one age"):
        chances_in_time(even(), np.ones((1, 2)), 5)


def running(*minutes_ago):
    starts = [NOW - pd.Timedelta(minutes=m) for m in minutes_ago]
    n = len(starts)
    return pd.DataFrame({"run_id": [f"r{i}" for i in range(n)], "group_key": "etl", "started_at": starts})


def test_each_running_job_has_its_age_its_chance_and_what_is_left():
    frame = running(1, 1, 0.5)
    deadlines = pd.Series([NOW + pd.Timedelta(seconds=20), pd.NaT, NOW - pd.Timedelta(seconds=1)])
    found = running_outlook(frame, even(3), NOW, PARAMS, deadlines_at=deadlines)
    assert found["elapsed_s"].tolist() == [60, 60, 30]
    assert found["chance_so_long"].tolist() == pytest.approx([0.4, 0.4, 0.7])
    assert found["chance_in_time"].tolist() == pytest.approx([0.5, np.nan, 0.0], nan_ok=True)
    assert found["left_50_s"].tolist() == pytest.approx([20, 20, 35])
    assert not found["is_beyond"].any()


def test_a_run_beyond_all_that_was_expected_says_so():
    found = running_outlook(running(10), even(), NOW, PARAMS).iloc[0]
    assert found["is_beyond"]
    assert found["left_50_s"] == pytest.approx(600 * (np.sqrt(2) - 1))
    # the law begins where 99 % of the runs are done, at 99 s
    assert found["chance_so_long"] == pytest.approx(0.01 * (99 / 600) ** 2)


def test_a_start_after_now_counts_as_just_started():
    assert running_outlook(running(-5), even(), NOW, PARAMS)["elapsed_s"].tolist() == [0.0]


def test_no_running_job_gives_an_empty_table():
    assert running_outlook(running(), even(0), NOW, PARAMS).empty


def test_a_run_without_a_start_is_refused():
    frame = running(1).assign(started_at=pd.NaT)
    with pytest.raises(BadInput, match="run r0 has no start; expected the start of each; leave out pending runs"):
        running_outlook(frame, even(), NOW, PARAMS)


def test_predictions_of_other_runs_are_refused():
    with pytest.raises(BadInput, match="1 rows, 2 predictions"):
        running_outlook(running(1), even(2), NOW, PARAMS)
    with pytest.raises(BadInput, match="no column started_at"):
        running_outlook(running(1).drop(columns="started_at"), even(), NOW, PARAMS)
