"""Without a plan: what a node lacks comes first, then what is doubtful, then what is stalest."""

from datetime import datetime, timedelta

import pandas as pd

from tasks.nodes.record.steady import Past, next_benchmark, past_of
from tasks.nodes.record.templates import PAPER, SHORT

START = datetime(2026, 11, 21)
TWO = SHORT[:2]


def past(template, hours, is_flagged=False):
    return Past(template.benchmark, template.template_hash, START + timedelta(hours=hours), is_flagged)


def all_of(*flagged, templates=SHORT):
    return [past(one, hour, one.benchmark in flagged) for hour, one in enumerate(templates)]


def test_a_node_without_history_gets_each_benchmark_once():
    history = []
    for _ in SHORT:
        history.append(past(next_benchmark(history, SHORT), len(history)))
    assert [one.benchmark for one in history] == [one.benchmark for one in SHORT]


def test_executions_of_another_template_do_not_complete_a_set():
    history = [past(one, hour) for hour, one in enumerate(PAPER)]
    assert next_benchmark(history, SHORT) is SHORT[0]


def test_then_the_stalest_is_repeated_whatever_the_order_of_the_history():
    history = [past(SHORT[0], 9), *all_of(templates=SHORT[1:])]
    assert next_benchmark(history, SHORT) is SHORT[1]
    assert next_benchmark(history[::-1], SHORT) is SHORT[1]


def test_a_flagged_one_goes_before_the_stalest():
    assert next_benchmark(all_of("disk-fio"), SHORT).benchmark == "disk-fio"


def test_one_that_was_repeated_cleanly_is_no_longer_doubtful():
    history = [*all_of("disk-fio"), past(SHORT[2], 50)]
    assert next_benchmark(history, SHORT) is SHORT[0]


def test_on_a_machine_that_is_never_quiet_the_others_have_their_turn():
    history = all_of()
    seen = set()
    for hour in range(100, 140):
        benchmark = next_benchmark(history, SHORT)
        seen.add(benchmark.benchmark)
        history.append(past(benchmark, hour, is_flagged=True))
    assert seen == {one.benchmark for one in SHORT}


def test_the_warehouse_s_executions_of_one_node_are_its_past():
    frame = pd.DataFrame(
        {
            "node": ["a", "a", "a", "b"],
            "benchmark": ["cpu-sysbench"] * 4,
            "template_hash": ["1"] * 4,
            "started_at": [START] * 4,
            "status": ["completed", "failed", "completed", "completed"],
            "is_contaminated": [False, False, True, True],
        }
    )
    assert [one.is_flagged for one in past_of(frame, "a")] == [False, True, True]
    frame["is_contaminated"] = pd.array([None, None, True, True], dtype="boolean")
    assert [one.is_flagged for one in past_of(frame, "a")] == [False, True, True]
