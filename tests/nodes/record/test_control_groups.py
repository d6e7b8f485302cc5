"""Limits of a node in control groups of version 1 and 2, as files say them; programs in them, and their end."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tasks.machine import ControlGroup, was_there
from tasks.nodes.record.control_groups import PREFIX, REGISTER, Surroundings, allow_share, make_groups, run, start
from tasks.nodes.record.node_place import NodePlace
from tasks.nodes.record.params import LoweredLimit
from tasks.record.processes import end_registered, started


@pytest.fixture
def first(tmp_path):
    folders = {name: tmp_path / "v1" / name for name in ("cpu", "cpuacct", "memory", "blkio")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    return ControlGroup(1, folders)


@pytest.fixture
def second(tmp_path):
    (tmp_path / "v2").mkdir()
    return ControlGroup(2, dict.fromkeys(("cpu", "memory", "blkio"), tmp_path / "v2"))


@pytest.fixture
def disk(monkeypatch):
    monkeypatch.setattr("tasks.machine.disk_of", lambda folder: "8:0")


def text(group, controller, name):
    return (group.folders[controller] / name).read_text()


def test_a_node_of_version_1_has_its_quota_memory_and_disk_limits(first, node_params, tmp_path, disk):
    groups, faults = make_groups(first, node_params(cpu_percent=50, memory_mib=1, disk_mb_per_s=20), tmp_path)
    assert faults == []
    assert text(groups.node, "cpu", "cpu.cfs_quota_us") == "10000"
    assert text(groups.node, "cpu", "cpu.cfs_period_us") == "20000"
    assert text(groups.node, "memory", "memory.limit_in_bytes") == "1048576"
    assert text(groups.node, "blkio", "blkio.throttle.read_bps_device") == "8:0 20000000"
    assert text(groups.node, "blkio", "blkio.throttle.write_bps_device") == "8:0 20000000"


def test_benchmark_and_stressor_share_the_node_s_disk_limit_and_the_servers_do_not(first, node_params, tmp_path):
    groups, _ = make_groups(first, node_params(), tmp_path)
    assert groups.bench.folders["blkio"] == groups.stress.folders["blkio"] == groups.node.folders["blkio"]
    assert groups.bench.folders["cpu"].parent == groups.stress.folders["cpu"].parent == groups.node.folders["cpu"]
    assert groups.peer.folders["cpu"].parent == first.folders["cpu"]


def test_a_node_of_version_2_has_them_too(second, node_params, tmp_path, disk):
    groups, faults = make_groups(second, node_params(cpu_percent=100, memory_mib=1, disk_mb_per_s=20), tmp_path)
    assert faults == []
    assert text(groups.node, "cpu", "cpu.max") == "20000 20000"
    assert text(groups.node, "memory", "memory.max") == "1048576"
    assert text(groups.node, "blkio", "io.max") == "8:0 rbps=20000000 wbps=20000000"


def test_a_lowered_limit_replaces_the_node_s_own_and_is_noted(first, node_params, tmp_path, disk):
    params = node_params(cpu_percent=100, disk_mb_per_s=20)
    groups, _ = make_groups(first, params, tmp_path)
    place = NodePlace(params, True, tmp_path, groups)
    place.lower(LoweredLimit(node="n", cpu_percent=80))
    place.lower(LoweredLimit(node="n", disk_mb_per_s=16))
    assert text(groups.node, "cpu", "cpu.cfs_quota_us") == "16000"
    assert text(groups.node, "blkio", "blkio.throttle.read_bps_device") == "8:0 16000000"
    assert place.cpu_cores == 0.8
    assert place.lowered == ["lowered-cpu-80", "lowered-disk-16"]


def test_a_limit_that_cannot_be_set_is_told_with_its_reason(first, node_params, tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.machine.disk_of", lambda folder: None)
    monkeypatch.setattr(ControlGroup, "limit_memory", lambda *_: False)
    groups, faults = make_groups(first, node_params(memory_mib=512, disk_mb_per_s=20), tmp_path)
    assert faults == [
        "memory limit of 512 MiB: the system does not let us",
        f"disk limit of 20 MB/s: {tmp_path} is on no disk of its own",
    ]
    with pytest.raises(ValueError, match="no disk of its own"):
        groups.node.limit_disk(tmp_path, 1e6)


def test_a_share_is_one_of_the_node_s_own_processors_and_never_below_what_the_kernel_takes(first):
    allow_share(first, cores=0.5, ratio=0.3)
    assert text(first, "cpu", "cpu.cfs_quota_us") == "15000"
    assert text(first, "cpu", "cpu.cfs_period_us") == "100000"
    allow_share(first, cores=0.5, ratio=0.001)
    assert text(first, "cpu", "cpu.cfs_quota_us") == "1000"
    allow_share(first, cores=0.5, ratio=1)
    assert text(first, "cpu", "cpu.cfs_quota_us") == "-1"


def test_a_later_process_with_the_id_of_a_dead_recorder_is_not_mistaken_for_it(tmp_path):
    ours = tmp_path / f"{PREFIX}{os.getpid()}"
    ours.mkdir()
    assert was_there(os.getpid(), ours.stat().st_mtime)
    assert not was_there(os.getpid(), 1000.0)  # made long before this process was
    assert not was_there(2**22 + 1, ours.stat().st_mtime)


FAMILY = "sleep 60 & echo $!; wait"


@pytest.fixture
def around(tmp_path):
    return Surroundings(tmp_path, register=tmp_path / REGISTER)


def wait_until(is_so):
    deadline = time.monotonic() + 10
    while not is_so() and time.monotonic() < deadline:
        pass
    return is_so()


def test_one_that_takes_too_long_is_killed_with_all_that_it_has_started(around, tmp_path):
    bystander = subprocess.Popen(["sleep", "60"])
    running, status = run(["sh", "-c", FAMILY], around, tmp_path / "log", 0.3)
    assert status is None
    child = int(running.output())
    assert started(child) is None
    assert started(bystander.pid)
    bystander.kill()
    bystander.wait()


def test_what_a_program_leaves_running_is_ended_too(around, tmp_path):
    running, status = run(["sh", "-c", "sleep 60 & echo $!"], around, tmp_path / "log", 10)
    assert status == 0
    assert started(int(running.output())) is None


def test_a_killed_recorder_s_programs_are_found_by_its_register(around, tmp_path):
    running = start(["sh", "-c", FAMILY], around, tmp_path / "log")
    assert wait_until(lambda: running.output().endswith("\n"))
    child = int(running.output())
    assert end_registered(tmp_path / REGISTER, tmp_path) == 1
    assert wait_until(lambda: started(child) is None)
    assert not (tmp_path / REGISTER).exists()
    assert end_registered(tmp_path / REGISTER, tmp_path) == 0
    running.process.wait()


def test_a_program_whose_recorder_was_killed_before_it_wrote_it_down_is_ended(around, tmp_path):
    running = start(["sleep", "60"], around, tmp_path / "log")
    (tmp_path / REGISTER).unlink()
    assert wait_until(lambda: "sleep" in Path(f"/proc/{running.process.pid}/cmdline").read_text())
    assert end_registered(tmp_path / REGISTER, tmp_path) == 1
    assert running.process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("line", ["{pid} 1 9", "{pid} {start} 9", "{pid}", "{pid} {start} 999", "0 0 9", "-1 0 9", "x"])
def test_no_process_from_elsewhere_is_ended_whatever_a_register_says(tmp_path, line):
    """A later one with the same id, and one whose id and start somebody has written in there."""
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    (tmp_path / REGISTER).write_text(line.format(pid=bystander.pid, start=started(bystander.pid)) + "\n")
    end_registered(tmp_path / REGISTER, tmp_path)
    assert started(bystander.pid)
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_programs_see_a_plain_environment(around, tmp_path, monkeypatch):
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("SECRET", "x")
    running, _ = run(["env"], around, tmp_path / "log", 10)
    told = dict(line.split("=", 1) for line in running.output().splitlines())
    assert told["LANG"] == "C.UTF-8"
    assert "SECRET" not in told
    assert told["HOME"] == str(tmp_path)


def test_a_group_that_cannot_be_joined_stops_the_program_from_running_elsewhere(tmp_path):
    around = Surroundings(tmp_path, ControlGroup(1, {"cpu": tmp_path / "no" / "such"}))
    running, status = run(["echo", "ran"], around, tmp_path / "log", 10)
    assert status == 97
    assert "ran" not in running.output().splitlines()
