"""The lock: readers share, writers own, everybody waits his turn, and it dies with its process; a child or a program
started inside the block has no part in it, and holders are named."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tasks.errors import WarehouseBusy
from tasks.warehouse import lock
from tasks.warehouse.connection import fetch, reading, writing
from tasks.warehouse.lock import hold, holders_of

HOLDER = """
import sys
from pathlib import Path
from tasks.warehouse.lock import hold
with hold(Path(sys.argv[1]), sys.argv[2], 30):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """A function that starts a process which holds the lock in a mode until its input is closed."""
    started = []

    def start(mode):
        command = [sys.executable, "-c", HOLDER, str(tmp_path), mode]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def is_free(folder, mode):
    try:
        with hold(folder, mode, 0):
            return True
    except WarehouseBusy:
        return False


@pytest.mark.parametrize("mode", ["shared", "exclusive"])
def test_readers_share_and_a_writer_owns(tmp_path, holder, mode):
    holder(mode)
    assert is_free(tmp_path, "shared") == (mode == "shared")
    assert not is_free(tmp_path, "exclusive")


@pytest.mark.parametrize("mode", ["shared", "exclusive"])
def test_the_error_names_process_and_command_of_the_holder_and_the_time_waited(tmp_path, holder, mode):
    process = holder("exclusive")
    with pytest.raises(WarehouseBusy) as error, hold(tmp_path, mode, 0.05):
        pass
    assert str(error.value).startswith(
        f"{tmp_path}: the warehouse is in use by process {process.pid} ({sys.executable}"
    )
    assert "; waited 0.05 s for it; try again" in str(error.value)
    assert str(error.value).endswith("wait longer with WHORL_WHORL__LOCK_WAIT_S")


def test_a_reader_behind_a_waiting_writer_is_told_of_the_reader_that_both_wait_for(tmp_path, holder):
    slow = holder("shared")
    told, waiting = [], threading.Event()

    def write():
        waiting.set()
        with pytest.raises(WarehouseBusy), hold(tmp_path, "exclusive", 1):
            pass

    writer = threading.Thread(target=write)
    writer.start()
    waiting.wait()
    while is_free(tmp_path, "shared"):  # until the writer stands at the gate
        pass
    with pytest.raises(WarehouseBusy) as error, hold(tmp_path, "shared", 0):
        pass
    told.append(str(error.value))
    writer.join()
    assert f"process {slow.pid} " in told[0]
    assert f"another thread of this process ({os.getpid()})" in told[0]


def test_sigkill_of_the_holder_and_an_exception_in_the_block_free_the_lock_of_this_home_alone(tmp_path, holder):
    process = holder("exclusive")
    assert is_free(tmp_path / "another", "exclusive")
    process.send_signal(signal.SIGKILL)
    process.wait()
    with pytest.raises(ZeroDivisionError), hold(tmp_path, "exclusive", 0):
        raise ZeroDivisionError
    assert is_free(tmp_path, "exclusive")


def test_a_wait_ends_when_the_lock_is_free(tmp_path, holder):
    process = holder("exclusive")
    threading.Timer(0.1, process.kill).start()
    with hold(tmp_path, "exclusive", 30):
        assert process.wait(30) == -signal.SIGKILL


def test_a_writer_that_waits_holds_back_later_readers(tmp_path):
    """Else ten busy readers would starve it."""
    order, first_reads = [], threading.Event()

    def write():
        with hold(tmp_path, "exclusive", 30):
            order.append("writer")

    def read():
        with hold(tmp_path, "shared", 30):
            order.append("reader")

    threads = [threading.Thread(target=write), threading.Thread(target=read)]
    with hold(tmp_path, "shared", 0):
        first_reads.set()
        threads[0].start()
        while holders_of(tmp_path / ".gate") != [os.getpid()]:
            pass
        threads[1].start()
    for thread in threads:
        thread.join()
    assert order == ["writer", "reader"]


def test_duckdb_never_meets_a_reading_and_a_writing_thread_at_once(warehouse):
    """DuckDB refuses one file open for reading and for writing in one process."""
    faults = []

    def work(act, n):
        try:
            for _ in range(n):
                act()
        except Exception as error:
            faults.append(error)

    def write():
        with writing(warehouse) as connection:
            connection.execute("INSERT INTO ops.machines VALUES ('log', uuid()::VARCHAR, 'big')")

    def read():
        fetch(warehouse, "SELECT count(*) FROM ops.machines")

    patient = [threading.Thread(target=work, args=(act, 5)) for act in (write, write, read, read, read)]
    for thread in patient:
        thread.start()
    for thread in patient:
        thread.join()
    assert faults == []
    assert fetch(warehouse, "SELECT count(*) AS n FROM ops.machines")["n"].tolist() == [10]


def test_a_reader_may_read_inside_its_own_block_though_a_writer_waits(warehouse):
    done = []

    def write():
        with writing(warehouse):
            done.append("written")

    writer = threading.Thread(target=write)
    with reading(warehouse):
        writer.start()
        while not holders_of(warehouse.home / ".gate"):
            pass
        with reading(warehouse) as inner:
            inner.execute("SELECT 1")
            done.append("read")
    writer.join()
    assert done == ["read", "written"]


@pytest.mark.parametrize(("outer", "inner"), [("shared", "exclusive"), ("exclusive", "shared"), ("exclusive",) * 2])
def test_a_thread_that_would_wait_for_itself_is_told_at_once(tmp_path, outer, inner):
    with hold(tmp_path, outer, 60):
        begun = time.monotonic()
        with pytest.raises(
            WarehouseBusy, match=rf"this thread has the warehouse already, {outer}, .*outer block first"
        ):
            with hold(tmp_path / "." / ".." / tmp_path.name, inner, 60):
                pass
        assert time.monotonic() - begun < 30
    assert is_free(tmp_path, "exclusive")


def test_a_forked_child_does_not_hold_what_its_parent_held(tmp_path):
    with hold(tmp_path, "exclusive", 0):
        child = os.fork()
        if child == 0:
            free = is_free(tmp_path, "exclusive")
            os._exit(1 if free else 0)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_neither_a_forked_child_that_lives_on_nor_a_program_started_inside_keeps_the_lock(tmp_path):
    read_end, write_end = os.pipe()
    with hold(tmp_path, "exclusive", 0):
        program = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
        child = os.fork()
        if child == 0:
            os.read(read_end, 1)
            os._exit(0)
    free = is_free(tmp_path, "exclusive")
    os.write(write_end, b"x")
    os.waitpid(child, 0)
    program.communicate(b"\n")
    assert free


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
