"""The plan: everyone often enough, in every round, mixed, and the same again from the same seed."""

from collections import Counter
from itertools import pairwise

import pytest

from tasks.errors import BadSetting
from tasks.workloads.params import RecordParams
from tasks.workloads.record.plan import make_plan, named_programs


@pytest.fixture
def programs(busy):
    made = [busy("a", ("s", "l")), busy("b", ("s", "l")), busy("c", ("s",)), busy("d", ("s", "l"))]
    return {program.name: program for program in made}


@pytest.mark.parametrize(("rounds", "runs"), [(5, 10), (3, 10), (4, 2), (1, 10)])
def test_each_workload_runs_with_each_input_exactly_as_often_as_asked(programs, rounds, runs):
    plan = make_plan(RecordParams(rounds=rounds, runs=runs), programs)
    counts = Counter((run.workload, run.input) for run in plan.runs)
    assert set(counts.values()) == {runs}
    assert len(counts) == 7
    assert len(plan.rounds) == rounds


def test_rounds_are_alike_in_size_and_hold_every_case(programs):
    plan = make_plan(RecordParams(rounds=3, runs=10), programs)
    sizes = [len(one) for one in plan.rounds]
    assert max(sizes) - min(sizes) <= 1
    assert all(len({(run.workload, run.input) for run in one}) == 7 for one in plan.rounds)
    assert all(one.workload != other.workload for runs in plan.rounds for one, other in pairwise(runs))
    assert len({run.run_id for run in plan.runs}) == len({run.seed for run in plan.runs}) == len(plan.runs)
    again = plan.runs[0].again(2)
    assert (again.run_id, again.round) == (f"{plan.runs[0].run_id}.again2", "again2")


def test_the_order_is_shuffled_anew_in_each_round_and_the_same_from_the_same_seed(programs):
    plan, same, other = (make_plan(RecordParams(seed=seed), programs) for seed in (7, 7, 8))
    orders = [tuple((run.workload, run.input) for run in one) for one in plan.rounds]
    assert len(set(orders)) == len(orders)
    assert plan.digest() == same.digest()
    assert plan.digest() != other.digest()


def test_one_workload_alone_can_be_recorded_and_an_unknown_one_is_refused_with_those_that_there_are(programs):
    assert len(make_plan(RecordParams(), named_programs(programs, ["c"])).runs) == 10
    with pytest.raises(BadSetting, match="no workload x; expected some of a, b, c, d"):
        named_programs(programs, ["a", "x"])
