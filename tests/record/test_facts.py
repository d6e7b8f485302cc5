"""What disturbed a run, and what is told of the machine."""

import os
import subprocess
import sys
from math import isnan

import pytest

from tasks.machine import write_server_file
from tasks.record.facts import (
    Disturbance,
    Usage,
    all_known,
    disturbance_between,
    kernel_threads_s,
    machine_facts,
    shared_server_cpu_s,
    usage_now,
)
from tasks.record.processes import tree_cpu_s

BEFORE = Usage(at_s=10.0, all_s=100.0, ours_s=50.0, recorder_s=5.0, steal_s=1.0)


def test_foreign_is_what_neither_the_campaign_nor_the_recorder_used(monkeypatch):
    after = Usage(at_s=12.0, all_s=103.0, ours_s=51.8, recorder_s=5.2, steal_s=1.1)
    found = disturbance_between(BEFORE, after)
    assert found.foreign_cores == pytest.approx(0.5)  # 3.0 less 1.8 less 0.2, over two seconds
    assert found.steal_cores == pytest.approx(0.05)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert found.exceeds(0.1)
    assert not found.exceeds(0.3)
    assert Disturbance(0.0, 0.3).exceeds(0.1)  # what the hypervisor took disturbs alike


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
    assert not Disturbance(float("nan"), float("nan")).exceeds(0.1)
    assert not isnan(found.foreign_cores)


def test_without_groups_this_machine_s_usage_grows_and_never_shrinks():
    first, second = usage_now(None), usage_now(None)
    assert second.all_s >= first.all_s
    assert second.ours_s >= first.ours_s
    assert second.recorder_s >= first.recorder_s


def test_numbers_are_rounded_and_what_is_not_known_is_none():
    assert all_known({"a": 1.23456789, "b": float("nan"), "c": "text", "d": None, "e": 7}) == {
        "a": 1.23457, "b": None, "c": "text", "d": None, "e": 7,
    }  # fmt: skip
    assert all_known({"a": 0.5554}, 3) == {"a": 0.555}


BURNER = """
import sys, time
end = time.process_time() + 0.2
while time.process_time() < end:
    pass
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def burner():
    """A process that has used a fifth of a second, and goes on without using more."""
    process = subprocess.Popen([sys.executable, "-c", BURNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def served_by(tmp_path, monkeypatch):
    monkeypatch.setenv("WHORL_HOME", str(tmp_path))
    return lambda process, **how: write_server_file(tmp_path, "http://127.0.0.1:9/api", process.pid, **how)


def test_the_time_of_a_process_holds_that_of_what_it_has_started_and_is_nothing_once_it_has_ended(burner):
    assert tree_cpu_s(os.getpid()) >= tree_cpu_s(burner.pid) >= 0.2
    burner.kill()
    burner.wait()
    assert tree_cpu_s(burner.pid) == 0.0


def test_the_time_of_the_server_that_commands_share_counts_as_whorls_own_while_it_runs(burner, served_by):
    assert shared_server_cpu_s() == 0.0  # none runs
    served_by(burner, is_shared=True)
    assert shared_server_cpu_s() == pytest.approx(tree_cpu_s(burner.pid), abs=0.05)
    assert shared_server_cpu_s() >= 0.2
    burner.kill()
    burner.wait()
    assert shared_server_cpu_s() == 0.0


def test_what_whorl_serve_keeps_is_not_counted_since_the_recorder_is_part_of_it(burner, served_by):
    served_by(burner, is_shared=False)
    assert shared_server_cpu_s() == 0.0


def test_every_recording_says_on_which_machine_it_was_made():
    assert machine_facts(duckdb="1.0") == machine_facts() | {"duckdb": "1.0"}
    assert {"cpu_model", "cores", "memory_bytes", "kernel", "cgroups", "python"} == machine_facts().keys()
