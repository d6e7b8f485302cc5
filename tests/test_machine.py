"""One recording at a time on a machine, and scratch folders that are found again and closed to others."""

import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.errors import BadSetting
from tasks.machine import is_ours, only_recorder, remove_scratch, scratch_folder, tied_to_parent

ROOT = Path(__file__).parents[1]
NOBODY = 65534
HOLDER = """
import sys
from tasks import machine
machine.LOCK = sys.argv[1]
with machine.only_recorder("workloads"):
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
        with only_recorder("nodes"):
            pass


@pytest.mark.parametrize("wait_s", [0, 30])
def test_the_lock_ends_with_its_holder_however_that_ends_and_may_be_waited_for(lock, begin, wait_s):
    holder = begin(HOLDER)
    holder.kill()
    if not wait_s:
        holder.wait()
    with only_recorder("nodes", wait_s=wait_s):
        pass


def test_after_the_end_the_machine_is_free_and_no_file_is_made_for_it(lock, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with only_recorder("nodes"):
        with pytest.raises(BadSetting, match="jobs: another recording is at work"):
            with only_recorder("jobs"):
                pass
    with only_recorder("jobs"):
        assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_users_keep_each_other_waiting_and_are_named(lock, begin):
    """Nor can a name that somebody else has taken be more than a reason to wait, with who has it."""
    holder = begin(SQUATTER, NOBODY)
    with pytest.raises(BadSetting, match=rf"\(process {holder.pid} of user nobody: "):
        with only_recorder("nodes"):
            pass


def test_a_holder_that_does_not_answer_is_still_one(lock):
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(f"\0{lock}")
        with pytest.raises(BadSetting, match="nodes: another recording is at work; wait"):
            with only_recorder("nodes"):
                pass


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A place that all users write to."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def scratch(shared: Path, campaign: str = "c", place: str = "") -> Path:
    return scratch_folder("record", campaign, place=place, shared=shared)


def test_a_campaign_finds_its_folder_again_and_no_other_one_s(shared):
    folder = scratch(shared)
    assert folder == scratch(shared)
    assert folder != scratch(shared, "other")
    assert folder.parent == shared
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_planted_link_is_neither_followed_nor_removed(shared, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    before = precious.stat().st_mode
    name = scratch(shared).name
    (shared / name).rmdir()
    (shared / name).symlink_to(precious)
    folder = scratch(shared)
    assert folder.name != name
    remove_scratch(folder, "")
    assert (shared / name).is_symlink()
    assert precious.stat().st_mode == before


@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_a_folder_of_another_user_or_one_that_others_write_to_is_left_alone(shared, mode):
    planted = scratch(shared)
    (planted / "file").touch()
    planted.chmod(mode)
    if os.geteuid() == 0:
        os.chown(planted, NOBODY, NOBODY)
    elif mode == 0o700:
        pytest.skip("only root can give a folder away")
    before = planted.stat()
    folder = scratch(shared)
    assert folder != planted
    assert is_ours(folder)
    remove_scratch(folder, "")
    assert (planted / "file").exists()
    assert (planted.stat().st_mode, planted.stat().st_uid) == (before.st_mode, before.st_uid)


def test_a_place_of_ours_is_taken_as_it_is_and_outlives_the_campaign_if_something_is_in_it(shared, tmp_path):
    place = tmp_path / "disk"
    assert scratch(shared, place=str(place)) == place
    (place / "notes.txt").touch()
    remove_scratch(place, str(place))
    assert (place / "notes.txt").exists()
    assert list(shared.iterdir()) == []


def test_in_a_place_that_others_write_to_a_folder_of_our_own_is_made(shared, tmp_path):
    folder = scratch(tmp_path, place=str(shared))
    assert folder.parent == shared
    assert is_ours(folder)
    remove_scratch(folder, str(shared))
    assert list(shared.iterdir()) == []


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="util-linux's setpriv is not on this machine")
def test_what_is_tied_to_this_process_begins_as_its_child_and_not_as_anybody_else_s(tmp_path):
    command = tied_to_parent(["/bin/sh", "-c", "echo begun"])
    assert subprocess.run(command, capture_output=True, text=True).stdout == "begun\n"
    of_another = subprocess.run(["/bin/sh", "-c", '"$@"; exit $?', "sh", *command], capture_output=True, text=True)
    assert (of_another.stdout, of_another.returncode) == ("", 1)
