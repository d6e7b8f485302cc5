"""Predicted distributions at the edges: one run, constant runs, runs of no length, outer bins, and what is refused."""

import math

import numpy as np
import pytest

from tasks.jobs.binned import Binned
from tasks.jobs.empirical import Empirical
from tasks.jobs.history import gather_history
from tasks.jobs.kernels import KernelParams
from tasks.jobs.tails import Tails, fit_tails, outer_edges, without_zero_bin


def ratio(n):
    return Binned([0, 1, 2], [[0.5, 0.5]] * n, [1.0] * n, "ratio")


def test_one_past_run_is_a_sure_prediction_with_a_narrow_density():
    one = Empirical(gather_history([60.0], [0]), [0])
    assert one.crps([63.0])[0] == 3 and one.quantile(0.5)[0] == 60
    assert one.cdf([60.0])[0] == 1 and one.cdf_below([60.0])[0] == 0
    assert one.log_density([60.0])[0] > one.log_density([66.0])[0] > -20


def test_a_constant_history_is_as_one_run():
    one, many = (Empirical(gather_history([60.0] * n, [0] * n), [0]) for n in (1, 30))
    for x in (59.0, 60.0, 61.0):
        assert many.crps([x]) == pytest.approx(one.crps([x]))
        assert many.log_density([x]) == pytest.approx(one.log_density([x]))


def test_a_normal_kernel_can_be_asked_for():
    params = KernelParams(tail_df=1000, min_width=0.1)
    one = Empirical(gather_history([60.0], [0]), [0], params)
    assert one.log_density([60.0])[0] == pytest.approx(-math.log(0.1 * math.sqrt(2 * math.pi)))


def test_runs_of_no_length_keep_their_weight_in_the_steps():
    past = Empirical(gather_history([0.0, 10.0], [0, 0]), [0])
    assert past.cdf([0.0])[0] == 0.5
    only = Empirical(gather_history([10.0], [0]), [0])
    assert past.log_density([10.0])[0] == pytest.approx(only.log_density([10.0])[0] - math.log(2))
    assert np.isneginf(Empirical(gather_history([0.0], [0]), [0]).log_density([3.0])[0])


def test_a_delta_around_0_s_stays_above_0_s():
    zero = Binned([-10, 0, 10], [[0.6, 0.4]], [0.0], "delta")
    assert zero.quantile(0.5)[0] == pytest.approx(5) and zero.cdf([0.0])[0] == 0


def test_a_lower_tail_reaches_0_s_for_a_long_job():
    long = Binned([-10, -5, 10], [[0.5, 0.5]], [1000.0], "delta", Tails(lower_mean=3.0))
    assert long.cdf([0.0])[0] == 0 and long.cdf([497.5])[0] == pytest.approx(0.25) and long.cdf([995.0])[0] == 0.5


def test_tails_are_the_mean_excess_of_the_training_outliers():
    edges = [-20.0, -10, 0, 10, 20]
    assert fit_tails([-16.0, -12, 3, 12, 18], edges, "delta") == Tails(5.0, 4.0)
    assert fit_tails([3.0, 4], edges, "delta") == Tails(10.0, 10.0)  # no outlier: the width of the bin


def test_outer_edges_leave_the_range_to_the_inner_bins():
    assert outer_edges(-900, 900, 5, "delta").tolist() == [-1500, -900, -300, 300, 900, 1500]
    edges = outer_edges(0, 9, 5, "ratio")
    assert edges.tolist() == [-3, 0, 3, 6, 9, 12]
    edges, mass = without_zero_bin(edges, [[0.1, 0.2, 0.3, 0.2, 0.2]])
    assert edges.tolist() == [0, 3, 6, 9, 12] and mass[0] == pytest.approx([0.3, 0.3, 0.2, 0.2])
    assert outer_edges(0.5, 8, 5, "ratio")[0] == 0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Binned([0, 1], [[1.0]], [0.0], "ratio"), "medians_s: 1 of 1 .* row 0 .*use delta"),
        (lambda: Binned([0, 1], [[1.0]], [math.nan], "ratio"), "medians_s: 1 of 1 .* finite median"),
        (lambda: Binned([0, 1, 2], [[0.5, math.nan]], [1.0], "ratio"), "shapes: 1 of 2 .* row 0, 1"),
        (lambda: Binned([0, 1, 2], [[0.5, 0.4]], [1.0], "ratio"), "sums of shapes: .*0.9.*expected 1"),
        (lambda: Binned([0, 2, 1], [[0.5, 0.5]], [1.0], "ratio"), "edges: .*above the one before"),
        (lambda: Binned([0, 1, 2], [[1.0]], [1.0], "ratio"), r"shapes: shape \(1, 1\); expected \(k, 2\)"),
        (lambda: Binned([-1, 1], [[1.0]], [1.0], "ratio"), "edges: a ratio is 0 or more"),
        (lambda: Binned([-5, 0, 5], [[1.0, 0.0]], [0.0], "delta").cdf([1.0]), "leaves some probability above 0 s"),
        (lambda: gather_history([1.0, math.nan], [0, 0]), "values_s: 1 of 2 .* row 1"),
        (lambda: gather_history([1.0, -2.0], [0, 0]), r"values_s: .*\(-2\)"),
        (lambda: gather_history([1.0], [1]), "groups: 1 of 2 have no run"),
        (lambda: gather_history([], []), "no run of weight"),
        (lambda: Empirical(gather_history([1.0], [0]), [1]), "group: from 1 to 1; expected 0 to 0"),
        (lambda: ratio(2).cdf([1.0, math.nan]), "x: 1 of 2 .* row 1"),
        (lambda: ratio(2).cdf([1.0]), r"x: shape \(1,\); expected \(2,\)"),
        (lambda: ratio(2).quantile(1.0), "q: .*between 0 and 1"),
    ],
)
def test_what_cannot_be_used_is_one_clear_line(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_quantile_that_a_run_meets_exactly_does_not_depend_on_how_many_other_groups_there_are():
    n_groups, n_runs = 300, 1000
    values, groups = np.tile(np.arange(n_runs, dtype=float), n_groups), np.repeat(np.arange(n_groups), n_runs)
    many = Empirical(gather_history(values, groups), np.arange(n_groups))
    assert set(many.quantile(0.95)) == {949.0}
