"""The sampler: a fixed grid, a base that is no sample, and an end when it is told."""

import os
import time

import numpy as np
import pytest

from tasks.workloads.record.counters import machine_sources, opened
from tasks.workloads.record.sampler import first_in_line, sample


@pytest.fixture
def sources():
    ready, _ = opened(machine_sources()[:3])
    yield ready
    for source in ready:
        source.close()


class Clock:
    """Time that passes only when somebody sleeps or reads slowly."""

    def __init__(self, monkeypatch, slow=None):
        self.now, self.slow, self.reads = 100.0, slow or {}, 0
        monkeypatch.setattr("tasks.workloads.record.sampler.time.monotonic", lambda: self.now)
        monkeypatch.setattr("tasks.workloads.record.sampler.time.sleep", self.sleep)

    def sleep(self, seconds):
        self.now += seconds


class Slow:
    """A source whose n-th reading takes as long as it is told."""

    measures = ()

    def __init__(self, clock):
        self.clock = clock

    def read(self):
        self.clock.now += self.clock.slow.get(self.clock.reads, 0.0)
        self.clock.reads += 1
        return b""

    def values(self, raw):
        return []


def test_samples_stand_on_the_grid_and_a_slow_one_does_not_move_the_next(monkeypatch):
    clock = Clock(monkeypatch, slow={1: 0.4, 2: 0.4})
    found = sample([Slow(clock)], 4, 1.0)
    assert found.at_s == pytest.approx([1.0, 2.0, 3.0, 4.0])
    assert (found.missed, found.is_whole) == (0, True)


def test_a_sample_that_would_be_a_whole_interval_late_is_left_out_and_counted(monkeypatch):
    clock = Clock(monkeypatch, slow={1: 2.5})
    found = sample([Slow(clock)], 5, 1.0)
    assert found.at_s == pytest.approx([1.0, 3.5, 4.0, 5.0])
    assert found.missed == 1


def test_the_work_starts_after_the_base_and_before_the_first_sample(sources):
    began = []
    found = sample(sources, 2, 0.05, on_start=lambda: began.append(time.monotonic()))
    assert len(began) == 1
    assert found.values.shape == (2, len(found.counters))
    assert found.at_s[0] > 0


def test_it_ends_early_when_told_and_says_so(sources):
    told = iter([False, True])
    found = sample(sources, 50, 0.2, should_stop=lambda: next(told, True))
    assert not found.is_whole
    assert len(found.at_s) < 3


def test_its_own_cost_is_counted(sources):
    assert 0 < sample(sources, 2, 0.05).own_cpu_s < 0.1


def test_idle_and_busy_time_add_up_to_the_cores_of_the_machine(sources):
    found = sample(sources, 1, 0.5)
    times = [n for n, c in enumerate(found.counters) if c.name.startswith("cpu.") and c.name.endswith("_cores")]
    assert np.nansum(found.values[0, times]) == pytest.approx(os.cpu_count(), rel=0.2)


def test_the_thread_gets_its_old_place_in_line_back():
    before = os.sched_getscheduler(0)
    with first_in_line():
        pass
    assert os.sched_getscheduler(0) == before
