import numpy as np
import pytest

from tasks.workloads.normalisation import equation_7, learn_scale, normalise, zscore
from tasks.workloads.normalisation_params import NormalisationParams
from tasks.workloads.telemetry import Counter, Telemetry

TRAINING = NormalisationParams(normalisation="training")


def run(values, counters):
    values = np.asarray(values, dtype=float)
    return Telemetry("r", counters, np.arange(len(values), dtype=float), values)


def test_equation_7_by_hand():
    """1, 2, 3, 6: mean 3, deviation sqrt((4 + 1 + 0 + 9) / 4)."""
    deviation = np.sqrt(3.5)
    np.testing.assert_allclose(
        equation_7(np.array([[1.0], [2.0], [3.0], [6.0]]))[:, 0], np.array([2, 1, 0, 3]) / deviation
    )


def test_equation_7_throws_the_level_away():
    values = np.random.default_rng(0).normal(size=(50, 3))
    assert (equation_7(values) ** 2).mean(axis=0) == pytest.approx(np.ones(3))
    np.testing.assert_allclose(equation_7(1000 * values + 5), equation_7(values))


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9 + 0.1])
def test_a_constant_counter_is_zero_and_not_noise_of_rounding(constant):
    assert (zscore(np.full((7, 1), constant)) == 0).all()


def test_a_missing_value_stays_missing_and_does_not_count():
    found = zscore(np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, np.nan]]))
    assert found[0, 0] == -1 and found[2, 0] == 1
    assert np.isnan(found[1, 0]) and np.isnan(found[:, 1]).all()


def test_the_learned_scale_keeps_levels_and_takes_the_logarithm_of_rates():
    counters = (Counter("disk.read_bytes", is_rate=True), Counter("memory.cached_bytes"))
    runs = [run([[0, 10], [0, 10]], counters), run([[np.expm1(2), 30], [np.expm1(2), 30]], counters)]
    scale = learn_scale(runs, counters)
    assert scale.centre.tolist() == pytest.approx([1, 20])
    assert scale.spread.tolist() == pytest.approx([1, 10])
    np.testing.assert_allclose(normalise(runs[1].values, TRAINING, scale), [[1, 1], [1, 1]])


def test_long_runs_do_not_outweigh_short_ones():
    counters = (Counter("a"),)
    scale = learn_scale([run([[0.0]], counters), run([[4.0]] * 9, counters)], counters)
    assert scale.centre[0] == 2


def test_a_counter_that_never_varied_in_training_is_zero_everywhere():
    counters = (Counter("a"),)
    scale = learn_scale([run([[0.1], [0.1], [0.1]], counters)], counters)
    assert scale.spread[0] == 0
    assert normalise(np.array([[77.0]]), TRAINING, scale)[0, 0] == 0


def test_a_value_far_outside_of_training_is_cut():
    counters = (Counter("a"),)
    scale = learn_scale([run([[0.0], [2.0]], counters)], counters)
    assert normalise(np.array([[1e6], [-1e6]]), TRAINING, scale)[:, 0].tolist() == [8, -8]


def test_training_without_a_scale_is_refused():
    with pytest.raises(ValueError, match="needs a scale"):
        normalise(np.zeros((1, 1)), TRAINING)
