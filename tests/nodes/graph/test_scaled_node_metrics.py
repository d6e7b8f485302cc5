import numpy as np
import pytest
from pydantic import ValidationError

from tasks.nodes.perona.inputs import (
    NodeMetrics,
    NodeMetricScales,
    inverse_difference,
    learn_scales,
    scale_node_metrics,
)


def told_of(before, during):
    before, during = np.array(before, dtype=float), np.array(during, dtype=float)
    return NodeMetrics(tuple(f"metric-{at}/p50" for at in range(before.shape[1])), before, during)


def drawn(seed=0, n=400):
    values = np.random.default_rng(seed).lognormal(3, 2, size=(2, n, 2))
    return told_of(*values)


def test_the_papers_inverse_has_the_values_worked_out_by_hand():
    found = inverse_difference(np.array([0.0, 1.0, 0.249]), np.array([1.0, 1.0, 0.099]))
    assert found.tolist() == pytest.approx([1 / 1.001 - 1000, 0.0, 10.0 - 4.0])


def test_the_papers_difference_lies_between_0_and_1_in_training():
    told = drawn()
    before, during = scale_node_metrics(told, learn_scales(told, "paper"))
    assert before.shape == (400, 0)
    assert during.min(axis=0).tolist() == [0.0, 0.0]
    assert during.max(axis=0).tolist() == [1.0, 1.0]


def test_in_the_papers_variant_missing_is_no_change():
    told = told_of([[1.0], [1.0], [2.0], [np.nan]], [[0.5], [2.0], [2.0], [2.0]])
    _, during = scale_node_metrics(told, learn_scales(told, "paper"))
    assert during[3, 0] == during[2, 0]
    assert 0 < during[2, 0] < 1


def test_ours_have_zero_mean_and_unit_deviation_over_both_windows_in_training():
    rng = np.random.default_rng(0)
    told = told_of(*rng.uniform(0, 100, size=(2, 500, 2)))
    both = np.vstack(scale_node_metrics(told, learn_scales(told, "ours")))
    assert both.dtype == np.float32
    assert both.mean(axis=0) == pytest.approx(0, abs=1e-5)
    assert both.std(axis=0) == pytest.approx(1, abs=1e-5)


def test_ours_say_the_same_in_bytes_and_in_megabytes():
    told = drawn()
    in_mega = NodeMetrics(told.columns, told.before / 1e6, told.during / 1e6)
    found = scale_node_metrics(told, learn_scales(told, "ours"))
    again = scale_node_metrics(in_mega, learn_scales(in_mega, "ours"))
    assert found[0] == pytest.approx(again[0], abs=1e-5)
    assert found[1] == pytest.approx(again[1], abs=1e-5)


def test_missing_is_0_and_outliers_are_drawn_in():
    scales = learn_scales(drawn(), "ours")
    before, during = scale_node_metrics(told_of([[np.nan, 1e300]], [[0.0, np.nan]]), scales)
    assert before[0, 0] == 0.0
    assert 4 < before[0, 1] < 10
    assert during[0, 1] == 0.0


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_what_does_not_vary_or_was_never_sampled_is_dropped(variant):
    values = np.array([[5.0, np.nan, 1.0], [5.0, np.nan, 2.0]])
    scales = learn_scales(told_of(values, values[::-1]), variant)
    assert scales.columns == ("metric-2/p50",)
    assert scales.metrics == ("metric-2",)


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_without_node_metrics_there_are_no_columns(variant):
    scales = learn_scales(told_of(np.empty((3, 0)), np.empty((3, 0))), variant)
    assert scales.columns == scales.metrics == ()
    before, during = scale_node_metrics(told_of(np.empty((5, 0)), np.empty((5, 0))), scales)
    assert before.shape == during.shape == (5, 0)
    assert learn_scales(told_of(np.empty((0, 2)), np.empty((0, 2))), variant).columns == ()


def test_scales_of_different_lengths_are_refused():
    with pytest.raises(ValidationError, match="expected one number for each column"):
        NodeMetricScales(variant="ours", columns=("a/p10",), magnitude=(1.0,), centre=(), spread=(1.0,))
