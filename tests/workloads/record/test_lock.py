"""One recording at a time on a machine."""

import fcntl
import os

import pytest

from tasks.errors import BadSetting
from tasks.workloads.record.lock import alone_on_this_machine, jobs_recording


def test_a_second_recording_is_refused_until_the_first_has_ended(lock, tmp_path):
    with alone_on_this_machine(lock, tmp_path):
        with pytest.raises(BadSetting, match="another recording of workloads is at work"):
            with alone_on_this_machine(lock, tmp_path):
                pass
    with alone_on_this_machine(lock, tmp_path):
        pass


def test_a_recording_of_jobs_is_noticed_by_the_lock_on_its_scratch_folder(lock, tmp_path):
    scratch = lock.parent / "whorl-record-abc"
    scratch.mkdir()
    with alone_on_this_machine(lock, tmp_path):  # a folder that nobody holds is no recording
        pass
    handle = os.open(scratch, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(BadSetting, match=r"whorl-record-abc: a recording of jobs is at work"):
        with alone_on_this_machine(lock, tmp_path):
            pass
    os.close(handle)
    with alone_on_this_machine(lock, tmp_path):
        pass


def test_a_recording_of_jobs_is_noticed_by_its_control_group_and_a_dead_one_is_not(tmp_path):
    for name in ("cpu", "cpuacct"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").touch()
    (tmp_path / "cpu" / "whorl-record-999999999").mkdir()
    assert jobs_recording(tmp_path, tmp_path) is None
    ours = tmp_path / "cpu" / f"whorl-record-{os.getpid()}"
    ours.mkdir()
    assert jobs_recording(tmp_path, tmp_path) == ours
