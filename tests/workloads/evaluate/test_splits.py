from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from tasks.workloads.evaluate.params import EvaluateParams, SampleParams, WindowParams
from tasks.workloads.evaluate.splits import SLICES, base_splits, splits_of
from tasks.workloads.evaluate.windows import cut

PARAMS = EvaluateParams(sample=SampleParams(repeats=5))
TEN = WindowParams(width_s=10)


def items_of(runs):
    return cut(runs, WindowParams()).items


def ids(items, positions):
    return [items[at].run.run_id for at in positions]


@pytest.mark.parametrize("kind", SLICES)
def test_no_item_is_both_learned_from_and_tested(campaign, kind):
    items = items_of([replace(run, machine=run.round) for run in campaign()])
    found = splits_of(items, kind, PARAMS)
    assert found.splits
    for split in found.splits:
        assert not set(split.train) & set(split.test)
        assert len(split.train) and len(split.test)


def test_seven_of_ten_runs_of_each_workload_with_each_input_are_learned_from(campaign):
    items = items_of(campaign(rounds=10))
    found = splits_of(items, "random", PARAMS)
    assert len(found.splits) == 5
    for split in found.splits:
        kinds = [(items[at].workload, items[at].run.input) for at in split.train]
        assert {kinds.count(kind) for kind in kinds} == {7}
    assert found.splits[0].test.tolist() != found.splits[1].test.tolist()


def test_the_same_seed_gives_the_same_splits_and_another_one_others(campaign):
    items = items_of(campaign(rounds=10))
    one, same = (splits_of(items, "random", PARAMS).splits[0].test.tolist() for _ in range(2))
    other = splits_of(items, "random", PARAMS.model_copy(update={"seed": 1})).splits[0].test.tolist()
    assert one == same != other


def test_pieces_of_a_trace_stay_together(draw):
    runs = [draw("redis", f"{run}+{piece}", n_samples=10) for run in range(10) for piece in (1, 2)]
    items = items_of(runs)
    for split in splits_of(items, "random", PARAMS).splits:
        assert not {items[at].trace for at in split.train} & {items[at].trace for at in split.test}


def test_windows_are_split_by_time_and_never_at_random(draw):
    items = cut([draw(name, name, n_samples=100) for name in ("redis", "mysql")], TEN).items
    assert "by_time" in splits_of(items, "random", PARAMS).reason
    kind, found = base_splits(items, PARAMS)
    assert kind == "by_time"
    (split,) = found.splits
    assert sorted(items[at].from_s for at in split.train) == sorted([0, 10, 20, 30, 40, 50] * 2)
    assert sorted(items[at].from_s for at in split.test) == sorted([60, 70, 80, 90] * 2)


def test_overlapping_windows_that_reach_over_the_border_are_on_neither_side(draw):
    items = cut([draw("redis", "long", n_samples=100)], WindowParams(width_s=10, step_s=2)).items
    (split,) = splits_of(items, "by_time", PARAMS).splits
    assert max(items[at].to_s for at in split.train) <= 60 <= min(items[at].from_s for at in split.test)


def test_a_gap_in_a_trace_does_not_move_the_border(draw):
    """Two pieces of 50 samples, an hour apart: 60 % of what was measured is over 10 samples into the second."""
    start = datetime(2026, 1, 1)
    pieces = [
        replace(draw("redis", f"long+{at + 1}", n_samples=50), started_at=start + timedelta(hours=at)) for at in (0, 1)
    ]
    items = cut(pieces, TEN).items
    (split,) = splits_of(items, "by_time", PARAMS).splits
    assert [items[at].from_s for at in split.train] == [0, 10, 20, 30, 40, 3600]
    assert [items[at].from_s for at in split.test] == [3610, 3620, 3630, 3640]


def test_the_earlier_runs_of_each_workload_are_learned_from(campaign):
    items = items_of(campaign(("redis", "mysql"), rounds=5, inputs=("one",)))
    (split,) = splits_of(items, "by_time", PARAMS).splits
    assert {items[at].run.round for at in split.train} == {"0", "1", "2"}
    assert {items[at].run.round for at in split.test} == {"3", "4"}


def test_runs_that_do_not_say_when_they_started_cannot_be_split_by_time(draw):
    found = splits_of(items_of([draw("redis", str(at)) for at in range(3)]), "by_time", PARAMS)
    assert not found.splits and "started_at" in found.reason


def test_each_round_is_left_out_in_turn(campaign):
    items = items_of(campaign())
    found = splits_of(items, "by_round", PARAMS).splits
    assert [split.name for split in found] == ["round 0", "round 1", "round 2", "round 3"]
    assert {items[at].run.round for at in found[2].test} == {"2"}
    assert {items[at].run.round for at in found[2].train} == {"0", "1", "3"}


def test_one_input_is_learned_from_and_the_other_tested(campaign, draw):
    items = items_of([*campaign(), draw("ai", "alone", input="only")])
    one, other = splits_of(items, "by_input", PARAMS).splits
    assert {items[at].run.input for at in one.test} == {"large"}
    assert {items[at].run.input for at in other.test} == {"small"}
    for split in (one, other):
        assert "alone" in ids(items, split.train)


@pytest.mark.parametrize(
    ("kind", "told"), [("by_round", "round"), ("by_machine", "machine"), ("by_input", "input"), ("random", "two runs")]
)
def test_a_slice_that_cannot_be_had_says_why(draw, kind, told):
    found = splits_of(items_of([draw("redis", "a"), draw("mysql", "b")]), kind, PARAMS)
    assert not found.splits and told in found.reason


def test_one_run_of_a_workload_is_only_learned_from(campaign, draw):
    items = items_of([*campaign(("redis",)), draw("mysql", "alone")])
    for split in splits_of(items, "random", PARAMS).splits:
        assert "alone" in ids(items, split.train)


def test_many_rounds_are_sampled_evenly(campaign):
    few = EvaluateParams(sample=SampleParams(max_slices=2))
    found = splits_of(items_of(campaign(rounds=9)), "by_round", few).splits
    assert [split.name for split in found] == ["round 0", "round 8"]
    assert np.unique([len(split.test) for split in found]).tolist() == [6]
