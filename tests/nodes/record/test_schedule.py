"""Executions in turn: what cannot be run, waits for the network, folders that are shared, stress that cannot be had."""

from contextlib import contextmanager

import pyarrow.parquet as pq
import pytest

from tasks.errors import BadSetting, WhorlError
from tasks.nodes.record import campaign
from tasks.nodes.record.params import LoweredLimit
from tasks.nodes.record.parts import part_paths
from tasks.nodes.record.sampler import NodeSampler


def rows_of(folder):
    rows = [row for path in part_paths(folder) for row in pq.read_table(path).to_pylist()]
    return sorted(rows, key=lambda row: row["started_at"])


def without_groups(planned):
    """The plan where limits count as set though there are no control groups."""
    return lambda params, templates=None, has_groups=True: planned(params, templates)


def test_a_benchmark_that_cannot_be_run_does_not_hold_up_the_others(record, quick):
    *others, network = quick.short
    broken = network.model_copy(update={"server": "sh -c 'echo no such device; exit 1' {server}"})
    steady = {"place": "local", "node": "here", "runs": 0, "short": (*others, broken)}
    found = record(**steady, executions=4)
    assert (found.recorded, len(found.errors)) == ({"clean": 4}, 1)
    later = record(**steady, executions=1)
    assert (later.recorded, len(later.errors)) == ({"clean": 1}, 1)


def test_where_nothing_can_be_run_each_is_tried_once(record, quick):
    broken = quick.short[2].model_copy(update={"server": "sh -c 'exit 1' {server}"})
    found = record(place="local", runs=0, short=(broken,), executions=5)
    assert (found.recorded, len(found.errors)) == ({}, 1)


def test_what_was_sampled_around_an_execution_outlives_a_long_wait_for_the_network(record, tmp_path, monkeypatch):
    samplers, turns, forgotten = [], [], []

    class Watched(NodeSampler):
        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            samplers.append(self)

    @contextmanager
    def turn(template):
        if template.is_network and turns[-1:] == ["cpu-fake"] and len(turns) > 1 and not forgotten:
            with samplers[0]._lock:
                samplers[0].taken.clear()  # as after a wait that is longer than samples are kept
            forgotten.append(len(turns) - 1)
        turns.append(template.benchmark)
        yield

    monkeypatch.setattr("tasks.nodes.record.staging.NodeSampler", Watched)
    margin_s = 0.4  # so long that the execution before the network's still waits for its last samples
    # not of the first execution, before which nothing was sampled
    record(turn=turn, place="local", benchmarks=("cpu-fake", "network-fake"), margin_s=margin_s, runs=4)
    waited = rows_of(tmp_path / "out")[forgotten[0]]
    at_s = waited["telemetry"][0]["at_s"]
    assert at_s[0] <= 0
    assert at_s[-1] >= waited["duration_s"] + margin_s


def test_a_turn_that_is_not_given_costs_that_execution_alone(record):
    @contextmanager
    def turn(template):
        if template.is_network:
            raise WhorlError("the server does not answer")
        yield

    found = record(turn=turn, runs=1)
    assert found.recorded == {"clean": 4}
    assert list(found.errors.values()) == ["the server does not answer"] * 2
    assert record(runs=1).clean == 6


def test_a_campaign_and_calls_without_one_may_share_a_folder(record, tmp_path):
    def leave(done, _):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record(leave, campaign="mine")
    assert record(runs=0, executions=1).recorded == {"clean": 2}
    seen = []
    found = record(lambda *told: seen.append(told))
    assert (found.planned, found.clean) == (12, 12)
    assert seen[-1] == (12, 12)
    rows = rows_of(tmp_path / "out")
    assert len({row["execution_id"] for row in rows}) == len(rows) == 14
    assert sum(row["campaign"].startswith("mine-") for row in rows) == 12


def test_a_template_whose_logs_nobody_reads_is_refused_before_anything_runs(record, quick, scratch):
    unread = quick.short[0].model_copy(update={"benchmark": "cpu-other"})
    with pytest.raises(BadSetting, match=r"nobody reads the logs of cpu-other; expected benchmarks of cpu-fake, "):
        record(short=(unread,))
    assert not scratch.exists()


def test_stress_that_cannot_be_applied_here_is_told_before_the_campaign_begins(record, tmp_path, quick, caplog):
    doses = tuple(
        one.model_copy(update={"cpu_ratio": 0.1} if one.benchmark == "cpu-fake" else {})
        for one in quick.doses
        if (one.benchmark, one.level) != ("disk-fake", 3)
    )
    told = []

    def tell(*_):
        told.append(list(caplog.messages))

    here = {"place": "local", "node": "here", "benchmarks": ("cpu-fake", "disk-fake")}
    record(tell, doses=doses, stressed_ratio=0.5, runs=6, **here)
    lines = (
        "cpu-fake is not stressed by burn-1, burn-2, burn-3 (no control groups here)",
        "disk-fake is not stressed at level 3 (none in nodes.record.doses)",
    )
    assert f"2 of the 12 executions will be stressed, and not 6: {'; '.join(lines)}" in told[0]
    record_told = record_of(pq.read_schema(tmp_path / "out" / "executions-0001.parquet"))
    assert record_told["unavailable"] == {"here": list(lines)}
    assert sum(row["stress_wanted"] for row in rows_of(tmp_path / "out")) == 2


@pytest.mark.parametrize(
    ("node", "message"), [("c", "no node c; expected some of a, b"), ("a", "no control groups here; take it out")]
)
def test_a_limit_that_cannot_be_lowered_is_refused_before_anything_runs(record, tmp_path, node, message):
    with pytest.raises(BadSetting, match=rf"nodes\.record\.lowered: {message}"):
        record(lowered=(LoweredLimit(node=node, cpu_percent=80),))
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_a_limit_is_lowered_from_its_share_of_the_plan_on_and_in_every_later_repetition(record, tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.nodes.record.campaign.planned", without_groups(campaign.planned))
    record(runs=4, lowered=(LoweredLimit(node="a", after_ratio=0.5, cpu_percent=80),))
    rows = rows_of(tmp_path / "out")
    lowered = [place >= len(rows) / 2 and row["node"] == "a" for place, row in enumerate(rows)]
    assert [row["dose"] for row in rows] == ["lowered-cpu-80" if is_lowered else "" for is_lowered in lowered]
    assert {(row["dose_level"], row["is_stressed"]) for row in rows} == {(0, False)}
    facts = record_of(pq.read_schema(tmp_path / "out" / "executions-0001.parquet"))["executions"]
    assert sum(one.get("lowered") == ["lowered-cpu-80"] for one in facts.values()) == 6
