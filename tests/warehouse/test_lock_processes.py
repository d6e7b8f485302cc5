"""The lock and processes: a child or a program started inside the block has no part in it, and holders are named."""

import os
import subprocess
import sys
from pathlib import Path

from tasks.errors import WarehouseBusy
from tasks.warehouse import lock
from tasks.warehouse.lock import hold, holders_of


def is_free(folder, mode):
    try:
        with hold(folder, mode, 0):
            return True
    except WarehouseBusy:
        return False


def test_a_forked_child_does_not_hold_what_its_parent_held(tmp_path):
    with hold(tmp_path, "exclusive", 0):
        child = os.fork()
        if child == 0:
            free = is_free(tmp_path, "exclusive")
            os._exit(1 if free else 0)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_forked_child_that_lives_on_does_not_keep_the_lock(tmp_path):
    read_end, write_end = os.pipe()
    with hold(tmp_path, "exclusive", 0):
        child = os.fork()
        if child == 0:
            os.read(read_end, 1)
            os._exit(0)
    assert is_free(tmp_path, "exclusive")
    os.write(write_end, b"x")
    os.waitpid(child, 0)


def test_a_forked_child_that_leaves_the_block_does_not_free_its_parents_lock(tmp_path):
    with hold(tmp_path, "exclusive", 0):
        context = hold(tmp_path / "other", "exclusive", 0)
        context.__enter__()
        child = os.fork()
        if child == 0:
            context.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(child, 0)
        assert holders_of(tmp_path / "other" / ".lock") == [os.getpid()]
        context.__exit__(None, None, None)


def test_a_program_started_inside_the_block_does_not_keep_the_lock(tmp_path):
    with hold(tmp_path, "exclusive", 0):
        program = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    assert is_free(tmp_path, "exclusive")
    program.communicate(b"\n")


def test_holders_are_found_by_device_and_inode_and_waiters_are_none(tmp_path, monkeypatch):
    file = tmp_path / ".lock"
    file.touch()
    status = file.stat()
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    rows = [
        f"1: FLOCK  ADVISORY  WRITE 4711 {device}:{status.st_ino} 0 EOF",
        f"1: -> FLOCK  ADVISORY  WRITE 4712 {device}:{status.st_ino} 0 EOF",
        f"2: FLOCK  ADVISORY  READ 4713 ff:ff:{status.st_ino} 0 EOF",
        f"3: POSIX  ADVISORY  READ 4714 {device}:{status.st_ino} 0 EOF",
        f"4: FLOCK  ADVISORY  READ -1 {device}:{status.st_ino} 0 EOF",
    ]
    monkeypatch.setattr(Path, "read_text", lambda *_args, **_kwargs: "\n".join(rows))
    assert holders_of(file) == [-1, 4711]
    assert lock._describe(-1) == "process -1 (command unknown)"


def test_without_a_table_of_locks_the_holder_is_another_process(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "holders_of", lambda path: [])
    assert "in use by another process; waited 1 s" in lock._busy([tmp_path / ".lock"], 1)
