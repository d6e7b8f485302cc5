"""The next run, what it costs, and runs that go on: values by hand, properties, synthetic cases, refusals."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadSetting, NotFound
from tasks.jobs.distribution import even_steps, gather_history
from tasks.jobs.outlook import (
    LEVELS,
    bound,
    chance_beside_history,
    chance_to_exceed,
    chances_in_time,
    next_run,
    remaining_s,
    running_outlook,
)
from tasks.jobs.params import OutlookParams, SummaryParams

TEN = np.arange(1.0, 11.0)


def test_one_of_ten_runs_exceeds_nine_seconds_with_the_wilson_interval_worked_out_by_hand():
    chance = chance_to_exceed(TEN, 9)
    assert (chance.k, chance.n, chance.share) == (1, 10, 0.1)
    # z = 1.644854: centre (0.1 + z^2 / 20) / (1 + z^2 / 10) = 0.185177, half width
    # z / (1 + z^2 / 10) * root(0.1 * 0.9 / 10 + z^2 / 400) = 0.162543
    assert (chance.low, chance.high) == (pytest.approx(0.022634, abs=1e-5), pytest.approx(0.347720, abs=1e-5))


def test_a_time_that_no_run_exceeded_still_has_a_chance_above_nothing():
    chance = chance_to_exceed(TEN, 10)
    assert (chance.k, chance.low) == (0, 0)
    assert chance.high == pytest.approx(2.705543 / (10 + 2.705543), abs=1e-5)  # z^2 / (n + z^2)


@pytest.mark.parametrize("time_s", [-1.0, float("nan"), float("inf")])
def test_what_is_no_time_is_refused(time_s):
    with pytest.raises(BadSetting, match="expected a number of seconds, 0 or more"):
        chance_to_exceed(TEN, time_s)


@pytest.mark.parametrize(
    ("n", "level", "time_s", "n_needed"),
    [
        (10, 0.9, 10.0, 10),  # the 10th of 10: ceil(11 * 0.9) = 10
        (9, 0.9, None, 10),
        (20, 0.95, 20.0, 20),
        (19, 0.95, None, 20),
        (99, 0.99, None, 100),
        (100, 0.99, 100.0, 100),
        (19, 0.9, 18.0, 10),  # ceil(20 * 0.9) = 18, in binary 18.000000000000004
        (3, 0.5, 2.0, 2),
    ],
)
def test_a_bound_is_an_order_statistic_and_needs_enough_runs(n, level, time_s, n_needed):
    found = bound(np.arange(1.0, n + 1)[::-1].copy(), level)
    assert (found.time_s, found.n_needed) == (time_s, n_needed)


def test_the_next_run_stays_under_the_bound_as_often_as_promised():
    rng = np.random.default_rng(5)
    draws = np.exp(rng.normal(size=(4000, 31)))
    for level in (0.5, 0.9, 0.95):
        held = [run <= bound(past, level).time_s for past, run in zip(draws[:, :30], draws[:, 30], strict=True)]
        assert np.mean(held) > level - 3 * np.sqrt(level * (1 - level) / 4000)
        assert np.mean(held) < level + 1 / 31 + 3 * np.sqrt(level * (1 - level) / 4000)  # and not by being huge


def test_a_job_is_answered_for_from_its_own_finished_runs(job_log):
    rows = [{"runtime_s": float(x), "group_key": "etl daily"} for x in range(1, 11)]
    rows += [{"runtime_s": 500.0, "group_key": "etl daily", "status": "failed"}]
    rows += [{"runtime_s": 1000.0, "group_key": "other"}]
    found = next_run(job_log(rows), "log", "daily", SummaryParams(), time_s=9)
    assert (found.group_key, found.n, found.quantiles_s[0.5]) == ("etl daily", 10, 5.5)
    assert found.chance is not None
    assert found.chance.k == 1
    assert [(one.level, one.time_s) for one in found.bounds] == list(zip(LEVELS, [6, 10, None, None], strict=True))


def test_a_run_stopped_by_its_limit_has_exceeded_what_lies_before_it_and_says_nothing_of_what_lies_behind(job_log):
    rows = [{"runtime_s": float(x)} for x in range(1, 11)]
    rows += [{"runtime_s": 20.0, "status": "timeout"}, {"runtime_s": 8.0, "status": "timeout"}]
    rows += [{"runtime_s": 15.0, "status": "failed", "requested_runtime_s": 15.5}]
    rows += [{"runtime_s": 12.0, "status": "failed"}]
    warehouse = job_log(rows)
    chances = [next_run(warehouse, "log", "job", SummaryParams(), time_s=time_s).chance for time_s in (9, 30)]
    assert [(one.k, one.n, one.n_stopped) for one in chances] == [(3, 12, 2), (0, 10, 0)]


def test_a_job_that_never_finished_says_so(job_log):
    warehouse = job_log([{"runtime_s": 1.0, "status": "failed"}])
    with pytest.raises(NotFound, match=r"job 'job' of .* has no finished run \(status completed or unknown\)"):
        next_run(warehouse, "log", "job", SummaryParams())


def past(*histories):
    groups = np.repeat(np.arange(len(histories)), [len(h) for h in histories])
    return gather_history(np.concatenate(histories), groups)


STEPS = (np.arange(1000) + 0.5) / 1000


def even(low_s, high_s, *medians_s):
    """Evenly spread from low to high times the median."""
    return even_steps(np.array(medians_s)[:, None] * (low_s + (high_s - low_s) * STEPS))


def test_the_plain_history_stands_beside_the_prediction_and_says_whether_it_agrees():
    near, far = (chance_beside_history(9, lambda _, chance=chance: chance, TEN) for chance in (0.1, 0.991))
    assert (near.predicted, near.history.share, near.agrees) == (0.1, 0.1, True)
    assert not far.agrees  # Wilson, 90 %, of 1 in 10: 0.0226 to 0.3477


PARAMS = OutlookParams()
NOW = pd.Timestamp("2026-02-01 12:00")


def even_runs(n=1):
    """Evenly spread from 0 to 100 s."""
    return even(0.0, 1.0, *[100.0] * n)


def drawn(n=5, seed=2):
    return even_steps(np.sort(np.random.default_rng(seed).lognormal(3, 1, (n, 1000)), axis=1))


CHANCES = {  # predicted, elapsed and deadline in seconds, chance
    "half way through 100 even seconds, 25 of the 50 left": (even_runs(), 50, 75, 0.5),
    "a deadline that has passed": (even_runs(), 50, 30, 0.0),
    "a deadline that is now": (even_runs(), 50, 50, 0.0),
    "of 1 to 10 s longer than 3 s: 4, 5 and 6 of the seven left": (past(TEN), 3, 6, 3 / 7),
    "a job of no length that has not begun": (past([0.0, 0.0, 5.0]), 0, 0, 2 / 3),
    "beyond all past runs twice as long with (100 / 200) squared": (past(TEN), 100, 200, 0.75),
    "beyond all past runs, of no length": (past([0.0] * 5), 4, 8, 0.75),
    "of no length, and hardly begun": (past([0.0] * 5), 1e-6, 1e-5, 0.0),
}


@pytest.mark.parametrize(("predicted", "elapsed_s", "deadline_s", "chance"), CHANCES.values(), ids=CHANCES)
def test_the_chance_to_end_in_time_is_that_of_the_runs_that_last_as_long(predicted, elapsed_s, deadline_s, chance):
    assert chances_in_time(predicted, elapsed_s, deadline_s) == pytest.approx([chance])


def test_at_elapsed_0_the_chance_is_the_predicted_one_up_to_the_beyond_level():
    predicted, asked = drawn().rows(np.repeat(np.arange(5), 300)), np.tile(np.linspace(0, 500, 300), 5)
    found, cdf = chances_in_time(predicted, 0, asked), predicted.cdf(asked)
    below = asked < predicted.quantile(0.99)
    assert found[below] == pytest.approx(cdf[below], abs=1e-12)
    assert (found <= cdf + 1e-12).all() and (found >= cdf - 0.01).all()


def test_beyond_all_that_was_expected_the_longer_it_lasts_the_longer_it_may_still_last():
    found = [remaining_s(past([5.0] * 20), elapsed_s, [0.5])[0, 0] for elapsed_s in (6, 60, 1e12)]
    # half of the runs that lasted e last less than root 2 times e
    assert found == pytest.approx([(np.sqrt(2) - 1) * e for e in (6, 60, 1e12)])


def test_what_is_left_after_50_even_seconds_is_spread_over_the_other_50():
    left = remaining_s(even_runs(), 50, [0.5, 0.9])
    assert left == pytest.approx(np.array([[25.0, 45.0]]), abs=0.1)


def test_by_the_quantile_of_what_is_left_the_chance_to_be_done_is_its_level():
    predicted = drawn()
    for elapsed_s in (1.0, 20.0, 300.0, 1e5):
        for q in (0.3, 0.9, 0.999):
            left = remaining_s(predicted, elapsed_s, [q])[:, 0]
            assert (left >= 0).all()
            asked = (elapsed_s + left) * (1 + 1e-6)
            assert (chances_in_time(predicted, elapsed_s, asked) >= q - 1e-6).all()
            earlier = elapsed_s + left * (1 - 1e-5) - 1e-6
            assert (chances_in_time(predicted, elapsed_s, np.maximum(earlier, 0)) <= q + 1e-3).all()


def running(*minutes_ago):
    starts = [NOW - pd.Timedelta(minutes=m) for m in minutes_ago]
    n = len(starts)
    return pd.DataFrame({"run_id": [f"r{i}" for i in range(n)], "group_key": "etl", "started_at": starts})


def test_each_running_job_has_its_age_its_chance_and_what_is_left():
    frame = running(1, 1, 0.5)
    deadlines = pd.Series([NOW + pd.Timedelta(seconds=20), pd.NaT, NOW - pd.Timedelta(seconds=1)])
    found = running_outlook(frame, even_runs(3), NOW, PARAMS, deadlines_at=deadlines)
    assert found["elapsed_s"].tolist() == [60, 60, 30]
    assert found["chance_so_long"].tolist() == pytest.approx([0.4, 0.4, 0.7])
    assert found["chance_in_time"].tolist() == pytest.approx([0.5, np.nan, 0.0], nan_ok=True)
    assert found["left_50_s"].tolist() == pytest.approx([20, 20, 35], abs=0.1)
    assert not found["is_beyond"].any()


def test_a_run_beyond_all_that_was_expected_says_so():
    found = running_outlook(running(10), even_runs(), NOW, PARAMS).iloc[0]
    assert found["is_beyond"]
    assert found["left_50_s"] == pytest.approx(600 * (np.sqrt(2) - 1))
    # the law begins where 99 % of the runs are done, at 99 s
    assert found["chance_so_long"] == pytest.approx(0.01 * (99 / 600) ** 2, rel=0.01)


def test_a_start_after_now_counts_as_just_started():
    assert running_outlook(running(-5), even_runs(), NOW, PARAMS)["elapsed_s"].tolist() == [0.0]


def test_three_runs_of_1_2_and_6_s_wait_4_thirds_of_a_second_above_their_median():
    assert past([1.0, 2.0, 6.0]).mean_above(2) == pytest.approx([4 / 3])
