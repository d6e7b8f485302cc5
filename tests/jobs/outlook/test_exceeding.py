"""The predicted chance to exceed a time, beside the plain history, and the time limits that a run stays under."""

import numpy as np
import pytest

from tasks.errors import BadInput, BadSetting
from tasks.jobs.binned import Binned
from tasks.jobs.empirical import Empirical, gather_history
from tasks.jobs.outlook.exceeding import chances_beside_history, chances_to_exceed
from tasks.jobs.outlook.limits import time_limits
from tasks.jobs.outlook.params import OutlookParams

TEN = np.arange(1.0, 11.0)


def past(*histories):
    groups = np.repeat(np.arange(len(histories)), [len(h) for h in histories])
    return Empirical(gather_history(np.concatenate(histories), groups), np.arange(len(histories)))


def even(low_s, high_s, *medians_s):
    """Evenly spread from low to high times the median."""
    n = len(medians_s)
    return Binned([low_s, high_s], np.ones((n, 1)), np.array(medians_s), "ratio")


def test_a_run_spread_evenly_from_5_to_15_s_exceeds_12_s_with_0_3():
    assert chances_to_exceed(even(0.5, 1.5, 10.0), 12) == pytest.approx([0.3])


def test_a_time_equal_to_the_longest_run_is_not_exceeded_as_in_the_plain_history():
    assert chances_to_exceed(past(TEN), 10) == pytest.approx([0.0])
    assert chances_to_exceed(past(TEN), 9) == pytest.approx([0.1])


@pytest.mark.parametrize("predicted", [past(TEN, TEN * 3), even(0, 2, 5.0, 50.0)], ids=["past", "even"])
def test_the_chance_never_rises_with_the_time(predicted):
    found = chances_to_exceed(predicted, np.broadcast_to(np.linspace(0, 120, 200), (2, 200)))
    assert (np.diff(found, axis=1) <= 1e-12).all()
    assert (found >= 0).all() and (found <= 1).all()


def test_each_instance_can_be_asked_its_own_time():
    assert chances_to_exceed(past(TEN, TEN), np.array([5.0, 8.0])) == pytest.approx([0.5, 0.2])


def test_the_plain_history_stands_beside_the_prediction_and_says_whether_it_agrees():
    near, far, fresh = chances_beside_history(even(0, 1, 10.0, 1000.0, 10.0), 9, [TEN, TEN, None])
    assert (near.predicted, near.history.share, near.agrees) == (pytest.approx(0.1), 0.1, True)
    # Wilson, 90 %, of 1 in 10: 0.0226 to 0.3477
    assert (far.predicted, far.agrees) == (pytest.approx(0.991), False)
    assert (fresh.history, fresh.agrees) == (None, None)


@pytest.mark.parametrize("time_s", [-1.0, float("nan"), float("inf")])
def test_what_is_no_time_is_refused(time_s):
    with pytest.raises(BadSetting, match="expected a number of seconds, 0 or more"):
        chances_to_exceed(past(TEN), time_s)


def test_times_for_another_number_of_instances_are_refused():
    with pytest.raises(BadSetting, match=r"time: shape \(3,\); expected one time, \(1,\)"):
        chances_to_exceed(past(TEN), np.ones(3))


def test_limits_of_ten_past_runs_are_their_order_statistics():
    found = time_limits(past(TEN, TEN * 2), ["a", "b"], OutlookParams(levels=(0.9, 0.5)))
    assert found.columns.tolist() == ["group_key", "under_50_s", "under_90_s"]
    assert found.to_numpy().tolist() == [["a", 5.0, 9.0], ["b", 10.0, 18.0]]


@pytest.mark.parametrize("predicted", [past(TEN, TEN), even(0, 2, 5.0, 5.0)], ids=["past", "even"])
def test_limits_rise_with_the_level_and_are_named_by_it(predicted):
    found = time_limits(predicted, ["a", "b"], OutlookParams(levels=(0.5, 0.9, 0.95, 0.99, 0.999)))
    assert found.columns[-1] == "under_99.9_s"
    assert (np.diff(found.iloc[:, 1:].to_numpy(float), axis=1) >= 0).all()


def test_the_next_run_stays_under_its_limits_as_often_as_promised():
    rng = np.random.default_rng(4)
    shape = rng.dirichlet(np.ones(12))
    predicted = Binned(np.linspace(0, 3, 13), np.tile(shape, (20_000, 1)), np.full(20_000, 40.0), "ratio")
    limits = time_limits(predicted, ["job"] * 20_000, OutlookParams())
    runs = predicted.sample(rng, 1)[:, 0]
    for level, column in zip((0.5, 0.9, 0.95, 0.99), limits.columns[1:], strict=True):
        assert (runs <= limits[column]).mean() == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 20_000))


def test_limits_of_no_instance_are_an_empty_table_with_the_same_columns():
    none = past(TEN).rows(slice(0, 0))
    assert time_limits(none, [], OutlookParams()).columns.tolist()[1:] == [
        "under_50_s", "under_90_s", "under_95_s", "under_99_s"
    ]  # fmt: skip


def test_keys_that_are_not_one_an_instance_are_refused():
    with pytest.raises(BadInput, match="keys: 2 of them; expected one for each of the 1 instances"):
        time_limits(past(TEN), ["a", "b"], OutlookParams())


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_that_is_no_probability_is_refused(level):
    with pytest.raises(ValueError, match="levels"):
        OutlookParams(levels=(0.5, level))
