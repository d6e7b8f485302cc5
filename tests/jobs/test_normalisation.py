"""Which median a run is compared with, and that nothing of its future is in it."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.errors import BadInput
from tasks.jobs.normalisation import (
    historic_medians,
    normalise,
)
from tasks.jobs.shape_params import NormalisationParams

PARAMS = NormalisationParams()
START = pd.Timestamp("2026-01-01")


def runs(*rows):
    """(group, submitted, ended, runtime), times in seconds after the start."""
    frame = pd.DataFrame(rows, columns=["group_key", "submitted_at", "ended_at", "runtime_s"])
    for column in ("submitted_at", "ended_at"):
        frame[column] = START + pd.to_timedelta(frame[column].astype(float), unit="s")
    return frame


def test_the_median_of_the_period_before_wins_and_stays_as_it_is():
    found = historic_medians(runs(("a", 0, 5, 5.0), ("a", 10, 99, 89.0)), {"a": 7.0}, PARAMS)
    assert found["median_s"].tolist() == [7, 7]
    assert found["median_source"].tolist() == ["history", "history"]


def test_a_new_job_takes_the_median_of_its_runs_that_had_ended():
    log = runs(
        ("a", 0, 10, 10.0),  # nothing before
        ("a", 10, 40, 30.0),  # submitted when the first ended, not after: still nothing
        ("a", 11, 31, 20.0),  # 10
        ("a", 35, 36, 1.0),  # 10 and 20 had ended: 15
        ("b", 50, 60, 10.0),  # another job
        ("a", 50, 60, 10.0),  # 10, 20, 1 and 30 had ended: 15
    )
    found = historic_medians(log, {}, PARAMS)
    assert found["median_s"].fillna(-1).tolist() == [-1, -1, 10, 15, -1, 15]
    assert found["median_source"].tolist() == ["none", "none", "before", "before", "none", "before"]


def test_runs_that_ended_together_all_count():
    log = runs(("a", 0, 10, 1.0), ("a", 0, 10, 2.0), ("a", 0, 10, 30.0), ("a", 11, 12, 1.0))
    assert historic_medians(log, {}, PARAMS)["median_s"].iloc[3] == 2


def test_fewer_than_the_needed_runs_before_count_as_none():
    log = runs(("a", 0, 1, 1.0), ("a", 2, 3, 3.0), ("a", 4, 5, 1.0))
    found = historic_medians(log, {}, NormalisationParams(min_before=2))
    assert found["median_s"].fillna(-1).tolist() == [-1, -1, 2]


def test_predictions_fill_only_what_nothing_else_knows():
    log = runs(("a", 0, 1, 1.0), ("a", 2, 3, 3.0), ("b", 4, 5, 1.0), ("c", 4, 5, 1.0)).set_index(pd.Index([7, 7, 8, 8]))
    by_array = historic_medians(log, {"c": 9.0}, PARAMS, predicted=[50.0, 60.0, np.nan, 80.0])
    assert by_array["median_s"].fillna(-1).tolist() == [50, 1, -1, 9]
    assert by_array["median_source"].tolist() == ["predicted", "before", "none", "history"]
    seen = []
    by_function = historic_medians(
        log, {"c": 9.0}, PARAMS, predicted=lambda rows: [seen.append(list(rows["group_key"])) or 5.0] * len(rows)
    )
    assert seen == [["a", "b"]]
    assert by_function["median_s"].tolist() == [5, 1, 5, 9]


def test_medians_that_no_runtime_can_have_count_as_absent():
    log = runs(("a", 0, 1, 1.0), ("b", 0, 1, 1.0), ("c", 0, 1, 1.0))
    found = historic_medians(log, {"a": np.nan, "b": -1.0, "c": np.inf}, PARAMS)
    assert found["median_source"].tolist() == ["none"] * 3


def test_runs_without_end_runtime_or_submission_are_no_history_and_have_none():
    log = runs(("a", 0, np.nan, 1.0), ("a", 0, 1, np.nan), ("a", 0, 1, np.inf), ("a", 5, 6, 1.0), ("a", np.nan, 9, 1.0))
    assert historic_medians(log, {}, PARAMS)["median_source"].tolist() == ["none"] * 5


def test_past_runs_may_come_from_another_frame():
    past = runs(("a", 0, 1, 4.0))[["group_key", "ended_at", "runtime_s"]]
    asked = runs(("a", 2, 3, 9.0), ("b", 2, 3, 9.0))[["group_key", "submitted_at"]]
    assert historic_medians(asked, {}, PARAMS, past=past)["median_s"].fillna(-1).tolist() == [4, -1]


def test_no_runs_have_no_medians():
    assert historic_medians(runs(), {}, PARAMS).shape == (0, 2)


ROWS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=25
)


@settings(max_examples=25, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_median_is_that_of_a_plain_loop_in_any_order_of_rows(rows, random):
    log = runs(*[(group, at, at + length, float(length + extra)) for group, at, length, extra in rows])
    for _ in range(2):
        expected = [
            log.loc[(log["group_key"] == run.group_key) & (log["ended_at"] < run.submitted_at), "runtime_s"].median()
            for run in log.itertuples()
        ]
        found = historic_medians(log, {}, PARAMS)["median_s"]
        pd.testing.assert_series_equal(found, pd.Series(expected, log.index, dtype=float), check_names=False)
        order = list(range(len(log)))
        random.shuffle(order)
        log = log.iloc[order]


@settings(max_examples=25, deadline=None)
@given(ROWS, st.floats(0.01, 100))
def test_ratios_do_not_change_when_all_runtimes_are_scaled(rows, factor):
    log = runs(*[(group, at, at + length, float(length + extra)) for group, at, length, extra in rows])
    scaled = log.assign(runtime_s=factor * log["runtime_s"])
    ratios = [
        normalise(one["runtime_s"], historic_medians(one, {}, PARAMS)["median_s"], "ratio") for one in (log, scaled)
    ]
    assert ratios[0] == pytest.approx(ratios[1], nan_ok=True)


def test_what_is_refused_is_said_in_one_line():
    with pytest.raises(
        BadInput, match=r"^runs: no column submitted_at; expected a frame with group_key, submitted_at$"
    ):
        historic_medians(pd.DataFrame({"group_key": ["a"]}), {}, PARAMS)
    with pytest.raises(BadInput, match=r"^predicted medians: shape \(1,\); expected one a run, \(2,\)$"):
        historic_medians(runs(("a", 0, 1, 1.0), ("b", 0, 1, 1.0)), {}, PARAMS, predicted=[1.0])
