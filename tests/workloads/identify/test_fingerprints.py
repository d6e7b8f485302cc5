"""Sums of known fingerprints and nearness of known runs: values worked out by hand, and what whitening is for."""

import numpy as np
import pytest

from tasks.workloads.identify.fingerprints import (
    LEAST_SPREAD,
    MOST_COST,
    Likeness,
    Near,
    Neighbours,
    best_sum,
    learn_library,
    learn_likeness,
    learn_neighbours,
    sums_of,
    superpose,
)

NAMES = ("redis", "mariadb", "nginx", "cnn")
N_COUNTERS = 24


@pytest.fixture(scope="module")
def drawn():
    """Five runs each of four workloads: means (20, 24), and their labels."""
    rng = np.random.default_rng(3)
    levels = np.exp(rng.uniform(0, 8, (len(NAMES), N_COUNTERS)))
    labels = [name for name in NAMES for _ in range(5)]
    return np.repeat(levels, 5, axis=0) * np.exp(rng.normal(0, 0.05, (20, N_COUNTERS))), labels


@pytest.fixture(scope="module")
def library(drawn):
    means, labels = drawn
    return learn_library(means, labels, labels, np.ones(N_COUNTERS, dtype=bool), is_sum=True)


def parts(seen, library, without=()):
    found = best_sum(sums_of(seen, library), library, without)
    return {part.workload: part.weight for part in found.parts}


@pytest.mark.parametrize(("at", "speed"), [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (0, 0.5), (0, 0.2)])
def test_a_run_alone_is_itself_with_the_weight_of_what_it_gets_of_the_machine(drawn, library, at, speed):
    seen = speed * drawn[0][5 * at]
    assert parts(seen, library) == {NAMES[at]: pytest.approx(speed, rel=0.15)}
    [part, *_] = best_sum(sums_of(seen, library), library).parts
    assert part.gain > 50 and part.purity < 2


@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_two_workloads_at_once_are_both_named(drawn, library, weight):
    means, _ = drawn
    found = parts(superpose(means[1], means[11], weight, library.idle), library)
    assert found == {"redis": pytest.approx(1, rel=0.2), "nginx": pytest.approx(weight, rel=0.2)}
    assert parts(means[0] + means[6] + means[12], library).keys() == {"redis", "mariadb", "nginx"}


def test_what_is_left_out_of_the_library_leaves_a_rest(drawn, library):
    means, _ = drawn
    sums = sums_of(means[0] + means[16], library)
    whole, without = best_sum(sums, library), best_sum(sums, library, ["cnn"])
    assert "cnn" not in {part.workload for part in without.parts}
    assert without.cost > whole.cost + 20 and without.excess > without.lack
    assert best_sum(sums, library, NAMES) is None


def test_one_wild_counter_costs_no_more_than_the_most(drawn, library):
    seen = drawn[0][0].copy()
    quiet = best_sum(sums_of(seen, library), library).cost
    seen[4] *= 1e6
    assert best_sum(sums_of(seen, library), library).cost <= quiet + MOST_COST + 1
    assert parts(seen, library).keys() == {"redis"}


def test_counters_that_go_together_cost_less_together_than_apart():
    """Four of eight counters vary as one between repetitions; all four, or two up and two down, are 1.5 times off."""
    rng = np.random.default_rng(5)
    runs = 100 * np.exp(rng.normal(0, 0.02, (12, 8)))
    runs[:, :4] *= np.exp(rng.normal(0, 0.3, (12, 1)))
    library = learn_library(runs, ["redis"] * 12, ["redis"] * 12, np.ones(8, dtype=bool), is_sum=True)
    signs = np.array([[1.0, 1, 1, 1, 0, 0, 0, 0], [1, -1, 1, -1, 0, 0, 0, 0]])
    together, apart = np.linalg.norm(np.log(1.5) * signs @ library.whitening, axis=1)
    assert together < apart / 2
    seen = library.rows[0] * np.exp(np.log(1.5) * signs)
    assert sums_of(seen[0], library)[0].cost[0] < sums_of(seen[1], library)[0].cost[0]


def test_a_counter_that_was_not_measured_does_not_count(drawn, library):
    seen = drawn[0][0].copy()
    seen[:5] = np.nan
    found = best_sum(sums_of(seen, library), library)
    assert found.parts[0].workload == "redis" and np.isnan(found.deviations[:5]).all()


def test_another_unit_changes_nothing(drawn, library):
    means, labels = drawn
    units = np.where(np.arange(N_COUNTERS) % 2 == 0, 1000.0, 1.0)
    other = learn_library(means * units, labels, labels, np.ones(N_COUNTERS, dtype=bool), is_sum=True)
    one, same = (
        best_sum(sums_of(seen, known), known) for seen, known in ((means[3], library), (means[3] * units, other))
    )
    assert same.cost == pytest.approx(one.cost, rel=1e-6)


def test_levels_of_a_group_do_not_shrink_with_its_speed(drawn):
    means, labels = drawn
    is_rate = np.arange(N_COUNTERS) % 2 == 0
    library = learn_library(means, labels, labels, is_rate, is_sum=False)
    seen = np.where(is_rate, 0.3 * means[0], means[0])
    found = best_sum(sums_of(seen, library), library)
    assert found.parts[0].weight == pytest.approx(0.3, rel=0.2)


def test_superposing_adds_rates_and_levels_above_those_of_an_idle_machine():
    idle = np.array([0.0, 10.0])
    np.testing.assert_allclose(superpose(np.array([5.0, 14.0]), np.array([2.0, 16.0]), 0.5, idle), [6, 17])


def test_the_spread_is_that_of_repetitions_and_never_less_than_the_least():
    """Logarithms 0 and 2 around each mean: deviation √(2 + 2) / √2 of freedom 2; the other counter never varies."""
    means = np.array([[1.0, 7], [np.exp(2), 7], [np.exp(4), 7], [np.exp(6), 7]])
    found = learn_library(means, list("aabb"), list("aabb"), np.ones(2, dtype=bool), is_sum=True)
    floor = found.floor[0]
    logs = np.log(means[:, 0] + floor)
    expected = np.sqrt(((logs[1] - logs[0]) ** 2 / 2 + (logs[3] - logs[2]) ** 2 / 2) / 2)
    assert found.spread.tolist() == pytest.approx([expected, LEAST_SPREAD[True]])


def no_shapes(n_runs):
    """Nor levels to be compared plainly."""
    return np.zeros((n_runs, 0)), np.zeros(0), np.zeros((n_runs, 0)), np.zeros(0)


def distances(known, seen):
    return {name: one.distance for name, one in known.near(seen).items()}


def test_a_workload_is_as_near_as_its_three_nearest_runs():
    logs = np.log(1 + np.array([[1.0], [2.0], [4.0], [90.0], [7.0]]))
    known = Neighbours(logs, ("redis",) * 4 + ("nginx",), np.ones(1), np.array([[2.0]]), np.ones(2), *no_shapes(5))
    expected = {"redis": 2 * np.mean([0, np.log(3 / 2), np.log(5 / 2)]), "nginx": 2 * np.log(4)}
    assert distances(known, np.array([1.0])) == pytest.approx(expected)
    assert list(known.near(np.array([7.0]))) == ["nginx", "redis"]


def test_a_distance_is_the_mean_over_whitened_differences():
    """Differences 1 and 2: the first whitened one is 1 · 1 + 2 · 3 = 7, the second 2 · 1 = 2."""
    whitening = np.array([[1.0, 0.0], [3.0, 1.0]])
    known = Neighbours(np.zeros((1, 2)), ("redis",), np.zeros(2), whitening, np.ones(1), *no_shapes(1))
    assert distances(known, np.exp([1.0, 2.0])) == {"redis": pytest.approx(4.5)}


def test_the_others_stand_for_what_was_not_measured():
    """Differences 1, of weight 3, and unknown, of weight 1: (3 · 1 + 0) / 2 over three quarters of the weight."""
    known = Neighbours(np.log([[2.0, 3.0]]), ("redis",), np.zeros(2), np.diag([3.0, 1.0]), np.ones(1), *no_shapes(1))
    assert distances(known, np.array([2 * np.e, np.nan])) == {"redis": pytest.approx(2.0)}
    assert distances(known, np.array([2.0, np.nan])) == {"redis": 0}


def test_shapes_name_what_levels_cannot_and_leave_the_distance_as_it_is():
    """Shapes 0.2 and 9 away, in deviations of 0.1: 2, and no more than 3, each counted twice."""
    shapes = np.array([[0.0], [9.2]])
    known = Neighbours(
        np.log([[2.0], [1.0]]),
        ("nginx", "redis"),
        np.zeros(1),
        np.eye(1),
        np.ones(2),
        shapes,
        np.ones(1) / 10,
        *no_shapes(2)[2:],
    )
    found = known.near(np.array([1.0]), np.array([0.2]))
    assert {name: one.distance for name, one in found.items()} == pytest.approx({"redis": 0, "nginx": np.log(2)})
    assert {name: one.unlikeness for name, one in found.items()} == pytest.approx({"redis": 6, "nginx": np.log(2) + 4})
    missing = known.near(np.array([1.0]), np.array([np.nan]))
    assert [one.unlikeness for one in missing.values()] == [one.distance for one in missing.values()]


def test_a_run_is_compared_with_each_known_one_on_the_counters_that_both_have():
    """Of weights 3 and 1 the first known run has both, the second the lighter one alone, which stands for all four."""
    likeness = Likeness(np.ones(2), np.array([3.0, 1.0]))
    known = learn_neighbours(np.array([[1.0, 1.0], [np.nan, 1.0]]), ["redis", "nginx"], likeness)
    assert distances(known, np.array([2 * np.e - 1, 1.0])) == pytest.approx({"redis": 3.0, "nginx": 0.0})
    assert distances(known, np.array([1.0, 2 * np.e - 1])) == pytest.approx({"redis": 1.0, "nginx": 4.0})


def test_where_inputs_are_known_what_is_less_than_half_of_the_usual_hardly_counts():
    """The floor is the median of what is not 0; where inputs are not known, its 10 % quantile, here 2 + 0.3 · 2."""
    rows = np.array([[0.0, 2.0, 4.0, 8.0, 16.0], [1.0, 1.0, 1.0, 1.0, 1.0]]).T
    asked = ("aacbb", "aaabb")
    floors = [learn_likeness(rows, list("aaabb"), list(inputs), np.arange(5) % 3).floor.tolist() for inputs in asked]
    assert floors == [[6, 1], [pytest.approx(2.6), 1]]


def test_counters_that_go_together_count_once():
    rng = np.random.default_rng(1)
    load = rng.normal(0, 1, 60)  # shows in nine counters alike; the tenth tells the workloads apart
    is_nginx = np.repeat([False, True], 30)
    logs = np.column_stack([load[:, None] + rng.normal(0, 0.05, (60, 9)), 1.5 * is_nginx + rng.normal(0, 0.1, 60)])
    names = np.where(is_nginx, "nginx", "redis").tolist()
    known = learn_neighbours(np.exp(logs), names)
    seen = np.exp(np.append(np.full(9, 4.0), 1.5))  # under more load than ever
    assert next(iter(known.near(seen))) == "nginx"


def test_a_counter_weighs_as_much_as_it_tells_workloads_apart_whatever_the_input():
    """The first differs between workloads, the second between inputs, the third not at all."""
    rng = np.random.default_rng(3)
    workload, given = np.repeat([0, 1, 2], 20), np.tile([0, 1], 30)
    logs = np.column_stack([3.0 * workload, 3.0 * given, np.zeros(60)]) + rng.normal(0, [0.2, 0.2, 0.0], (60, 3))
    inputs = [f"{a} {b}" for a, b in zip(workload, given, strict=True)]
    likeness = learn_likeness(np.exp(logs), workload.astype(str).tolist(), inputs, np.arange(60) % 5)
    weights = likeness.weights
    assert weights[0] > 20 * weights[1] and weights[2] == 0
    known = learn_neighbours(np.exp(logs), workload.astype(str).tolist(), likeness)
    seen = np.exp([6.0, 9.0, 0.0])  # of an input that nobody has seen
    assert next(iter(known.near(seen))) == "2"
    apart = np.abs(known.logs - np.log(seen + known.floor)) @ weights
    assert known.near(seen)["2"].distance == pytest.approx(np.sort(apart[workload == 2])[:3].mean())


def test_where_no_workload_has_two_inputs_counters_weigh_less_that_vary_within_workloads():
    """1 / (0.5 + mean deviation of logarithms within workloads): the second counter does not vary there."""
    rows = np.exp([[0.0, 1.0], [2.0, 1.0], [9.0, 1.0], [9.0, 1.0]])
    weights = learn_likeness(rows, ["a", "a", "b", "b"], ["a", "a", "b", "b"], np.array([0, 1, 0, 1])).weights
    assert 1.0 <= weights[0] < weights[1] == pytest.approx(2.0)


def test_the_order_of_runs_changes_nothing_and_one_run_a_workload_is_enough():
    moments = np.array([[1.0, 0.0], [5.0, 2.0]])
    first, second = learn_neighbours(moments, ["a", "b"]), learn_neighbours(moments[::-1], ["b", "a"])
    assert distances(first, moments[1]) == pytest.approx(distances(second, moments[1]))
    assert distances(first, moments[1])["b"] == 0


def test_strangeness_is_measured_by_what_is_usual_by_the_next_workload_and_plainly():
    """Usual 0.5, distances 1 and 3; the plain one is the least of any workload, here of the second."""
    known = Neighbours(np.zeros((2, 4)), ("nginx", "redis"), np.ones(4), np.eye(4), np.array([0.5, 4.0]), *no_shapes(2))
    nginx, redis = Near(1.0, 1.0, 0.7), Near(3.0, 3.0, 0.2)
    found = known.strangeness({"nginx": nginx, "redis": redis})
    assert found == pytest.approx((np.log(2), np.log(1 / 3), np.log(0.2)))
    assert known.strangeness({"redis": redis}) == pytest.approx((np.log(3 / 4), 0.0, np.log(0.2)))
    assert known.strangeness({}) == (0.0, 0.0, 0.0)


def test_the_plain_distance_is_to_the_two_runs_that_are_nearest_by_it():
    """Logarithms of two means, 0 asked about, are 1 and 3, 2 and 0, 9 and 9; the whitened distance goes by others."""
    levels = np.array([[1.0, 3], [2, 0], [9, 9]])
    logs, of_plain = np.array([[9.0, 9], [9, 9], [0, 0]]), (levels, np.zeros(2))
    known = Neighbours(logs, ("redis",) * 3, np.zeros(2), np.eye(2), np.ones(1), *no_shapes(3)[:2], *of_plain)
    assert known.near(np.ones(2))["redis"].plain == pytest.approx((2 + 1) / 2)
    assert known.near(np.array([np.nan, 1]))["redis"].plain == pytest.approx((0 + 3) / 2)


def test_what_only_some_workloads_do_sets_a_run_apart_however_little_it_is():
    """The least mean that was seen is as good as nothing, whatever the deviations beside it; of a group none counts."""
    moments = np.array([[1000.0, 0.0], [2000.0, 0.0], [1.0, 0.5], [0.0, 0.5]])
    names = ["redis", "redis", "cnn", "cnn"]
    known = learn_neighbours(moments, names)
    assert known.plain_floor.tolist() == [1.0] and known.floor[0] > 100
    assert known.near(np.array([1.0, 0.5]))["redis"].plain == pytest.approx(np.log([1001 / 2, 2001 / 2]).mean())
    assert learn_neighbours(moments, names, Likeness(np.ones(2), np.ones(2))).near(moments[0])["redis"].plain == 0


def test_where_nothing_varies_all_counters_weigh_the_same():
    rows = np.tile([1.0, 2.0, 0.0], (2, 1))
    likeness = learn_likeness(rows, ["a", "b"], ["a", "b"], np.zeros(2, dtype=int))
    assert len(set(likeness.weights.tolist())) == 1 and likeness.weights[0] > 0
    assert distances(learn_neighbours(rows, ["a", "b"], likeness), rows[0]) == {"a": 0, "b": 0}
