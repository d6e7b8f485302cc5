"""Sums of fingerprints whose parts are known: what was added up is what must come out."""

import numpy as np
import pytest

from tasks.workloads.identify.fingerprints import LEAST_SPREAD, MOST_COST, best_sum, learn_library, sums_of, superpose

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
    return learn_library(means, labels, labels, np.ones(N_COUNTERS, dtype=bool), scales_levels=True)


def parts(seen, library, without=()):
    found = best_sum(sums_of(seen, library), library, without)
    return {part.workload: part.weight for part in found.parts}


@pytest.mark.parametrize("at", range(4))
def test_a_run_alone_is_itself_with_weight_one(drawn, library, at):
    assert parts(drawn[0][5 * at], library) == {NAMES[at]: pytest.approx(1, abs=0.15)}


@pytest.mark.parametrize("speed", [0.5, 0.2])
def test_a_workload_that_gets_less_of_the_machine_has_a_smaller_weight(drawn, library, speed):
    assert parts(speed * drawn[0][0], library) == {"redis": pytest.approx(speed, rel=0.15)}


@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_two_workloads_at_once_are_both_named(drawn, library, weight):
    means, _ = drawn
    found = parts(superpose(means[1], means[11], weight, library.idle), library)
    assert found == {"redis": pytest.approx(1, rel=0.2), "nginx": pytest.approx(weight, rel=0.2)}


def test_three_workloads_at_once_are_named(drawn, library):
    means, _ = drawn
    assert parts(means[0] + means[6] + means[12], library).keys() == {"redis", "mariadb", "nginx"}


def test_what_is_left_out_of_the_library_leaves_a_rest(drawn, library):
    means, _ = drawn
    sums = sums_of(means[0] + means[16], library)
    whole, without = best_sum(sums, library), best_sum(sums, library, ["cnn"])
    assert "cnn" not in {part.workload for part in without.parts}
    assert without.cost > whole.cost + 20 and without.excess > without.lack
    assert best_sum(sums, library, NAMES) is None


def test_a_part_that_is_there_is_missed_and_one_that_is_not_is_hardly(drawn, library):
    means, _ = drawn
    found = best_sum(sums_of(means[0], library), library)
    assert found.parts[0].gain > 50 and found.parts[0].purity < 2 and found.misfit < 2


def test_one_wild_counter_costs_no_more_than_the_most(drawn, library):
    seen = drawn[0][0].copy()
    quiet = best_sum(sums_of(seen, library), library).cost
    seen[4] *= 1e6
    assert best_sum(sums_of(seen, library), library).cost <= quiet + MOST_COST + 1
    assert parts(seen, library).keys() == {"redis"}


def test_a_counter_that_was_not_measured_does_not_count(drawn, library):
    seen = drawn[0][0].copy()
    seen[:5] = np.nan
    found = best_sum(sums_of(seen, library), library)
    assert found.parts[0].workload == "redis" and np.isnan(found.deviations[:5]).all()


def test_another_unit_changes_nothing(drawn, library):
    means, labels = drawn
    units = np.where(np.arange(N_COUNTERS) % 2 == 0, 1000.0, 1.0)
    other = learn_library(means * units, labels, labels, np.ones(N_COUNTERS, dtype=bool), scales_levels=True)
    one, same = (
        best_sum(sums_of(seen, known), known) for seen, known in ((means[3], library), (means[3] * units, other))
    )
    assert same.cost == pytest.approx(one.cost, rel=1e-6)


def test_levels_of_a_group_do_not_shrink_with_its_speed(drawn):
    means, labels = drawn
    is_rate = np.arange(N_COUNTERS) % 2 == 0
    library = learn_library(means, labels, labels, is_rate, scales_levels=False, most_parts=1)
    seen = np.where(is_rate, 0.3 * means[0], means[0])
    found = best_sum(sums_of(seen, library), library)
    assert found.parts[0].weight == pytest.approx(0.3, rel=0.2) and found.misfit < 1


def test_superposing_adds_rates_and_levels_above_those_of_an_idle_machine():
    idle = np.array([0.0, 10.0])
    np.testing.assert_allclose(superpose(np.array([5.0, 14.0]), np.array([2.0, 16.0]), 0.5, idle), [6, 17])


def test_the_spread_is_that_of_repetitions_and_never_less_than_the_least():
    """Logarithms 0 and 2 around each mean: deviation √(2 + 2) / √2 of freedom 2; the other counter never varies."""
    means = np.array([[1.0, 7], [np.exp(2), 7], [np.exp(4), 7], [np.exp(6), 7]])
    found = learn_library(means, list("aabb"), list("aabb"), np.ones(2, dtype=bool), scales_levels=True)
    floor = found.floor[0]
    logs = np.log(means[:, 0] + floor)
    expected = np.sqrt(((logs[1] - logs[0]) ** 2 / 2 + (logs[3] - logs[2]) ** 2 / 2) / 2)
    assert found.spread.tolist() == pytest.approx([expected, LEAST_SPREAD[True]])
