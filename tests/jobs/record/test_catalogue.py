"""When jobs are submitted: each schedule at its own rate, inside its stretch of days, decided by the generator."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.jobs.record.catalogue import SCHEDULES, submit_days

DAYS, FIRST = 400, 30


@pytest.fixture
def job_of(run_of):
    return lambda schedule: replace(run_of().job, schedule=schedule, hour=9.0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_times_stand_in_order_inside_their_days(job_of, schedule):
    times = submit_days(job_of(schedule), FIRST, DAYS, np.random.default_rng(1))
    assert times == sorted(times)
    assert FIRST <= times[0] <= times[-1] < FIRST + DAYS
    assert times == submit_days(job_of(schedule), FIRST, DAYS, np.random.default_rng(1))
    assert times != submit_days(job_of(schedule), FIRST, DAYS, np.random.default_rng(2))


@pytest.mark.parametrize(("schedule", "a_day"), [("daily", 1), ("twice_daily", 2), ("six_hourly", 4)])
def test_a_regular_job_keeps_its_hours(job_of, schedule, a_day):
    times = submit_days(job_of(schedule), FIRST, DAYS, np.random.default_rng(1))
    assert len(times) == pytest.approx(a_day * DAYS, abs=1)  # the last one may slip out of the stretch
    late = np.array(times) * a_day % 1 / a_day - (9 / 24) % (1 / a_day)
    assert np.all((late >= -1e-9) & (late < 0.05))  # days after the hour that its owner chose


def test_bursts_come_many_at_a_time_and_single_runs_do_not(job_of):
    gaps = {
        schedule: np.diff(submit_days(job_of(schedule), FIRST, DAYS, np.random.default_rng(1)))
        for schedule in ("bursty", "ad_hoc")
    }
    assert np.mean(gaps["bursty"] < 0.05) > 0.7
    assert np.mean(gaps["ad_hoc"] < 0.05) < 0.3


def test_the_ranges_of_two_periods_do_not_overlap(job_of):
    rng = np.random.default_rng(1)
    before, after = submit_days(job_of("bursty"), 0, 10, rng), submit_days(job_of("bursty"), 10, 10, rng)
    assert all(at < 10 for at in before)
    assert all(10 <= at < 20 for at in after)
