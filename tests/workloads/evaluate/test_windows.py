import numpy as np
import pytest

from tasks.workloads.evaluate.params import WindowParams
from tasks.workloads.evaluate.windows import cut, trace_of

SHORT = WindowParams(width_s=10)


def test_a_short_run_is_one_item_and_a_long_trace_is_cut(draw):
    found = cut([draw("redis", "short", n_samples=30), draw("redis", "long", n_samples=45)], SHORT)
    assert [(item.run.run_id, item.is_window) for item in found.items] == [
        ("short", False),
        *[(f"long@{start}s", True) for start in (0, 10, 20, 30)],
    ]
    assert [item.from_s for item in found.items[1:]] == [0, 10, 20, 30]
    assert found.n_left_over == 5  # the last half of a window


def test_a_window_has_the_samples_of_its_time_counted_from_its_own_start(draw):
    run = draw("redis", "long", n_samples=40)
    window = cut([run], SHORT).items[2].run
    np.testing.assert_array_equal(window.values, run.values[20:30])
    np.testing.assert_array_equal(window.at_s, np.arange(10.0))
    assert window.workload == "redis"


def test_windows_may_overlap(draw):
    items = cut([draw("redis", "long", n_samples=40)], WindowParams(width_s=10, step_s=5)).items
    assert [item.from_s for item in items] == [0, 5, 10, 15, 20, 25, 30]
    assert all(item.run.n_samples == 10 for item in items)


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


def test_pieces_without_a_start_follow_each_other_in_the_order_of_their_numbers(draw):
    pieces = [draw("redis", f"trace+{number}", n_samples=20) for number in (10, 2)]
    items = cut(pieces, SHORT).items
    assert [(item.run.run_id, item.from_s) for item in items] == [
        ("trace+2@0s", 0),
        ("trace+2@10s", 10),
        ("trace+10@0s", 20),
        ("trace+10@10s", 30),
    ]
