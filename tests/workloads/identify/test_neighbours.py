"""Nearness of known runs: values worked out by hand, and what whitening is for."""

import numpy as np
import pytest

from tasks.workloads.identify.fingerprints import Near, Neighbours, learn_neighbours


def distances(known, seen):
    return {name: one.distance for name, one in known.near(seen).items()}


def test_a_workload_is_as_near_as_its_three_nearest_runs():
    logs = np.log(1 + np.array([[1.0], [2.0], [4.0], [90.0], [7.0]]))
    known = Neighbours(logs, ("redis",) * 4 + ("nginx",), np.ones(1), np.array([[2.0]]), np.ones(2))
    expected = {"redis": 2 * np.mean([0, np.log(3 / 2), np.log(5 / 2)]), "nginx": 2 * np.log(4)}
    assert distances(known, np.array([1.0])) == pytest.approx(expected)
    assert list(known.near(np.array([7.0]))) == ["nginx", "redis"]


def test_what_was_not_measured_is_no_difference():
    known = Neighbours(np.log([[2.0, 3.0]]), ("redis",), np.zeros(2), np.eye(2), np.ones(1))
    assert distances(known, np.array([2.0, np.nan])) == {"redis": 0}


def test_counters_that_go_together_count_once():
    rng = np.random.default_rng(1)
    load = rng.normal(0, 1, 60)  # shows in nine counters alike; the tenth tells the workloads apart
    is_nginx = np.repeat([False, True], 30)
    logs = np.column_stack([load[:, None] + rng.normal(0, 0.05, (60, 9)), 1.5 * is_nginx + rng.normal(0, 0.1, 60)])
    names = np.where(is_nginx, "nginx", "redis").tolist()
    known = learn_neighbours(np.exp(logs), names)
    seen = np.exp(np.append(np.full(9, 4.0), 1.5))  # under more load than ever
    assert next(iter(known.near(seen))) == "nginx"


def test_the_order_of_runs_changes_nothing_and_one_run_a_workload_is_enough():
    moments = np.array([[1.0, 0.0], [5.0, 2.0]])
    first, second = learn_neighbours(moments, ["a", "b"]), learn_neighbours(moments[::-1], ["b", "a"])
    assert distances(first, moments[1]) == pytest.approx(distances(second, moments[1]))
    assert distances(first, moments[1])["b"] == 0


def test_strangeness_is_measured_by_what_is_usual_by_the_next_and_by_single_counters():
    """Usual 0.5, distances 1 and 3; of three counters that tell, two are nearer to the first: odds 2.5 to 1.5."""
    known = Neighbours(np.zeros((2, 4)), ("nginx", "redis"), np.ones(4), np.eye(4), np.array([0.5, 4.0]))
    nginx, redis = Near(1.0, np.array([0.0, 1.0, 3.0, 2.0])), Near(3.0, np.array([1.0, 5.0, 2.0, 2.0]))
    expected = (np.log(2), np.log(1 / 3), np.log(2.5 / 1.5))
    assert known.strangeness({"nginx": nginx, "redis": redis}) == pytest.approx(expected)
    assert known.strangeness({"redis": redis}) == pytest.approx((np.log(3 / 4), 0.0, 0.0))
    assert known.strangeness({}) == (0.0, 0.0, 0.0)


def test_a_later_session_is_three_times_as_far_on_every_counter():
    known = Neighbours(np.log([[1.0, 4.0], [4.0, 4.0]]), ("redis",) * 2, np.zeros(2), np.eye(2), np.ones(1))
    np.testing.assert_allclose(known.drifted(np.array([4.0, 2.0]), "redis"), [2 * 2**3, 4 / 2**3])
