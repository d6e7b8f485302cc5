"""The chance that the next run exceeds a time, and the time that it stays under."""

import numpy as np
import pytest

from tasks.errors import BadSetting, NotFound
from tasks.jobs.exceedance import LEVELS, bound, chance_to_exceed, next_run
from tasks.jobs.params import SummaryParams

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


def test_the_chance_never_rises_with_the_time():
    shares = [chance_to_exceed(TEN, time_s).share for time_s in np.linspace(0, 12, 50)]
    assert shares == sorted(shares, reverse=True)


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


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5])
def test_a_level_that_is_no_probability_is_refused(level):
    with pytest.raises(BadSetting, match="expected a probability between 0 and 1"):
        bound(TEN, level)


def test_a_job_is_answered_for_from_its_own_finished_runs(job_log):
    rows = [{"runtime_s": float(x), "group_key": "etl daily"} for x in range(1, 11)]
    rows += [{"runtime_s": 500.0, "group_key": "etl daily", "status": "failed"}]
    rows += [{"runtime_s": 1000.0, "group_key": "other"}]
    found = next_run(job_log(rows), "log", "daily", SummaryParams(), time_s=9)
    assert (found.group_key, found.n, found.quantiles_s[0.5]) == ("etl daily", 10, 5.5)
    assert found.chance is not None
    assert found.chance.k == 1
    assert [(one.level, one.time_s) for one in found.bounds] == list(zip(LEVELS, [6, 10, None, None], strict=True))


def test_without_a_time_there_is_no_chance(job_log):
    assert next_run(job_log([{"runtime_s": 1.0}]), "log", "job", SummaryParams()).chance is None


def test_a_job_that_never_finished_says_so(job_log):
    warehouse = job_log([{"runtime_s": 1.0, "status": "failed"}])
    with pytest.raises(NotFound, match=r"job 'job' of .* has no finished run \(status completed or unknown\)"):
        next_run(warehouse, "log", "job", SummaryParams())
