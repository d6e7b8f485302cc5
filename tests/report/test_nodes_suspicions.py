"""The figure of suspicions over time: what is suspicious lies above the line, whatever the threshold is."""

import numpy as np
import pandas as pd
import pytest

from tasks.report.nodes_suspicions import LEAST, MOST, Suspicions, draw_suspicions, ways_to_threshold
from tasks.report.style import WIDE_IN


def ways(scores, threshold):
    return ways_to_threshold(np.array(scores, dtype=float), np.full(len(scores), float(threshold)))


def test_the_usual_score_is_0_and_the_threshold_1():
    assert ways([1.0, 1.0, 1.0, 3.0, 5.0], 3.0).tolist() == [0, 0, 0, 1, 2]


@pytest.mark.parametrize(
    ("scores", "threshold"),
    [([0.0, 0.0, 0.0, 0.4, 7.0], 0.0), ([-5.0, -4.0, -3.0, -1.0, 2.0], -2.0), ([1.0, 2.0, 3.0, 4.0, 5.0], 0.5)],
)
def test_a_threshold_of_0_or_less_parts_the_suspicious_from_the_others(scores, threshold):
    found = ways(scores, threshold)
    assert np.isfinite(found).all()
    assert ((found > 1) == (np.array(scores) > threshold)).all()
    assert (np.diff(found) >= 0).all()


def test_nothing_lies_above_a_threshold_that_nothing_reaches():
    assert (ways([1.0, 2.0], np.inf) < 1).all()
    assert ways([0.0, 0.0], 0.0).tolist() == [1, 1]


def test_every_execution_is_drawn_on_its_side_of_the_line():
    scores = np.array([0.0] * 8 + [0.5, 9.0])
    rows = pd.DataFrame(
        {
            "node": "a", "is_emulated": False, "started_at": pd.date_range("2026-01-01", periods=10, freq="min"),
            "score": scores, "threshold": 0.0, "is_suspicious": scores > 0, "is_stressed": False,
        }
    )  # fmt: skip
    [axes] = draw_suspicions(Suspicions("changepoint", rows), WIDE_IN).axes
    dots = [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines if line.get_marker() == "o"]
    assert [len(one) for one in dots] == [8, 2]
    assert (dots[0] <= 1).all() and (dots[1] > 1).all()
    assert min(dots[0]) >= LEAST and max(dots[1]) <= MOST
