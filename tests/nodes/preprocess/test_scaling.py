import numpy as np
import pytest

from tasks.nodes.preprocess.fitting import learn_scale, robust_width, scaled, softly_clipped
from tasks.nodes.preprocess.selection import spread_of


def learn(values, sign=1, scaling="log_ratio", imputation="neutral"):
    values = np.array(values, dtype=float)
    spread = spread_of(values)
    assert spread is not None
    return learn_scale(values, spread, sign, scaling, imputation)


def z(scale, values, sign=1):
    values = np.array(values, dtype=float)
    ones = np.ones(len(values))
    return scaled(values, sign * ones, ones * scale.is_logarithmic > 0, scale.centre * ones, scale.spread * ones)


def test_half_and_double_lie_equally_far_from_the_median_on_the_logarithmic_scale() -> None:
    scale = learn([90, 95, 100, 105, 110])
    found = z(scale, [50, 100, 200])
    assert found[1] == 0
    assert found[0] == pytest.approx(-found[2])


def test_five_percent_less_moves_a_slow_machine_as_far_as_a_fast_one() -> None:
    """On a linear scale the spread between machines of 0.2 and 10 Gbit/s would hide every loss of the slow one."""
    scale = learn([0.2] * 10 + [1.0] * 10 + [10.0] * 10)
    slow, fast = z(scale, [0.2, 0.19]), z(scale, [10.0, 9.5])
    assert slow[0] - slow[1] == pytest.approx(fast[0] - fast[1])


@pytest.mark.parametrize("values", [[-1, 2, 3, 4], [0, 0, 0, 1, 2]])
def test_a_metric_that_reaches_nothing_is_scaled_without_a_logarithm(values) -> None:
    assert not learn(values).is_logarithmic


def test_a_few_zeros_among_many_values_leave_the_scale_logarithmic_and_end_at_the_limit() -> None:
    scale = learn([0.0] + [float(one) for one in range(50, 150)])
    assert scale.is_logarithmic
    assert softly_clipped(z(scale, [0.0]), 4, 10)[0] == -10
    assert softly_clipped(z(scale, [0.0], sign=-1), 4, 10)[0] == 10  # a latency below what the tool can print


def test_the_neutral_value_is_where_the_scale_has_its_zero() -> None:
    for scaling in ("log_ratio", "robust"):
        scale = learn([1, 2, 3, 10], scaling=scaling)
        assert scale.fill == 2.5
        assert z(scale, [scale.fill])[0] == 0


def test_a_spread_is_found_even_if_most_values_are_equal() -> None:
    assert robust_width(np.array([5.0] * 8 + [6.0] * 2)) == pytest.approx(1 / 3.2897072539)
    assert robust_width(np.array([5.0] * 99 + [6.0])) == pytest.approx(np.sqrt(0.01 * 0.99))
    assert robust_width(np.array([5.0, 5.0])) == 0


def test_one_outlier_in_a_hundred_does_not_move_the_scale_of_the_others() -> None:
    values = np.linspace(90, 110, 100)
    calm, shaken = learn(values), learn([*values[:-1], 1e9])
    assert shaken.centre == calm.centre
    assert shaken.spread == pytest.approx(calm.spread, rel=1e-6)
    theirs = learn([*values[:-1], 1e9], scaling="min_max")
    assert z(theirs, values[:-1]).max() < 1e-6  # the authors' scale: all that was not the outlier is 0


def test_soft_clipping_is_the_identity_up_to_its_start_and_continuous_there() -> None:
    inside = np.linspace(-4, 4, 9)
    assert softly_clipped(inside, 4, 10).tolist() == inside.tolist()
    around = softly_clipped(np.array([4 - 1e-6, 4 + 1e-6]), 4, 10)
    assert np.diff(around)[0] == pytest.approx(2e-6, rel=1e-3)  # slope 1 on both sides


def test_soft_clipping_keeps_the_order_and_the_limit() -> None:
    far = np.concatenate([np.linspace(0, 50, 500), np.logspace(2, 8, 100)])
    found = softly_clipped(np.concatenate([-far[::-1], far[1:]]), 4, 10)
    assert (np.diff(found) > 0).all()
    assert np.abs(found).max() < 10
    assert softly_clipped(np.array([np.inf, -np.inf]), 4, 10).tolist() == [10, -10]
