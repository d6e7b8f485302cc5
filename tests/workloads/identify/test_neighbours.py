import numpy as np
import pytest

from tasks.workloads.identify.judge import weighed
from tasks.workloads.identify.neighbours import Metric, distances, learn_metric, nearest_mean, usual_distances
from tasks.workloads.identify.params import OpenSetParams
from tasks.workloads.identify.whitening import learn_whitening

PLAIN = Metric(np.array([1.0, 2.0]), 10.0, None)


def test_a_distance_is_the_root_mean_square_of_gaps_in_deviations():
    found = distances(np.array([[0.0, 0.0]]), np.array([[3.0, 8.0], [0.0, 0.0]]), PLAIN)
    assert found.tolist() == [[pytest.approx((25 / 2) ** 0.5), 0]]  # gaps of 3 and 4 deviations


def test_one_wild_counter_counts_no_more_than_the_clip():
    [[found]] = distances(np.array([[0.0, 0.0]]), np.array([[1e9, 0.0]]), PLAIN)
    assert found == pytest.approx((100 / 2) ** 0.5)


def test_a_counter_that_is_missing_does_not_count():
    [[found]] = distances(np.array([[3.0, np.nan]]), np.array([[0.0, 5.0]]), PLAIN)
    assert found == 3


def test_deviations_are_those_between_repetitions():
    """a: 0 and 2 around 1, b: 10 and 12 around 11; four runs of two clusters leave 4 / (4 − 2) = 2 as variance."""
    points = np.array([[0.0], [2.0], [10.0], [12.0]])
    metric = learn_metric(points, ["a", "a", "b", "b"], OpenSetParams(floor_share=1e-9))
    assert metric.deviations.tolist() == pytest.approx([2**0.5])
    wide = learn_metric(points, ["a", "a", "b", "b"], OpenSetParams(floor_share=1))
    assert wide.deviations.tolist() == pytest.approx([(2 + points.var()) ** 0.5])


def test_the_nearest_runs_of_each_workload_are_averaged():
    gaps = np.array([[1.0, 3.0, 9.0, 4.0], [np.inf, 2.0, 7.0, np.inf]])
    found = nearest_mean(gaps, ["a", "a", "a", "b"], ["a", "b"], 2)
    assert found.tolist() == [[2.0, 4.0], [4.5, np.inf]]


def test_what_is_usual_is_measured_between_blocks():
    """Runs 0 and 1 of a are twins of one block, run 2 is of another block: the twin does not count."""
    gaps = np.array([[0, 0.1, 4], [0.1, 0, 4], [4, 4, 0]], dtype=float)
    found = usual_distances(gaps, ["a"] * 3, ["a"], np.array([0, 0, 1]), 1)
    assert found.tolist() == [4]
    assert usual_distances(gaps, ["a"] * 3, ["a"], np.zeros(3, dtype=int), 1)[0] < 1  # one block: all count


def test_a_workload_seen_once_borrows_what_is_usual_of_the_others():
    gaps = np.array([[0, 2, 9], [2, 0, 9], [9, 9, 0]], dtype=float)
    assert usual_distances(gaps, ["a", "a", "b"], ["a", "b"], np.array([0, 1, 0]), 1).tolist() == [2, 2]


def test_whitening_makes_light_of_directions_in_which_runs_vary():
    rng = np.random.default_rng(0)
    load = rng.normal(size=(400, 1))
    residuals = np.hstack([load, load]) + 0.05 * rng.normal(size=(400, 2))  # both counters follow the load
    whitening = learn_whitening(residuals)
    along, across = whitening.apply(np.array([[1.0, 1.0], [1.0, -1.0]]))
    assert np.linalg.norm(across) > 3 * np.linalg.norm(along)


def test_whitening_with_more_counters_than_runs_keeps_directions_nobody_saw():
    residuals = np.zeros((3, 5))
    residuals[:, 0] = [1, -1, 0]
    found = learn_whitening(residuals).apply(np.eye(5))
    np.testing.assert_allclose(found[1:], np.eye(5)[1:], atol=1e-12)
    assert learn_whitening(np.zeros((4, 2))).apply(np.ones((1, 2))).tolist() == [[1, 1]]


def test_trees_and_distances_name_a_run_together():
    """Equal trees leave e^(−1) against e^(−2); without a weight the trees alone count."""
    torn, far = np.array([[0.5, 0.5]]), np.array([[1.0, 2.0]])
    assert weighed(torn, far, 1.0)[0, 0] == pytest.approx(1 / (1 + np.exp(-1)))
    assert weighed(torn, far, 0.0).tolist() == [[0.5, 0.5]]
    assert weighed(np.array([[1.0, 0.0]]), far[:, ::-1], 1.0)[0, 0] > 0.99  # near is no match for certainty
