"""Control groups as this machine has them: limits that hold, processes that move in, and nothing left behind."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tasks.machine import PREFIX, ControlGroup, campaign_group, disk_of

MIB = 1_048_576


@pytest.fixture
def group():
    with campaign_group() as made:
        if made is None:
            pytest.skip("control groups cannot be made here")
        yield made


@pytest.fixture
def version_1(group):
    if group.version != 1:
        pytest.skip("needs control groups of version 1")
    return group


def _read(group, controller, name):
    return (group.folders[controller] / name).read_text().strip()


def test_a_group_of_its_own_is_gone_afterwards_with_all_inside_it():
    with campaign_group() as made:
        if made is None:
            pytest.skip("control groups cannot be made here")
        made.child("sku").child("slot")
        folders = list(made.folders.values())
        assert all((folder / "sku/slot").is_dir() for folder in folders)
    assert not any(folder.exists() for folder in folders)


def test_a_group_whose_last_process_has_not_ended_yet_is_gone_afterwards_too():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        with campaign_group() as made:
            if made is None:
                pytest.skip("control groups cannot be made here")
            made.child("slot").add(process.pid)
        assert not any(folder.exists() for folder in made.folders.values())
        assert process.wait() == -signal.SIGKILL


def test_a_command_moves_itself_in_and_its_cpu_time_is_counted_there(group):
    slot = group.child("slot")
    before_s = group.usage_s()
    command = slot.command_inside(["/bin/sh", "-c", 'grep -c slot /proc/self/cgroup; echo "$1"', "sh", "a b; c"])
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(ended.stdout.splitlines()[0]) >= 1
    assert ended.stdout.splitlines()[1] == "a b; c"  # arguments arrive as they are
    assert group.usage_s() > before_s


def test_a_process_that_is_added_counts_there(group):
    slot = group.child("slot")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        slot.add(process.pid)
        procs = [(folder / "cgroup.procs").read_text().split() for folder in slot.folders.values()]
        assert procs == [[str(process.pid)]] * len(procs)
        process.communicate(b"")


def test_a_group_holds_what_is_in_it_and_below_it_and_not_what_shares_its_disk_limit(group):
    node = group.child("node")
    bench, stress = (node.child(name, shares_disk=True) for name in ("bench", "stress"))
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        bench.add(process.pid)
        assert (bench.processes(), stress.processes()) == ({process.pid}, set())
        assert process.pid in node.processes()
        assert node.end_processes()
        assert process.wait() == -signal.SIGKILL


def test_limits_stand_as_they_were_set(version_1):
    slot = version_1.child("slot")
    slot.set_quota(3_000, 16_667)
    slot.set_weight(800)
    assert (_read(slot, "cpu", "cpu.cfs_quota_us"), _read(slot, "cpu", "cpu.cfs_period_us")) == ("3000", "16667")
    assert _read(slot, "cpu", "cpu.shares") == "8192"  # eight times 1024
    if "memory" in slot.folders:
        assert slot.limit_memory(64)
        assert _read(slot, "memory", "memory.limit_in_bytes") == str(64 * MIB)


def test_the_disk_of_a_folder_is_a_whole_disk(tmp_path):
    disk = disk_of(tmp_path)
    assert disk is None or not Path(f"/sys/dev/block/{disk}/partition").exists()
    assert disk_of(Path("/proc")) is None


def test_groups_of_a_killed_recorder_are_removed_and_those_of_living_ones_stay(group):
    ended = subprocess.Popen(["true"])
    ended.wait()
    top = ControlGroup(group.version, {name: folder.parent for name, folder in group.folders.items()})
    left = top.child(f"{PREFIX}{ended.pid}")
    left.child("sku")
    living = top.child(f"{PREFIX}1")
    try:
        top.remove_abandoned()
        assert not any(folder.exists() for folder in left.folders.values())
        assert all(folder.exists() for folder in (*living.folders.values(), *group.folders.values()))
    finally:
        living.remove()


def test_a_group_that_still_holds_a_process_stays(group):
    slot = group.child("slot")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        slot.add(process.pid)
        slot.remove()
        assert all(folder.is_dir() for folder in slot.folders.values())
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        slot.remove()
    assert not any(folder.exists() for folder in slot.folders.values())
