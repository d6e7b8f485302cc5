import numpy as np
import pytest

from tasks.nodes.perona.graph import encode_intervals

DAY_S = 86_400.0


def test_intervals_have_the_values_worked_out_by_hand():
    # ln(1 + (e - 1)) = 1, so 2^-1; and two days at a scale of one day: 2^-ln 3 = exp(-0.69315 * 1.09861)
    found = encode_intervals(np.array([0.0, 60 * (np.e - 1), 2 * DAY_S]), [60.0, DAY_S])
    assert found[0].tolist() == [1.0, 1.0]
    assert found[1, 0] == pytest.approx(0.5, abs=1e-12)
    assert found[2, 1] == pytest.approx(0.466965, abs=1e-6)


def test_whole_days_count():
    one, two, week = encode_intervals(np.array([60.0, DAY_S + 60, 7 * DAY_S + 60]), [3600.0])[:, 0]
    assert one > two > week > 0


def test_an_interval_below_zero_counts_as_none():
    assert encode_intervals(np.array([-5.0]), [60.0]).tolist() == [[1.0]]


def test_shapes_of_intervals_are_kept():
    assert encode_intervals(np.zeros((4, 6)), [1.0, 2.0, 3.0]).shape == (4, 6, 3)
    assert encode_intervals(np.zeros((0, 6)), [1.0]).shape == (0, 6, 1)
    assert encode_intervals(np.zeros(2), []).shape == (2, 0)
