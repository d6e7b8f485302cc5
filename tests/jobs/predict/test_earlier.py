"""Which earlier runs a row knows, and sums, spreads and quantiles over exactly these."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.errors import BadInput
from tasks.jobs.predict.earlier import earlier_runs

START = pd.Timestamp("2026-01-01")


def log(*rows):
    """(group, submitted, ended, x), times in seconds after the start; the runtime is what lies between."""
    frame = pd.DataFrame(rows, columns=["group_key", "submitted_at", "ended_at", "x"])
    frame = frame.assign(runtime_s=(frame["ended_at"] - frame["submitted_at"]).astype(float))
    for column in ("submitted_at", "ended_at"):
        frame[column] = START + pd.to_timedelta(frame[column].astype(float), unit="s")
    return frame


def known(runs, past, place):
    """The rows of `past` that row `place` may know, by the rule itself, in the order of their ends."""
    row = runs.iloc[place]
    is_known = (past["group_key"] == row["group_key"]) & (past["ended_at"] < row["submitted_at"])
    return past[is_known].sort_values(["ended_at", "runtime_s", "submitted_at"], kind="stable")


logs = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 20), st.integers(0, 8), st.integers(-3, 3) | st.none()),
    min_size=1,
    max_size=25,
).map(lambda rows: log(*[(g, at, at + runtime, np.nan if x is None else x) for g, at, runtime, x in rows]))


def test_a_run_that_ends_at_the_submission_is_not_known_yet():
    past = log(("a", 0, 10, 1.0), ("a", 1, 10, 2.0), ("a", 2, 9, 4.0), ("b", 0, 1, 8.0))
    rows = log(("a", 9, 99, 0), ("a", 10, 99, 0), ("a", 11, 99, 0), ("c", 99, 100, 0))
    earlier = earlier_runs(rows, past)
    assert earlier.n.tolist() == [0, 1, 3, 0]
    assert earlier.sums(earlier.values("x")[:, None])[:, 0].tolist() == [0, 4, 7, 0]


def test_of_runs_that_end_together_all_are_known_and_the_longest_is_the_last():
    past = log(("a", 2, 9, 7.0), ("a", 0, 9, 9.0), ("a", 5, 9, 4.0))
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        earlier = earlier_runs(log(("a", 10, 11, 0)), past.iloc[order])
        assert earlier.n.tolist() == [3]
        assert earlier.at_last(earlier.values("x")).tolist() == [9]


def test_a_run_whose_end_stands_before_its_submission_does_not_know_itself():
    runs = log(("a", 50, 40, 1.0))
    runs["runtime_s"] = 10.0
    assert earlier_runs(runs, runs).n.tolist() == [0]


def test_runs_without_an_end_or_a_runtime_and_rows_without_a_submission_or_a_job_count_for_nothing():
    past = log(("a", 0, 1, 1.0), ("a", 0, 1, 1.0), ("a", 0, 1, 1.0), (None, 0, 1, 1.0))
    past.loc[0, "ended_at"] = pd.NaT
    past.loc[1, "runtime_s"] = np.nan
    rows = log(("a", 5, 6, 0), ("a", 5, 6, 0), (None, 5, 6, 0))
    rows.loc[1, "submitted_at"] = pd.NaT
    earlier = earlier_runs(rows, past)
    assert earlier.n.tolist() == [1, 0, 0]
    assert earlier.last.tolist() == [0, -1, -1]


def test_a_missing_column_is_named():
    with pytest.raises(BadInput, match="past: no column ended_at; expected a frame with group_key, submitted_at"):
        earlier_runs(log(("a", 0, 1, 0)), log(("a", 0, 1, 0)).drop(columns="ended_at"))


@settings(max_examples=40, deadline=None)
@given(logs, logs, st.integers(1, 4))
def test_every_figure_is_that_of_the_known_runs_alone(runs, past, window):
    earlier = earlier_runs(runs, past)
    x = earlier.values("x")
    mean, sd = earlier.mean_sd(x)
    median = earlier.quantile(x, 0.5, window=window)
    quartile = earlier.quantile(earlier.values("runtime_s"), 0.25, window=window)
    last_sum = earlier.sums(np.nan_to_num(x)[:, None], window=window)[:, 0]
    for place in range(len(runs)):
        mine = known(runs, past, place)
        assert earlier.n[place] == len(mine)
        np.testing.assert_allclose(mean[place], mine["x"].mean(), atol=1e-12)
        np.testing.assert_allclose(sd[place], mine["x"].std(), atol=1e-9)
        np.testing.assert_allclose(quartile[place], mine["runtime_s"].tail(window).quantile(0.25))
        if not mine.duplicated(["ended_at", "runtime_s", "submitted_at"]).any():  # else the last ones are not defined
            np.testing.assert_allclose(median[place], mine["x"].tail(window).median())
            np.testing.assert_allclose(last_sum[place], mine["x"].tail(window).sum(), atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(logs, st.sampled_from([0.3, 1.0, 7.0]))
def test_the_recent_mean_is_the_exponentially_weighted_mean_of_pandas(past, half_life):
    rows = log(("a", 99, 100, 0), ("b", 99, 100, 0))
    earlier = earlier_runs(rows, past)
    found = earlier.recent_mean(earlier.values("runtime_s"), half_life=half_life)
    for place in range(2):
        mine = known(rows, past, place)["runtime_s"]
        expected = mine.ewm(halflife=half_life).mean().iloc[-1] if len(mine) else np.nan
        np.testing.assert_allclose(found[place], expected)


def test_the_recent_mean_of_a_long_history_still_ends_at_its_last_runs():
    runs = log(*[("a", i, i + (1 if i < 5000 else 3), 0.0) for i in range(5200)])
    earlier = earlier_runs(log(("a", 9999, 10_000, 0)), runs)
    assert earlier.recent_mean(earlier.values("runtime_s"), half_life=10.0)[0] == pytest.approx(3, abs=1e-5)


def test_small_differences_between_large_numbers_keep_their_spread():
    runs = log(*[("a", i, i + 1, 1e15 + i % 2) for i in range(1000)])
    _, sd = (earlier := earlier_runs(log(("a", 9999, 10_000, 0)), runs)).mean_sd(earlier.values("x"))
    assert sd[0] == pytest.approx(0.5002502, rel=1e-6)
