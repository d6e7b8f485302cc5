"""How far stress moves a benchmark: by hand, and the ladder that follows."""

from math import isnan

import pytest

from tasks.nodes.record.distances import Rung, chosen_ladder, distance_sd, rungs_of
from tasks.nodes.record.doses import Dose
from tasks.nodes.record.ladder import SHIPPED, WATCHED, candidates_for
from tasks.nodes.record.templates import SHORT
from tasks.nodes.tools import PARSERS


def dose(name):
    return Dose(benchmark="cpu-fake", level=1, name=name)


def rungs(*distances, n_applied=4):
    return [Rung(dose(f"d{place}"), sd, 1.0, 4, n_applied) for place, sd in enumerate(distances)]


def test_the_distance_is_that_of_the_means_in_deviations_of_the_unstressed():
    # mean 10, sample deviation of 8, 10, 12 is 2; stressed mean 4: three deviations below
    assert distance_sd([3.0, 5.0], [8.0, 10.0, 12.0]) == pytest.approx(-3.0)


def test_nothing_is_said_without_a_spread():
    assert isnan(distance_sd([1.0], [2.0, 2.0, 2.0]))
    assert isnan(distance_sd([1.0], [2.0, 3.0]))
    assert isnan(distance_sd([], [2.0, 3.0, 4.0]))


def test_the_ladder_takes_the_doses_nearest_to_one_three_and_ten():
    found = chosen_ladder(rungs(-0.2, -0.9, -2.0, -3.3, -6.0, -11.0, -40.0), higher_is_better=True)
    assert [(one.name, one.level) for one in found] == [("d1", 1), ("d3", 2), ("d5", 3)]


def test_levels_are_always_stronger_doses_than_those_below_in_whatever_order_they_were_tried():
    found = chosen_ladder(rungs(-10.0, -3.0, -1.0), higher_is_better=True)
    assert [(one.name, one.level) for one in found] == [("d2", 1), ("d1", 2), ("d0", 3)]
    # ioping as it was measured: the dose nearest to 3 stands before one that does less
    found = chosen_ladder(rungs(0.3, 2.6, 4.2, 0.9, 19.4), higher_is_better=False)
    assert [one.name for one in found] == ["d3", "d1", "d4"]


def test_a_dose_that_makes_a_benchmark_better_is_no_rung():
    found = chosen_ladder(rungs(1.0, -1.2, 3.0, -3.5, 10.0, -12.0), higher_is_better=True)
    assert [one.name for one in found] == ["d1", "d3", "d5"]
    found = chosen_ladder(rungs(1.0, -1.2, 3.0, -3.5, 10.0, -12.0), higher_is_better=False)
    assert [one.name for one in found] == ["d0", "d2", "d4"]


def test_a_dose_that_ran_twice_is_no_rung():
    twice = Rung(dose("twice"), -1.0, 1.0, 2, 2)
    found = chosen_ladder([twice, *rungs(-1.4, -3.0, -10.0)], higher_is_better=True)
    assert [one.name for one in found] == ["d0", "d1", "d2"]
    assert chosen_ladder([twice, *rungs(-3.0, -10.0)], higher_is_better=True) == ()


def test_a_dose_that_was_not_applied_is_no_rung():
    weak = rungs(-1.0, -3.0, -10.0, n_applied=3)
    assert chosen_ladder(weak, higher_is_better=True) == ()
    strong = [Rung(dose(f"s{place}"), sd, 1.0, 4, 4) for place, sd in enumerate((-1.1, -4.0, -9.0))]
    assert [one.name for one in chosen_ladder([*weak, *strong], higher_is_better=True)] == ["s0", "s1", "s2"]


def test_a_dose_is_judged_on_each_node_against_that_node_alone():
    calm = {"fast": [98.0, 100.0, 102.0], "slow": [9.8, 10.0, 10.2]}
    stressed = {("fast", "d"): [90.0], ("slow", "d"): [9.0]}
    [found] = rungs_of([dose("d")], stressed, calm, {"d": (2, 2)})
    assert found.sd == pytest.approx(-5.0)
    assert found.ratio == pytest.approx(0.9)
    assert (found.n, found.n_applied) == (2, 2)


def test_a_dose_that_never_ran_has_no_distance():
    [found] = rungs_of([dose("d")], {}, {"fast": [1.0, 2.0, 3.0]}, {})
    assert isnan(found.sd)
    assert chosen_ladder([found] * 3, higher_is_better=True) == ()


def test_each_benchmark_has_doses_to_try_and_a_metric_to_watch():
    for template in SHORT:
        tried = candidates_for(template.benchmark)
        assert len(tried) >= 5
        assert len({one.name for one in tried}) == len(tried)
        assert PARSERS[template.benchmark].metrics[WATCHED[template.benchmark]].higher_is_better is not None
    assert candidates_for("somebody-elses") == ()
    assert {one.benchmark for one in SHIPPED} == set(WATCHED)
