"""The real tools on real limits. Skipped where control groups, namespaces or the tools are not to be had."""

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tasks.machine import campaign_group, find_tool, makes_network_namespaces
from tasks.nodes.preprocess.unification import conversion_of
from tasks.nodes.record.campaign import parts_in, record_nodes
from tasks.nodes.record.control_groups import CONTROLLERS, PREFIX
from tasks.nodes.record.link import FOLDER
from tasks.nodes.record.params import EMULATED, SHORT, Dose, LoweredLimit, RecordParams
from tasks.nodes.tools import PARSERS

TOOLS = ("sysbench", "fio", "ioping", "qperf", "iperf3", "stress-ng", "nsenter", "tc")


@pytest.fixture
def machine(lock):
    """Skips, with the reason, where nodes cannot be emulated."""
    if lacking := [tool for tool in TOOLS if find_tool(tool) is None]:
        pytest.skip(f"not installed: {', '.join(lacking)}")
    if os.geteuid() or not makes_network_namespaces():
        pytest.skip("this user may not make network namespaces")
    with campaign_group(prefix=PREFIX, controllers=CONTROLLERS) as group:
        if group is None:
            pytest.skip("this user may not make control groups")


@pytest.fixture
def record(machine, tmp_path, lock):
    def go(**changes):
        params = RecordParams(
            **({"place": "emulated", "runs": 1, "stressed_ratio": 0, "foreign_limit_ratio": 1} | changes)
        )
        return record_nodes(params, tmp_path / "out")

    return go


def rows_of(folder):
    return [row for path in parts_in(folder).paths() for row in pq.read_table(path).to_pylist()]


@pytest.fixture
def left_behind(groups_of):
    pid = os.getpid()
    return lambda: groups_of(PREFIX, pid) + [path.name for path in FOLDER.glob(f"whorl-{pid}-*")]


@pytest.mark.slow
def test_every_benchmark_runs_on_a_slow_node_and_its_log_is_read_in_full(record, tmp_path, left_behind):
    others = set(Path("/var/tmp").glob("whorl-nodes-*/emulated-c"))  # of another recorder at work
    found = record(emulated=EMULATED[2:])
    assert (found.recorded, found.errors) == ({"clean": 6}, {})
    rows = {row["benchmark"]: row for row in rows_of(tmp_path / "out")}
    assert set(rows) == {one.benchmark for one in SHORT}
    for name, row in rows.items():
        assert row["status"] == "completed", row["log"]
        asked = [
            metric for metric in PARSERS[name].metrics if not metric.startswith("udp_") or name != "network-iperf3"
        ]
        assert len(row["metrics"]) + len(row["missing_metrics"]) == len(asked)
        assert len(row["metrics"]) >= 10
        assert row["tool_version"]
        assert row["duration_s"] < 12
    latency = next(one for one in rows["network-qperf"]["metrics"] if one["metric"] == "tcp_lat_latency")
    assert latency["value"] * conversion_of(latency["unit"]).factor >= 0.005  # one way, through the relay
    assert left_behind() == []
    assert set(Path("/var/tmp").glob("whorl-nodes-*/emulated-c")) <= others


@pytest.mark.slow
def test_a_node_with_half_a_processor_is_slower_and_its_metrics_say_so(record, tmp_path):
    record(emulated=(EMULATED[0], EMULATED[2]), benchmarks=("cpu-sysbench", "network-iperf3"), runs=2)
    speed, rate = {}, {}
    for row in rows_of(tmp_path / "out"):
        metrics = {one["metric"]: one["value"] for one in row["metrics"]}
        if row["benchmark"] == "cpu-sysbench":
            speed.setdefault(row["machine_type"], []).append(metrics["events_per_second"])
        else:
            series = {one["metric"]: one["samples"] for one in row["telemetry"]}
            rate.setdefault(row["machine_type"], []).append(max(series["network_out_bytes"]) * 8 / 1e6)
    assert max(speed["emulated-half-core"]) < min(speed["emulated-two-cores"]) / 2
    assert max(rate["emulated-half-core"]) < 250 < max(rate["emulated-two-cores"])


@pytest.mark.slow
def test_stress_on_the_same_node_slows_the_benchmark_and_is_seen_at_work(record, tmp_path):
    command = "stress-ng --cpu 4 --temp-path {folder} --timeout {limit_s}s"
    doses = tuple(
        Dose(benchmark="cpu-sysbench", level=level, name=f"cpu-{level}", command=command, cpu_ratio=level / 6)
        for level in (1, 2, 3)
    )
    found = record(emulated=EMULATED[1:2], benchmarks=("cpu-sysbench",), doses=doses, runs=6, stressed_ratio=0.5)
    assert found.recorded == {"clean": 6}
    speed = {"": []}
    for row in rows_of(tmp_path / "out"):
        value = next(one["value"] for one in row["metrics"] if one["metric"] == "events_per_second")
        speed.setdefault(row["dose"], []).append(value)
        assert row["is_stressed"] == row["stress_wanted"]
    assert speed["cpu-3"][0] < 0.7 * min(speed[""])
    assert speed["cpu-3"][0] < speed["cpu-1"][0]


@pytest.mark.slow
def test_packets_are_late_while_a_dose_says_so_with_a_delay_of_the_link_s_own_and_without(record, tmp_path):
    added_ms = 20.0
    doses = tuple(Dose(benchmark="network-qperf", level=level, name="late", delay_ms=added_ms) for level in (1, 2, 3))
    params = {"benchmarks": ("network-qperf",), "doses": doses, "runs": 2, "stressed_ratio": 0.5}
    assert record(emulated=(EMULATED[0], EMULATED[2]), **params).recorded == {"clean": 4}
    latency_ms = {}
    for row in rows_of(tmp_path / "out"):
        found = next(one for one in row["metrics"] if one["metric"] == "tcp_lat_latency")
        latency_ms[row["node"], row["is_stressed"]] = found["value"] * conversion_of(found["unit"]).factor * 1000
    for node, own_ms in (("emulated-a", 0), ("emulated-c", EMULATED[2].delay_ms)):
        assert own_ms <= latency_ms[node, False] < added_ms + own_ms <= latency_ms[node, True]


@pytest.mark.slow
def test_a_quota_that_is_lowered_half_way_slows_the_node_from_then_on(record, tmp_path):
    lowered = (LoweredLimit(node="emulated-b", after_ratio=0.5, cpu_percent=30),)
    record(emulated=EMULATED[1:2], benchmarks=("cpu-sysbench",), lowered=lowered, runs=4)
    speed = {"": [], "lowered-cpu-30": []}
    for row in rows_of(tmp_path / "out"):
        speed[row["dose"]] += [one["value"] for one in row["metrics"] if one["metric"] == "events_per_second"]
    before, after = speed.values()
    assert len(before) == len(after) == 2
    assert max(after) < 0.5 * min(before)


@pytest.mark.slow
def test_this_machine_as_it_is_needs_no_arguments(machine, tmp_path, lock, left_behind):
    found = record_nodes(RecordParams(executions=2, foreign_limit_ratio=1), tmp_path / "out")
    assert found.recorded == {"clean": 2}
    assert {row["is_emulated"] for row in rows_of(tmp_path / "out")} == {False}
    assert left_behind() == []
