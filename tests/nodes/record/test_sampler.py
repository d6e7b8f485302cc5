"""Metrics of a node from its counters, and the samples around an execution."""

from math import isnan

import numpy as np
import pytest

from tasks.nodes.record.node_place import make_place
from tasks.nodes.record.params import NodeParams
from tasks.nodes.record.sampler import METRICS, NodeReader, NodeSampler

BY_NAME = {metric.name: metric for metric in METRICS}
PERONA = {
    "memory_used", "memory_swap", "cpu_busy", "disk_read_util", "disk_write_util", "disk_io_util", "filesystem_util",
    "network_in_errors", "network_out_errors", "disk_read_bytes", "disk_write_bytes", "network_in_bytes",
    "network_out_bytes",
}  # fmt: skip


def value(name, before, after, lasted_s=2.0):
    return BY_NAME[name].of(before, after, lasted_s)


def test_perona_s_thirteen_are_there_with_pressure_load_and_steal_beside_them():
    assert set(BY_NAME) >= PERONA
    assert {"load_1m", "cpu_steal", "pressure_io_full", "pressure_memory_some"} <= set(BY_NAME)


def test_a_rate_is_the_growth_over_the_seconds_between():
    assert value("network_in_bytes", {"other.received_bytes": 100}, {"other.received_bytes": 500}) == 200.0
    # half of all processors' time, of which one second in two was busy
    assert value("cpu_busy", {"cpu.busy_share_s": 10.0}, {"cpu.busy_share_s": 11.0}) == 50.0
    waited = value("pressure_cpu_some", {"pressure.cpu.some": 0.0}, {"pressure.cpu.some": 500_000.0})
    assert waited == pytest.approx(25.0)


def test_errors_are_a_share_of_packets_and_none_of_none_is_none():
    before = {"other.received_errors": 0, "other.received_packets": 100}
    assert value("network_in_errors", before, {"other.received_errors": 5, "other.received_packets": 200}) == 5.0
    assert value("network_in_errors", before, before) == 0.0


def test_what_is_not_said_or_was_reset_is_missing():
    assert isnan(value("network_in_bytes", {}, {"other.received_bytes": 5}))
    assert isnan(value("network_in_bytes", {"other.received_bytes": 50}, {"other.received_bytes": 5}))
    assert isnan(value("memory_swap", {}, {}))


class Counting(NodeReader):
    """A node whose network receives 100 bytes between two readings."""

    def __init__(self):
        self.n = 0

    def read(self, machine):
        self.n += 1
        return {"other.received_bytes": 100.0 * self.n, "memory_used": float("nan") if self.n == 3 else 50.0}

    def close(self):
        self.n = -1


@pytest.fixture
def sampler(tmp_path, monkeypatch):
    clock = iter(float(second) for second in range(100))
    monkeypatch.setattr("tasks.nodes.record.sampler.time.monotonic", lambda: next(clock))
    sampler = NodeSampler({"n": Counting()}, tmp_path, interval_s=1.0)
    for _ in range(8):
        sampler.take()  # at 1, 2, … 8: the clock's 0 was its begin
    monkeypatch.undo()
    return sampler


def test_samples_reach_from_before_the_begin_until_after_the_end(sampler):
    series = {one.metric: one for one in sampler.between("n", 3.5, 5.5, zero_s=4.0)}
    # samples inside at 4 and 5, and one beyond each end
    assert series["network_in_bytes"].at_s.tolist() == [-1.0, 0.0, 1.0, 2.0]
    assert series["network_in_bytes"].samples.tolist() == [100.0] * 4
    assert series["network_in_bytes"].unit == "B/s"


def test_a_metric_that_one_sample_lacks_is_nan_there_and_one_that_all_lack_is_left_out(sampler):
    series = {one.metric: one for one in sampler.between("n", 2.5, 4.5, zero_s=2.5)}
    assert np.isnan(series["memory_used"].samples).tolist() == [False, True, False, False]
    assert "memory_swap" not in series


def test_what_is_forgotten_leaves_what_the_samples_after_it_are_counted_from(sampler):
    kept = sampler.between("n", 6.5, 7.5, zero_s=7.0)
    sampler.forget(6.5)
    assert [at_s for at_s, _ in sampler.taken] == [5.0, 6.0, 7.0, 8.0]
    again = sampler.between("n", 6.5, 7.5, zero_s=7.0)
    assert [one.samples.tolist() for one in again] == [one.samples.tolist() for one in kept]


def test_a_sampler_at_work_samples_on_its_grid_and_tells_its_cost(scratch):
    scratch.mkdir()
    place = make_place(NodeParams(name="n", machine_type="t"), 1, scratch, None, is_emulated=False, has_network=False)
    sampler = NodeSampler({"n": NodeReader(place)}, scratch, interval_s=0.05)
    sampler.start()
    while len(sampler.taken) < 4 and sampler.is_alive():  # however slow the machine is: samples that are late are taken
        sampler.covers(sampler.began_s)
    sampler.stop()
    taken = [at_s for at_s, _ in sampler.taken]
    assert len(taken) <= (taken[-1] - taken[0]) / 0.05 + 2
    assert sampler.cores > 0
