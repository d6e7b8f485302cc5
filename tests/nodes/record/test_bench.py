"""Stress that counts as applied only if it was at work from begin to end."""

import time
from dataclasses import replace

import pytest

from tasks.nodes.record.bench import Stressor, StressReading, applied
from tasks.nodes.record.node_place import make_place
from tasks.nodes.record.params import Dose, NodeParams

IDLE = StressReading(at_s=100.0, cpu_s=1.0, throttled_s=0.0, is_alive=True)
AFTER = StressReading(at_s=102.0, cpu_s=2.0, throttled_s=0.0, is_alive=True)


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


def test_a_stressor_counts_where_the_time_is_too_short_for_a_tick_of_the_clock(place):
    short = replace(IDLE, at_s=IDLE.at_s + 0.005)
    assert stressor_of(place).outcome(IDLE, short).is_applied
    assert not stressor_of(place).outcome(IDLE, replace(short, is_alive=False)).is_applied


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
    assert stressor.last_words == "cannot allocate"
