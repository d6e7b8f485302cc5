"""The parts of a log found in SQL are those of assign_periods, whatever the log looks like."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.characterise_periods import split_runs
from tasks.jobs.predict.periods import assign_periods
from tasks.jobs.predict.rows import read_runs
from tasks.jobs.predict.split_params import SplitParams
from tasks.warehouse.connection import reading

FIRST = pd.Timestamp("2026-01-01")


def parts_of(warehouse, params, source="log"):
    """The part of each run by SQL and by assign_periods, in one order."""
    with reading(warehouse) as connection:
        split_runs(connection, source, params)
        found = connection.execute("SELECT runtime_s, part FROM temp.finished ORDER BY runtime_s").fetchall()
    runs = read_runs(warehouse, source)
    expected = assign_periods(runs, params).cat.codes[runs["runtime_s"].argsort()].tolist()
    return [part for _, part in found], expected


def log_of(job_log, times, **columns):
    """A run at each time, its runtime being its number."""
    runs = pd.DataFrame({"submitted_at": times, "runtime_s": np.arange(len(times), dtype=float), **columns})
    return job_log(runs)


@pytest.mark.parametrize(
    "seconds",
    [
        np.arange(100.0),
        np.random.default_rng(0).integers(0, 40, 300),  # many at the same moment
        np.random.default_rng(1).lognormal(8, 3, 301),  # over years, uneven
        np.r_[0, 1, np.full(50, 2)],  # one moment holds nearly all
        np.r_[np.full(50, 0), 1, 2],
        np.r_[np.full(9, 0), np.full(9, 7200), np.full(2, 7201)],
        [0, 1, 2],
        [5, 5, 5, 4, 4, 3],
    ],
)
@pytest.mark.parametrize("shares", [(0.5, 0.3), (0.01, 0.01), (0.9, 0.09)])
def test_a_split_by_time_is_that_of_assign_periods(job_log, seconds, shares):
    times = FIRST + pd.to_timedelta(np.asarray(seconds, dtype=float).round(6), unit="s")
    params = SplitParams(history_share=shares[0], training_share=shares[1])
    found, expected = parts_of(log_of(job_log, times), params)
    assert found == expected
    assert set(found) == {0, 1, 2}


@pytest.mark.parametrize("use_periods", [True, False])
@pytest.mark.parametrize("names", [["D1", "D2", "D3"], ["z", "y", "x", "w"], ["a", "b"]])
def test_recorded_periods_are_those_of_assign_periods(job_log, names, use_periods):
    periods = np.repeat(names, 10).astype(object)
    periods[::7] = None
    periods[12] = names[0]  # late for its period
    times = FIRST + pd.to_timedelta(np.arange(len(periods)) % 10 + np.arange(len(periods)) // 10 * 5, unit="h")
    found, expected = parts_of(log_of(job_log, times, period=periods), SplitParams(use_periods=use_periods))
    assert found == expected


def test_a_run_before_all_recorded_periods_is_history(job_log):
    times = FIRST + pd.to_timedelta(np.arange(7), unit="h")
    found, expected = parts_of(log_of(job_log, times, period=[None, "a", "a", "b", None, "c", None]), SplitParams())
    assert found == expected == [0, 0, 0, 1, 1, 2, 2]


def test_runs_that_are_not_finished_or_what_ifs_move_no_bound(job_log):
    times = FIRST + pd.to_timedelta(np.arange(30), unit="h")
    status = np.where(np.arange(30) < 10, "failed", "completed")
    what_if = np.where(np.arange(30) >= 25, "no_spare", None)
    found, expected = parts_of(log_of(job_log, times, status=status, what_if=what_if), SplitParams())
    assert found == expected
    assert len(found) == 15


@pytest.mark.parametrize(("seconds", "n_times"), [([0, 0], 1), ([0, 0, 1], 2)])
def test_too_few_times_are_refused_as_assign_periods_refuses_them(job_log, seconds, n_times):
    warehouse = log_of(job_log, FIRST + pd.to_timedelta(seconds, unit="s"))
    with pytest.raises(BadInput, match=f"^job log: runs of {n_times} different times of submission") as told:
        parts_of(warehouse, SplitParams())
    with pytest.raises(BadInput) as expected:
        assign_periods(read_runs(warehouse, "log"), SplitParams())
    assert str(told.value) == str(expected.value)
