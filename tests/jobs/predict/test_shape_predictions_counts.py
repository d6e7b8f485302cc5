"""The earlier runs of each row's job, gathered block by block: as a loop would."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.jobs.predict import shape_predictions
from tasks.jobs.predict.features_earlier import earlier_runs
from tasks.jobs.predict.shape_predictions import own_counts

START = pd.Timestamp("2026-01-01")


def log(rows):
    """(group, submitted, runtime) in seconds."""
    frame = pd.DataFrame(rows, columns=["group_key", "at", "runtime_s"])
    submitted_at = START + pd.to_timedelta(frame["at"].astype(float), unit="s")
    ended_at = submitted_at + pd.to_timedelta(frame["runtime_s"].astype(float), unit="s")
    return frame.assign(submitted_at=submitted_at, ended_at=ended_at, runtime_s=frame["runtime_s"].astype(float))


logs = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30), st.integers(0, 8)), min_size=1, max_size=30)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs, logs, st.integers(1, 4), st.sampled_from([1, 3, 7, 10**6]))
def test_counts_are_those_of_a_loop_also_across_blocks(monkeypatch, runs, past, most, cells):
    monkeypatch.setattr(shape_predictions, "CELLS", cells)
    runs, past = log(runs), log(past)
    bins = np.arange(len(past)) % 4 - 1  # every fourth is not counted
    earlier = earlier_runs(runs, past)
    counts = own_counts(earlier, bins, 3, most=most)
    assert counts.shape == (len(runs), 3)
    for row, (job, at) in enumerate(zip(runs["group_key"], runs["submitted_at"], strict=True)):
        known = past[(past["group_key"] == job) & (past["ended_at"] < at)]
        known = known.sort_values(["ended_at", "runtime_s", "submitted_at"], kind="stable").tail(most)
        expected = np.bincount(bins[known.index][bins[known.index] >= 0], minlength=3)
        assert counts[row].tolist() == expected.tolist()


def test_only_the_last_runs_count():
    past = log([("a", i, 0.5) for i in range(5)])
    earlier = earlier_runs(log([("a", 99, 1)]), past)
    assert own_counts(earlier, np.array([0, 0, 0, 1, 1]), 2, most=3).tolist() == [[1, 2]]


@pytest.mark.parametrize("cells", [1, 100])
def test_rows_of_jobs_never_seen_have_no_runs(monkeypatch, cells):
    monkeypatch.setattr(shape_predictions, "CELLS", cells)
    earlier = earlier_runs(log([("new", 99, 1), ("a", 99, 1), ("new", 100, 1)]), log([("a", 0, 1)]))
    assert own_counts(earlier, np.array([1]), 2, most=9).tolist() == [[0, 0], [0, 1], [0, 0]]


def test_without_any_earlier_run_there_is_nothing_of_the_right_shape():
    earlier = earlier_runs(log([("a", 0, 1)]), log([("b", 0, 1)]))
    assert own_counts(earlier, np.zeros(1, dtype=int), 3, most=5).tolist() == [[0, 0, 0]]
