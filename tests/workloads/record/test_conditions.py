"""Conditions: balanced wherever a recording stops, and told beside every run."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
import pytest

from tasks.machine import CGROUP_ROOT
from tasks.workloads.params import Condition, ReadParams, RecordParams
from tasks.workloads.readers import READERS
from tasks.workloads.record.campaign import planned, record_workloads
from tasks.workloads.record.plan import Plan, make_plan

RECORDED = Path(__file__).parents[3] / "data" / "recorded" / "workloads"
ALL = get_args(Condition)


def test_the_campaign_without_conditions_is_the_one_that_was_recorded_before_there_were_any():
    record = json.loads(pq.read_schema(RECORDED / "runs-0001.parquet").metadata[b"whorl.record"])
    assert planned(RecordParams()).digest() == record["plan"]


@pytest.mark.parametrize("n_runs", [66, 100, 200, 330])
def test_wherever_a_recording_stops_conditions_and_workloads_are_balanced(n_runs):
    runs = planned(RecordParams(conditions=ALL)).runs[:n_runs]
    workloads = Counter(name for run in runs for name in (run.workload, run.partner) if name)
    uneven = 1.0 if n_runs < 200 else 0.25  # a round deals out each condition on its own
    learned = [workloads[name] for name in ("redis", "mariadb", "wordpress", "bayes", "compile", "nginx")]
    never = [workloads[name] for name in ("sqlite", "ffmpeg", "matrices", "jvm", "sort", "openssl")]
    assert min(learned) > 0
    assert max(learned) - min(learned) <= uneven * max(learned)
    assert max(never) - min(never) <= uneven * max(never)
    shares = Counter((run.condition, run.load_level, run.limit_cores) for run in runs)
    asked = {("pair", None, None): 8, ("load", 0.6, None): 6, ("limit", None, 0.5): 6, ("idle", None, None): 3}
    for key, n in asked.items():
        assert abs(shares[key] - n * n_runs / 66) <= 1.5


def test_a_pair_does_not_come_again_before_all_others_have_run_together():
    runs = planned(RecordParams(conditions=("pair",), rounds=6)).runs
    pairs = [frozenset((run.workload, run.partner)) for run in runs]
    assert len(set(pairs[:45])) == 45
    assert all(len(pair) == 2 for pair in pairs)


def test_the_same_seed_gives_the_same_plan_and_only_the_conditions_asked_for():
    params = RecordParams(conditions=("limit", "idle"), rounds=2)
    assert planned(params).digest() == planned(params).digest()
    assert {run.condition for run in planned(params).runs} == {"limit", "idle"}
    assert {run.limit_cores for run in planned(params).runs} == {0.5, 1.0, None}


def two_of_each(params, programs):
    """The plan, cut to two runs of each condition and limit: a whole round takes three times as long."""
    kept, counts = [], Counter()
    for run in make_plan(params, programs).runs:
        counts[run.condition, run.limit_cores] += 1
        kept += [run] if counts[run.condition, run.limit_cores] <= 2 else []
    return Plan((tuple(kept),))


@pytest.fixture
def shared(busy, quick, tmp_path, lock, monkeypatch, having):
    """Two learned workloads, one that is not and nothing, recorded under these conditions: the runs by name."""
    monkeypatch.setattr("tasks.workloads.record.campaign.make_plan", two_of_each)
    programs = {name: busy(name) for name in ("red", "blue", "grey", "idle")}
    programs["grey"].role, programs["idle"].role = "unlearned", "idle"
    programs["idle"].code = "import time; time.sleep(60)"

    having(*programs.values())

    def record(*conditions):
        params = quick.model_copy(update={"conditions": conditions, "samples": 6, "foreign_limit_ratio": 0.001})
        found = record_workloads(params, tmp_path)
        if found.isolation != "cgroups" or not os.access(CGROUP_ROOT, os.W_OK):
            pytest.skip("no control groups here")
        [path] = tmp_path.glob("*.parquet")
        return found, pq.read_table(path), READERS["wide"].read(str(path), ReadParams()).runs

    return record


def test_two_at_once_give_two_runs_with_one_machine_and_a_group_each(shared):
    found, table, runs = shared("pair")
    assert (found.recorded, len(runs)) == ({"clean": found.planned}, 2 * found.planned) != ({"clean": 0}, 0)
    by_recording = {}
    for run in runs:
        by_recording.setdefault(run.conditions.recording, []).append(run)
    for one, other in by_recording.values():
        assert {one.labels["workload"], other.labels["workload"]} == {"red", "blue"}
        assert one.conditions.partner == other.labels["workload"]
        assert one.conditions.own_share == other.conditions.partner_share
        names = [counter.name for counter in one.counters]
        at, own = names.index("cpu.user_cores"), names.index("own.cpu.user_cores")
        assert one.values[:, at].tolist() == other.values[:, at].tolist()
        assert one.values[:, own].tolist() != other.values[:, own].tolist()
        assert one.processes and other.processes and max(one.processes.values()) > 0.5
    assert not [name for name in table.column_names if name.startswith("partner.")]


def test_the_share_of_everybody_is_told_beside_the_run_and_half_a_core_is_what_a_group_gets(shared):
    _, _, runs = shared("limit", "alone")
    told = {run.conditions.condition for run in runs}
    assert told <= {"limit", "alone", "wild"}
    for run in runs:
        assert 0 <= run.conditions.own_share <= 1
        assert run.conditions.foreign_share is not None
        assert "own_share" not in [counter.name for counter in run.counters]
    halves = [run for run in runs if run.conditions.limit_cores == 0.5]
    assert halves
    for run in halves:
        assert run.conditions.own_share * (os.cpu_count() or 1) < 0.75
