"""What disturbed an execution, and stress that counts as applied only if it was at work from begin to end."""

import os
import time
from dataclasses import replace
from math import isnan

import pytest

from tasks.nodes.record.bench import (
    Disturbance,
    Stressor,
    StressReading,
    Usage,
    Usages,
    applied,
    disturbance_between,
    kernel_threads_s,
)
from tasks.nodes.record.params import Dose, NodeParams
from tasks.nodes.record.place import make_place

BEFORE = Usage(at_s=10.0, all_s=100.0, ours_s=50.0, recorder_s=5.0, steal_s=1.0)


def test_foreign_is_what_neither_the_campaign_nor_the_recorder_used():
    after = Usage(at_s=12.0, all_s=103.0, ours_s=51.8, recorder_s=5.2, steal_s=1.1)
    found = disturbance_between(BEFORE, after)
    assert found.foreign_cores == pytest.approx(0.5)  # 3.0 less 1.8 less 0.2, over two seconds
    assert found.steal_cores == pytest.approx(0.05)
    assert found.exceeds(0.1, cores=2)
    assert not found.exceeds(0.3, cores=2)


def test_the_kernel_s_own_threads_work_for_the_benchmark_and_are_nobody_else():
    after = Usage(at_s=12.0, all_s=103.0, ours_s=51.8, recorder_s=5.2, steal_s=1.0, kernel_s=0.8)
    assert disturbance_between(BEFORE, after).foreign_cores == pytest.approx(0.1)


def test_threads_of_the_kernel_are_the_children_of_its_second_process(tmp_path):
    ticks = os.sysconf("SC_CLK_TCK")
    rest = "0 0 0 -1 0 0 0 0 0"
    for pid, parent, user, system in ((5, 2, 0, ticks), (6, 2, ticks // 2, 0), (7, 1, 50 * ticks, 0)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a (b) c) S {parent} {rest} {user} {system} 0 0 20")
    assert kernel_threads_s(tmp_path) == pytest.approx(1.5)
    assert kernel_threads_s(tmp_path / "none") == 0.0


def test_what_is_not_known_blames_nobody():
    found = disturbance_between(BEFORE, Usage(12.0, 101.0, 51.0, 5.0, float("nan")))
    assert not Disturbance(float("nan"), float("nan")).exceeds(0.1, cores=2)
    assert not isnan(found.foreign_cores)


def test_without_groups_this_machine_s_usage_grows_and_never_shrinks():
    usages = Usages(None)
    first, second = usages.now(), usages.now()
    assert second.all_s >= first.all_s
    assert second.ours_s >= first.ours_s
    assert second.recorder_s >= first.recorder_s


IDLE = StressReading(at_s=100.0, cpu_s=1.0, io_bytes=0.0, throttled_s=0.0, is_alive=True)
AFTER = StressReading(at_s=102.0, cpu_s=2.0, io_bytes=4e6, throttled_s=0.0, is_alive=True)


@pytest.fixture
def place(scratch):
    place = make_place(NodeParams(name="n", machine_type="t"), 1, scratch, None, is_emulated=False, has_network=False)
    yield place
    place.remove()


def stressor_of(place, command="burn", **more):
    return Stressor(Dose(benchmark="cpu-fake", level=1, name="d", command=command, **more), place, 10)


@pytest.mark.parametrize("change", [{"is_alive": False}, {"cpu_s": 1.0}])
def test_a_stressor_that_ended_or_slept_was_not_applied(place, change):
    assert not stressor_of(place).outcome(IDLE, replace(AFTER, **change)).is_applied


def test_a_throttle_is_applied_only_if_the_benchmark_had_to_wait(place):
    throttle = stressor_of(place, "", throttle_ratio=0.5)
    assert not throttle.outcome(IDLE, AFTER).is_applied
    found = throttle.outcome(IDLE, replace(AFTER, throttled_s=1.0))
    assert (found.is_applied, found.throttled_ratio) == (True, 0.5)


def test_a_real_stressor_is_at_work_inside_the_block_and_gone_after_it(place, stand_ins):
    dose = Dose(benchmark="cpu-fake", level=1, name="burn", command=str(stand_ins.burn))
    with applied(dose, place, 10) as stressor:
        before = stressor.read()
        pid = stressor.running.process.pid
        deadline = time.monotonic() + 10
        while stressor.read().cpu_s - before.cpu_s < 0.02 and time.monotonic() < deadline:
            pass
        assert stressor.outcome(before, stressor.read()).is_applied
        process = stressor.running.process
    assert process.returncode == -9
    assert stressor.read().cpu_s == 0.0
    assert not (place.folder / "stress").exists()
    assert pid == process.pid


def test_one_that_falls_over_leaves_its_last_words(place, stand_ins):
    script = stand_ins.script("broken", "echo cannot allocate; exit 1")
    with applied(Dose(benchmark="cpu-fake", level=1, name="broken", command=str(script)), place, 10) as stressor:
        before = after = stressor.read()
    assert not stressor.outcome(before, after).is_applied
    assert stressor.told == "cannot allocate"


def test_stolen_time_disturbs_like_foreign_work():
    assert Disturbance(0.0, 0.3).exceeds(0.1, cores=2)
