"""History, training and test: by share of the runs, or as a recording has them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.errors import BadInput
from tasks.jobs.predict.periods import assign_periods
from tasks.jobs.predict.split_params import SplitParams

START = pd.Timestamp("2026-01-01")


def runs_at(minutes, **columns):
    return pd.DataFrame({"submitted_at": START + pd.to_timedelta(list(minutes), unit="min"), **columns})


def parts(runs, **params):
    return "".join(assign_periods(runs, SplitParams(**params)).str[1])


def test_half_of_ten_runs_are_history_and_three_training():
    assert parts(runs_at(range(10))) == "1111122233"
    assert parts(runs_at(range(10)), history_share=0.2, training_share=0.6) == "1122222233"


def test_the_order_of_the_rows_changes_nothing_and_the_index_stays():
    runs = runs_at(range(10)).sample(frac=1, random_state=1)
    found = assign_periods(runs, SplitParams())
    pd.testing.assert_index_equal(found.index, runs.index)
    assert "".join(found.sort_index().str[1]) == "1111122233"


def test_each_period_has_a_run_however_uneven_the_log():
    assert parts(runs_at([0, *[5] * 20, 9])) == "1" + "2" * 20 + "3"
    assert parts(runs_at([*[5] * 20, 8, 9])) == "1" * 20 + "23"
    assert parts(runs_at([0, 1, *[5] * 20])) == "12" + "3" * 20


@given(st.lists(st.integers(0, 12), min_size=3, max_size=60).filter(lambda at: len(set(at)) >= 3))
def test_periods_follow_time_keep_ties_together_and_are_never_empty(minutes):
    found = assign_periods(runs_at(minutes), SplitParams())
    of_time = pd.DataFrame({"at": minutes, "part": found.astype(str)}).drop_duplicates().sort_values("at")
    assert of_time["at"].is_unique
    assert of_time["part"].is_monotonic_increasing
    assert set(of_time["part"]) == {"D1", "D2", "D3"}


def test_two_times_of_submission_are_too_few():
    with pytest.raises(BadInput, match=r"runs of 2 different times of submission; expected at least three"):
        assign_periods(runs_at([1, 1, 2, 2]), SplitParams())


def test_the_periods_of_a_recording_come_in_the_order_of_their_first_runs_and_later_ones_are_test():
    runs = runs_at(range(10), period=["z", "z", "b", "b", "z", "a", "a", "c", "c", "a"])
    assert parts(runs) == "1122133333"


def test_a_run_without_a_period_is_placed_by_its_time_and_one_before_all_is_history():
    runs = runs_at(range(8), period=[None, "a", None, "b", None, "c", None, None])
    assert parts(runs) == "11122333"


def test_periods_that_are_too_few_or_not_wanted_leave_the_split_to_shares():
    two = ["a"] * 2 + ["b"] * 8
    assert parts(runs_at(range(10), period=two)) == "1111122233"
    three = ["a"] + ["b"] + ["c"] * 8
    assert parts(runs_at(range(10), period=three)) == "1233333333"
    assert parts(runs_at(range(10), period=three), use_periods=False) == "1111122233"
    assert parts(runs_at(range(10), period=[None] * 10)) == "1111122233"


def test_shares_that_leave_no_test_are_refused():
    with pytest.raises(ValidationError, match="so that some runs are left to test"):
        SplitParams(history_share=0.7, training_share=0.3)


def test_the_answer_is_categorical_with_all_three_parts():
    found = assign_periods(runs_at(range(10)), SplitParams())
    assert list(found.cat.categories) == ["D1", "D2", "D3"]
    assert found.name == "part"
    assert np.array_equal(found.cat.codes, [0] * 5 + [1] * 3 + [2] * 2)
