"""Runs and windows, and how they are split: what depends on each other is on one side."""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from tasks.workloads.evaluate.items import SLICES, base_splits, cut, sampled, splits_of, trace_of
from tasks.workloads.params import EvaluateParams, WindowParams

PARAMS = EvaluateParams(repeats=5)
SHORT = TEN = WindowParams(width_s=10)


def test_a_short_run_is_one_item_and_a_long_trace_is_cut(draw):
    found = cut([draw("redis", "short", n_samples=30), draw("redis", "long", n_samples=45)], SHORT)
    assert [(item.run.run_id, item.is_window) for item in found.items] == [
        ("short", False),
        *[(f"long@{start}s", True) for start in (0, 10, 20, 30)],
    ]
    assert [item.from_s for item in found.items[1:]] == [0, 10, 20, 30]
    assert found.n_left_over == 5  # the last half of a window
    long, window = draw("redis", "long", n_samples=45), found.items[3].run
    np.testing.assert_array_equal(window.values, long.values[20:30])
    np.testing.assert_array_equal(window.at_s, np.arange(10.0))  # counted from its own start
    assert window.workload == "redis"
    overlapping = cut([long], WindowParams(width_s=10, step_s=5)).items
    assert [item.from_s for item in overlapping] == [0, 5, 10, 15, 20, 25, 30, 35]
    assert all(item.run.n_samples == 10 for item in overlapping)


def test_every_sample_is_in_a_window_or_counted_as_left_over(draw):
    run = draw("redis", "long", n_samples=97, interval_s=0.7)
    found = cut([run], WindowParams(width_s=7))
    assert sum(item.run.n_samples for item in found.items) + found.n_left_over == run.n_samples


def test_a_window_that_was_hardly_measured_is_left_out(draw):
    run = draw("redis", "long", n_samples=40)
    values = run.values.copy()
    values[11:17] = np.nan
    found = cut([type(run)(run.run_id, run.counters, run.at_s, values, "redis", interval_s=1.0)], SHORT)
    assert [item.from_s for item in found.items] == [0, 20, 30]
    assert found.n_left_over == 10


@pytest.mark.parametrize(("run_id", "trace"), [("a", "a"), ("a+1", "a"), ("c++", "c++"), ("c+++12", "c++")])
def test_pieces_of_a_run_that_a_gap_cut_are_one_trace(run_id, trace):
    assert trace_of(run_id) == trace


def test_pieces_lie_in_their_trace_where_their_start_says(campaign, draw):
    one, other = campaign(("redis",), rounds=1)
    pieces = [
        draw("redis", "trace+2", started_at=other.started_at, n_samples=30),
        draw("redis", "trace+1", started_at=one.started_at, n_samples=30),
    ]
    items = cut(pieces, SHORT).items
    assert {item.trace for item in items} == {"trace"}
    assert [item.from_s for item in items] == [0, 10, 20, 60, 70, 80]
    timeless = [draw("redis", f"trace+{number}", n_samples=20) for number in (10, 2)]  # in the order of their numbers
    found = [(item.run.run_id, item.from_s) for item in cut(timeless, SHORT).items]
    assert found == [("trace+2@0s", 0), ("trace+2@10s", 10), ("trace+10@0s", 20), ("trace+10@10s", 30)]


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


def test_seven_of_ten_runs_of_each_workload_with_each_input_are_learned_from(campaign, draw):
    items = items_of([*campaign(rounds=10), draw("mongo", "alone")])
    found = splits_of(items, "random", PARAMS)
    assert len(found.splits) == 5
    for split in found.splits:
        kinds = Counter((items[at].workload, items[at].run.input) for at in split.train)
        assert kinds.pop(("mongo", None)) == 1 and set(kinds.values()) == {7}  # one run is only learned from
    assert found.splits[0].test.tolist() != found.splits[1].test.tolist()
    same, other = (splits_of(items, "random", PARAMS.model_copy(update={"seed": seed})) for seed in (PARAMS.seed, 1))
    assert same.splits[0].test.tolist() == found.splits[0].test.tolist() != other.splits[0].test.tolist()


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


def test_many_rounds_are_sampled_evenly(campaign):
    found = splits_of(items_of(campaign(("redis", "mysql"), rounds=30, inputs=("one",))), "by_round", PARAMS).splits
    assert len(found) == 20 and (found[0].name, found[-1].name) == ("round 0", "round 29")
    assert np.unique([len(split.test) for split in found]).tolist() == [2]


def test_a_sample_takes_from_each_workload_alike(draw):
    runs = [draw("redis", f"r{at}") for at in range(90)] + [draw("mysql", f"m{at}") for at in range(5)]
    items = cut(runs, WindowParams()).items
    kept = sampled(items, 25, seed=0)
    labels = [item.workload for item in kept]
    assert labels.count("mysql") == 5 and labels.count("redis") == 20
    ids, order = [item.run.run_id for item in kept], [item.run.run_id for item in items]
    assert ids == sorted(set(ids), key=order.index)
    assert [item.run.run_id for item in sampled(items, 95, seed=0)] == order
