"""The sampler keeps its grid; perf beside it: its lines, its events, its child."""

import os
import time
from math import isnan

import numpy as np
import pytest

from tasks.machine import ControlGroup
from tasks.workloads.record.counters import machine_sources, opened
from tasks.workloads.record.sampler import (
    Event,
    PerfPlan,
    events_of,
    first_in_line,
    parse_perf,
    perf_group,
    rates_at,
    sample,
)

LINES = """# started on Sat Nov 21 11:10:00 2026

     1.001000000;11028;;context-switches;2006550512;100.00;5.497;K/sec
     1.001000000;<not supported>;;cycles;0;100.00;;
     1.001000000;100;;context-switches;zz;659340724;100.00;;
     2.003000000;2004;;context-switches;2013125599;100.00;4.680;K/sec
     2.003000000;<not supported>;;cycles;0;100.00;;
     2.003000000;<not counted>;;context-switches;zz;0;100.00;;
     3.003000000;500;;context-switches;2013125599;100.00;4.680;K/sec
     3.003000000;7000;;cycles;0;100.00;;
     3.003000000;50;;context-switches;zz;989158974;100.00;;
     3.408000000;400;;context-switches;999902016;100.00;4.537;K/sec
     3.408000000;<not supported>;;cycles;0;100.00;;
     3.408000000;1;;context-switches;zz;203242039;100.00;;
""".splitlines()


def test_intervals_hold_the_counts_in_the_order_of_the_events():
    found = parse_perf(LINES)
    assert (found[1.001][0], found[1.001][2]) == (11028.0, 100.0)
    assert isnan(found[1.001][1])
    assert [isnan(count) for count in found[2.003]] == [False, True, True]
    garbage = ["", "Warning: something", "a;b;c;d", "1.0;;x", *LINES[2:5]]  # is passed over
    assert parse_perf(garbage)[1.001][0] == 11028.0


def test_counts_become_rates_of_the_whole_interval_that_ended_nearest_to_the_sample():
    rates = rates_at(LINES, np.array([1.0, 2.0, 3.0]), 3, 1.0)
    assert rates[0][0] == pytest.approx(2004 / 1.002)
    assert rates[1] == pytest.approx([500.0, 7000.0, 50.0])
    assert np.isnan(rates[2]).all()  # perf was gone by then: the last interval is partial
    gap = [line for line in LINES if "2.003" not in line]  # a missing interval is not spread over its neighbours
    for lines in (gap, LINES[:-7], []):  # nor one that lacks an event, as the second has none of the third
        assert np.isnan(rates_at(lines, np.array([1.0, 2.0]), 3, 1.0)).all()


def test_hardware_events_are_asked_for_only_where_there_is_a_unit_for_them(tmp_path):
    (tmp_path / "sched" / "sched_wakeup").mkdir(parents=True)
    (tmp_path / "sched" / "sched_wakeup" / "id").touch()
    without, missing = events_of("light", has_pmu=False, roots=(tmp_path,))
    assert "sched:sched_wakeup" in [event.event for event in without]
    reasons = {one.counter: one.reason for one in missing}
    assert reasons["perf.cycles"].startswith("no performance monitoring unit")
    assert reasons["perf.signal_deliver"] == "no tracepoint signal:signal_deliver"
    everything, _ = events_of("light", has_pmu=True, roots=(tmp_path,))
    assert {event.name for event in everything if event.kind == "hardware"} >= {"perf.cycles", "perf.llc_load_misses"}


def test_system_calls_are_counted_only_when_asked_for(tmp_path):
    (tmp_path / "raw_syscalls" / "sys_enter").mkdir(parents=True)
    (tmp_path / "raw_syscalls" / "sys_enter" / "id").touch()
    light, every = (events_of(profile, has_pmu=False, roots=(tmp_path,))[0] for profile in ("light", "syscalls"))
    assert {event.name for event in every} - {event.name for event in light} == {"perf.sys_enter"}


def test_events_of_the_group_stand_behind_those_of_the_machine_each_with_its_group():
    plan = PerfPlan("none")
    plan.perf = "perf"
    plan.events, _ = events_of("light", has_pmu=True, roots=())
    command = plan.command({"own.": "a/b", "partner.": None})
    groups, names = command[command.index("-G") + 1].split(","), command[command.index("-e") + 1].split(",")
    assert len(groups) == len(names) == len(plan.counters({"own.": "a/b"}))
    assert groups == ["a/b" if c.scope == "workload" else "" for c in plan.counters({"own.": "a/b"})]


TWO = {"own.": "a", "partner.": "b"}


def test_two_groups_are_counted_at_once_and_told_apart():
    plan = PerfPlan("none")
    plan.perf = "perf"
    plan.events, _ = events_of("light", has_pmu=False, roots=())
    command, counters = plan.command(TWO), plan.counters(TWO)
    groups = command[command.index("-G") + 1].split(",")
    named = {group: {c.name for c, g in zip(counters, groups, strict=True) if g == group} for group in ("a", "b")}
    assert {name.removeprefix("own.") for name in named["a"]} == {name.removeprefix("partner.") for name in named["b"]}


def test_perf_knows_a_group_by_its_path_in_the_version_2_tree(tmp_path):
    (tmp_path / "unified" / "x" / "y").mkdir(parents=True)
    group = ControlGroup(1, {"cpu": tmp_path / "cpu" / "x" / "y", "unified": tmp_path / "unified" / "x" / "y"})
    assert perf_group(group, tmp_path) == "x/y"
    assert perf_group(ControlGroup(1, {"cpu": tmp_path / "cpu"}), tmp_path) is None


def test_events_that_perf_cannot_count_in_a_group_are_listed_with_the_reason():
    plan = PerfPlan("none")
    plan.events = (
        Event("context-switches", "switches", "", scopes=("workload",)),
        Event("x:y", "", "", scopes=("machine",)),
    )
    assert [one.counter for one in plan.uncounted({"own.": None, "other.": "a/b"})] == ["own.perf.context_switches"]
    assert "perf_event" in plan.uncounted({"own.": None})[0].reason


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


def test_idle_and_busy_time_add_up_to_the_cores_of_the_machine(sources):
    found = sample(sources, 1, 0.5)
    times = [n for n, c in enumerate(found.counters) if c.name.startswith("cpu.") and c.name.endswith("_cores")]
    assert np.nansum(found.values[0, times]) == pytest.approx(os.cpu_count(), rel=0.2)
    assert 0 < found.own_cpu_s < 0.2  # its own cost is counted


def test_the_thread_gets_its_old_place_in_line_back():
    before = os.sched_getscheduler(0)
    with first_in_line():
        pass
    assert os.sched_getscheduler(0) == before
