"""The plan: everyone often enough in every stretch, a share stressed in each, the same from a seed; what is next."""

from collections import Counter
from datetime import datetime, timedelta

import pytest

from tasks.nodes.record.params import SHIPPED, SHORT, Dose
from tasks.nodes.record.plan import Done, make_plan, next_benchmark

NODES = ("a", "b", "c")


def plan_of(runs=100, ratio=0.2, seed=7, nodes=NODES, templates=SHORT, doses=SHIPPED):
    return make_plan(nodes, templates, doses, runs=runs, stressed_ratio=ratio, seed=seed)


@pytest.fixture(scope="module")
def executions():
    return plan_of()


@pytest.mark.parametrize("runs", [1, 2, 7, 100])
def test_each_benchmark_runs_on_each_node_exactly_as_often_as_asked(runs):
    counts = Counter((one.node, one.benchmark) for one in plan_of(runs))
    assert len(counts) == 18
    assert set(counts.values()) == {runs}


@pytest.mark.parametrize("stretches", [1, 3, 10])
def test_any_window_holds_all_pairs_equally_often_give_or_take_one(executions, stretches):
    size = 18 * stretches
    for first in range(0, len(executions) - size, 7):
        counts = Counter((one.node, one.benchmark) for one in executions[first : first + size])
        seen = [counts[node, template.benchmark] for node in NODES for template in SHORT]
        assert stretches - 1 <= min(seen)
        assert max(seen) <= stretches + 1


def test_a_fifth_is_stressed_in_all_in_each_pair_and_in_each_stretch_by_each_dose_alike(executions):
    stressed = [one for one in executions if one.stress_wanted]
    assert len(stressed) == 360
    assert set(Counter((one.node, one.benchmark) for one in stressed).values()) == {20}
    assert {sum(one.stress_wanted for one in executions[first : first + 90]) for first in range(0, 1800, 90)} == {18}
    assert Counter(one.dose_level for one in stressed) == {1: 120, 2: 120, 3: 120}
    assert set(Counter((one.node, one.benchmark, one.dose_level) for one in stressed).values()) <= {6, 7}
    names = {(dose.benchmark, dose.level): dose.name for dose in SHIPPED}
    assert all(names[one.benchmark, one.dose_level] == one.dose for one in stressed)


def test_an_odd_number_of_runs_never_loses_a_stressed_one_to_another():
    for runs in (3, 7, 11, 13):
        for ratio in (0.2, 0.33, 0.5):
            stressed = sum(one.stress_wanted for one in plan_of(runs, ratio))
            assert abs(stressed - 18 * runs * ratio) <= 0.5 + 1e-9


def test_the_order_is_the_same_from_the_same_seed_and_another_from_another():
    assert plan_of(runs=5) == plan_of(runs=5)
    assert plan_of(runs=5)[:9] != plan_of(runs=5, seed=8)[:9]


def test_ids_are_unique_and_a_repetition_says_so(executions):
    ids = [one.id_in("c") for one in executions]
    assert len(set(ids)) == len(ids)
    assert executions[0].again(2).id_in("c") == f"{ids[0]}.again2"


def test_several_doses_of_a_level_are_dealt_in_turn_and_one_for_a_node_only_there():
    doses = [
        Dose(benchmark=one.benchmark, level=level, name=f"{kind}-{level}-{node}", node=node, command="burn")
        for one in SHORT
        for level in (1, 2, 3)
        for node in NODES
        for kind in ("between", "two", "neighbour", "delay")
    ]
    executions = plan_of(runs=36, ratio=1 / 3, doses=doses)
    dealt = Counter((one.node, one.benchmark, one.dose) for one in executions if one.stress_wanted)
    assert set(dealt.values()) == {1}
    assert len(dealt) == 18 * 12
    assert all(name.endswith(f"-{node}") for node, _, name in dealt)
    firsts = {one.node: one.dose.partition("-")[0] for one in reversed(executions) if one.dose_level == 1}
    assert len(set(firsts.values())) > 1


def test_a_benchmark_node_or_level_that_has_no_dose_stays_unstressed():
    doses = [Dose(benchmark=one.benchmark, level=1, name="burn", node="a", command="burn") for one in SHORT[1:]]
    stressed = [one for one in plan_of(runs=6, ratio=0.5, doses=doses) if one.stress_wanted]
    assert {(one.node, one.dose_level) for one in stressed} == {("a", 1)}
    assert {one.benchmark for one in stressed} == {one.benchmark for one in SHORT[1:]}


START = datetime(2026, 11, 21)


def past(template, hours, is_flagged=False):
    started_at = START + timedelta(hours=hours)
    status = "failed" if is_flagged else "clean"
    return Done(f"e-{hours}", "n", template.benchmark, template.template_hash, started_at, status)


def all_of(*flagged, templates=SHORT):
    return [past(one, hour, one.benchmark in flagged) for hour, one in enumerate(templates)]


def test_a_node_without_history_gets_each_benchmark_once():
    history = []
    for _ in SHORT:
        history.append(past(next_benchmark(history, SHORT), len(history)))
    assert [one.benchmark for one in history] == [one.benchmark for one in SHORT]


def test_then_the_stalest_is_repeated_whatever_the_order_of_the_history():
    history = [past(SHORT[0], 9), *all_of(templates=SHORT[1:])]
    assert next_benchmark(history, SHORT) is SHORT[1]
    assert next_benchmark(history[::-1], SHORT) is SHORT[1]
    history = [*all_of("disk-fio"), past(SHORT[2], 50)]  # repeated cleanly: no longer doubtful
    assert next_benchmark(history, SHORT) is SHORT[0]


def test_on_a_machine_that_is_never_quiet_the_others_have_their_turn():
    history = all_of()
    seen = set()
    for hour in range(100, 140):
        benchmark = next_benchmark(history, SHORT)
        seen.add(benchmark.benchmark)
        history.append(past(benchmark, hour, is_flagged=True))
    assert seen == {one.benchmark for one in SHORT}
