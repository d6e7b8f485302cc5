from datetime import datetime

import numpy as np

from tasks.workloads.identify.folds import clusters_of, folds_of
from tasks.workloads.telemetry import Counter, Telemetry


def run(run_id, workload="redis", **labels):
    return Telemetry(run_id, (Counter("a"),), np.arange(2.0), np.zeros((2, 1)), workload=workload, **labels)


def test_rounds_stay_together_in_their_order():
    runs = [run(f"{name}{at}", name, round=str(at)) for at in (10, 9, 1, 2) for name in ("redis", "nginx")]
    assert folds_of(runs, 2).tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_without_rounds_neighbours_in_time_stay_together():
    runs = [run(str(at), started_at=datetime(2026, 1, day)) for at, day in enumerate([5, 1, 4, 2, 3, 6])]
    assert folds_of(runs, 3).tolist() == [2, 0, 1, 0, 1, 2]


def test_a_round_with_most_of_the_runs_is_not_held_out_whole():
    runs = [run(str(at), round="1" if at < 7 else "2") for at in range(9)]
    assert folds_of(runs, 3).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_each_workload_is_dealt_by_itself():
    runs = [run("a1"), run("a2"), run("b1", "nginx"), run("b2", "nginx")]
    assert folds_of(runs, 2).tolist() == [0, 1, 0, 1]


def test_repetitions_share_workload_and_input():
    found = clusters_of([run("1", input="small"), run("2", input="large"), run("3", input="small"), run("4")])
    assert found[0] == found[2] and len(set(found)) == 3
