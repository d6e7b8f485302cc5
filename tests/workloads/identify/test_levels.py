import numpy as np
import pytest

from tasks.workloads.identify.levels import LEVELS, filled, learn_levels, level_names, levels_of
from tasks.workloads.telemetry import Counter, Telemetry


def run(values, name="a"):
    return Telemetry("r", (Counter(name),), np.arange(float(len(values))), np.array(values, dtype=float)[:, None])


def test_the_levels_of_a_run_by_hand():
    steps = run([1, 1, 2, 2, 3, 3])  # mean 2; with one run the unit is 2
    scale = learn_levels([steps], steps.counters)
    assert scale.units.tolist() == [2]
    found = dict(zip(LEVELS, np.sinh(levels_of([steps], scale)[0]) * 2, strict=True))
    deviation = (4 / 6) ** 0.5
    expected = {"mean": 2, "deviation": deviation, "median": 2, "low": 1, "high": 3, "early": 1, "late": 3}
    assert found == pytest.approx(expected)


def test_a_counter_in_another_unit_has_the_same_levels():
    runs = [run(values) for values in ([1, 5, 2], [100, 80, 90], [3000, 1, 1])]
    scaled = [run(values) for values in ([1024, 5120, 2048], [102400, 81920, 92160], [3072000, 1024, 1024])]
    one = levels_of(runs, learn_levels(runs, runs[0].counters))
    other = levels_of(scaled, learn_levels(scaled, runs[0].counters))
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_missing_samples_do_not_count_and_missing_counters_are_typical():
    whole, gap = run([4, 4, 4, 4]), run([4, np.nan, 4, 4])
    scale = learn_levels([whole], whole.counters)
    np.testing.assert_allclose(levels_of([gap], scale), levels_of([whole], scale))
    other = levels_of([run([4, 4, 4, 4], "b")], scale)
    assert np.isnan(other).all()
    np.testing.assert_array_equal(filled(other, scale), levels_of([whole], scale))


def test_a_counter_that_is_always_zero_has_a_unit():
    idle = run([0, 0, 0])
    scale = learn_levels([idle], idle.counters)
    assert scale.units.tolist() == [1] and not levels_of([idle], scale).any()
    assert levels_of([run([7, 7, 7])], scale)[0, 0] == pytest.approx(np.arcsinh(7))


def test_names_follow_the_columns():
    names = level_names(["a", "b"])
    assert len(names) == 2 * len(LEVELS) and names[len(LEVELS)] == "b · run · mean"
    with pytest.raises(ValueError, match="no run"):
        learn_levels([], [])
