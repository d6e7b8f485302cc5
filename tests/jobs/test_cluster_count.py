"""The inertia curve bends where the planted number of shapes is."""

from tasks.jobs.cluster_count import elbow, inertia_curve
from tasks.jobs.pmf import bins_of
from tasks.jobs.shape_params import BinParams, ShapeParams

RATIO = bins_of("ratio", BinParams(n_bins=100))


def test_the_elbow_is_the_point_furthest_below_the_chord():
    # scaled: (0, 1) (1/3, 0.2) (2/3, 0.1) (1, 0); 1 - x - y: 0, 0.47, 0.23, 0
    assert elbow([1, 2, 3, 4], [10.0, 2.0, 1.0, 0.0]) == 2
    assert elbow([1, 2, 3], [3.0, 2.0, 1.0]) is None  # straight
    assert elbow([1, 2], [3.0, 1.0]) is None
    assert elbow([1, 2, 3], [0.0, 0.0, 0.0]) is None


def test_the_inertia_curve_of_two_planted_shapes_bends_at_two(planted, counts_of):
    values, groups, _ = planted()
    curve = inertia_curve(counts_of(values, groups), RATIO, ShapeParams(max_k=5, n_init=3))
    assert curve.ks == [1, 2, 3, 4, 5]
    assert curve.elbow == 2
    assert curve.inertias == sorted(curve.inertias, reverse=True)


def test_the_curve_of_a_single_group_has_one_point(planted, counts_of):
    values, groups, _ = planted(n_jobs=1)
    assert inertia_curve(counts_of(values, groups), RATIO, ShapeParams()).ks == [1]
