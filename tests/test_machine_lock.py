"""One recording at a time on a machine, whichever word it is for."""

import os
import socket
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tasks.errors import BadSetting
from tasks.machine_lock import only_recorder

ROOT = Path(__file__).parents[1]
NOBODY = 65534
HOLDER = """
import sys
from tasks.machine_lock import only_recorder
with only_recorder("workloads", sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""
SQUATTER = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
held = socket.socket(socket.AF_UNIX)
held.bind("\\0" + sys.argv[1])
held.listen()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def lock() -> str:
    return f"whorl-test-{uuid.uuid4()}"


@pytest.fixture
def begin(lock):
    processes = []

    def begin(program, *more):
        command = [sys.executable, "-c", program, lock, *map(str, more)]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def test_a_second_recorder_is_told_who_holds_the_machine(lock, begin):
    holder = begin(HOLDER)
    told = rf"nodes: another recording is at work \(process {holder.pid}: .*python.*\); wait for its end"
    with pytest.raises(BadSetting, match=told):
        with only_recorder("nodes", lock):
            pass


def test_the_lock_ends_with_its_holder_however_that_ends(lock, begin):
    holder = begin(HOLDER)
    holder.kill()
    holder.wait()
    with only_recorder("nodes", lock):
        pass


def test_one_that_may_wait_gets_its_turn(lock, begin):
    holder = begin(HOLDER)
    holder.kill()
    with only_recorder("nodes", lock, wait_s=30):
        pass


def test_after_the_end_the_machine_is_free(lock):
    with only_recorder("nodes", lock):
        with pytest.raises(BadSetting, match="jobs: another recording is at work"):
            with only_recorder("jobs", lock):
                pass
    with only_recorder("jobs", lock):
        pass


def test_no_file_is_made_for_it_or_needed(lock, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with only_recorder("nodes", lock):
        assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_users_keep_each_other_waiting_and_are_named(lock, begin):
    """Nor can a name that somebody else has taken be more than a reason to wait, with who has it."""
    holder = begin(SQUATTER, NOBODY)
    with pytest.raises(BadSetting, match=rf"\(process {holder.pid} of user nobody: "):
        with only_recorder("nodes", lock):
            pass


def test_a_holder_that_does_not_answer_is_still_one(lock):
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(f"\0{lock}")
        with pytest.raises(BadSetting, match="nodes: another recording is at work; wait"):
            with only_recorder("nodes", lock):
                pass
