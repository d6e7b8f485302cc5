"""Measures of verdicts, and figures over fits, by hand."""

import numpy as np
import pytest

from tasks.nodes.evaluate.measures import MEASURES, delays, measures_of, put_seeds


def truth(*marks):
    return np.array(marks, dtype=bool)


def test_measures_of_ten_executions():
    """3 hits, 1 false alarm of 4 flags and 5 calm ones, 2 misses: 6/9; 8/11; (5 · 6/9 + 5 · 8/11) / 10. The second
    episode is never flagged. Equal scores are one step of the area: 3/5 at precision 3/4, all at 5/10."""
    flagged, stressed = truth(1, 1, 1, 1, 0, 0, 0, 0, 0, 0), truth(1, 1, 1, 0, 1, 1, 0, 0, 0, 0)
    found = measures_of(flagged.astype(float), flagged, stressed, np.zeros(10))
    assert set(found) == set(MEASURES)
    assert found["f1_outlier"] == pytest.approx(6 / 9) and found["f1_normal"] == pytest.approx(8 / 11)
    assert found["weighted_f1"] == pytest.approx((6 / 9 + 8 / 11) / 2)
    assert (found["false_alarms_per_1000"], found["precision"], found["recall"]) == pytest.approx((200, 3 / 4, 3 / 5))
    assert found["auprc"] == pytest.approx(3 / 5 * 3 / 4 + 2 / 5 * 5 / 10)
    assert found["delay_executions"] == 0 and found["missed_episodes"] == 0.5


def test_delay_counts_executions_from_the_first_stressed_one_to_the_flag():
    """Episodes at 1-3, flagged at 2: one execution later; and at 5, never flagged."""
    found = delays(np.zeros(6), truth(0, 1, 1, 1, 0, 1), truth(0, 0, 1, 0, 0, 0))
    assert found[0] == 1 and np.isnan(found[1])
    # two series in turn: each has one episode of two; of the second only its second execution is flagged
    assert delays(np.array([0, 1, 0, 1]), truth(1, 1, 1, 1), truth(1, 0, 0, 1)).tolist() == [0, 1]


def test_one_class_alone_has_no_measure():
    found = measures_of(np.zeros(3), truth(0, 0, 0), truth(0, 0, 0), np.zeros(3))
    assert set(found.values()) == {None}


def test_the_interval_of_three_fits_and_that_one_has_none():
    """1, 2, 3: mean 2, deviation 1; Student's t of two degrees at 97.5 % is 4.30265: 2 ± 4.30265 / √3."""
    figures = {}
    put_seeds(figures, "a", [1.0, None, 2.0, np.nan, 3.0])
    assert figures == pytest.approx({"a": 2, "a.deviation": 1, "a.low": 2 - 2.484138, "a.high": 2 + 2.484138}, abs=1e-6)
    put_seeds(figures, "alike", [0.5, 0.5])
    assert figures["alike.low"] == figures["alike.high"] == 0.5
    figures = {}
    put_seeds(figures, "one", [0.5])
    put_seeds(figures, "none", [], "nobody knows")
    assert figures == {"one": 0.5, "none": None, "none.reason": "nobody knows"}
