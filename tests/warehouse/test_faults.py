"""Faults of file, disk, memory and rights: each is one line that says what to do."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pytest

from tasks.errors import BadSetting, WarehouseBroken, WarehouseBusy, WhorlError
from tasks.warehouse import faults
from tasks.warehouse.connection import fetch, reading, writing

INSERT = "INSERT INTO ops.machines VALUES ('log', 'node', 'big')"
NODES = "SELECT node FROM ops.machines"


def one_line(error):
    text = str(error.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("content", [b"", b"hello" * 2000, b"PK\x03\x04" + bytes(5000)])
def test_a_file_that_is_no_database_is_one_clear_line(warehouse, content):
    warehouse.file.write_bytes(content)
    for use in (reading, writing):
        with pytest.raises(WarehouseBroken) as error, use(warehouse):
            pass
        assert one_line(error).startswith(f"{warehouse.file}: DuckDB cannot open it (IO Error: ")
        assert one_line(error).endswith(
            "bring back a copy with 'whorl warehouse restore', or make it again from the landing folder with "
            "'whorl warehouse rebuild'"
        )


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from tasks.warehouse.connection import writing, transaction, fetch
from tasks.warehouse.place import Warehouse
warehouse = Warehouse(home=Path(sys.argv[1]), memory_mb=128, threads=1)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, 4_000_000))
try:
    with writing(warehouse) as connection, transaction(connection):
        connection.execute("INSERT INTO ops.machines SELECT 'log', hash(range)::VARCHAR, 'big' FROM range(1000000)")
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_full_disk_is_one_clear_line_and_leaves_the_rows_as_they_were(warehouse):
    with writing(warehouse) as connection:
        connection.execute(INSERT)
    command = [sys.executable, "-c", FULL_DISK, str(warehouse.home)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert told.startswith(f"WhorlError {warehouse.file}: the disk is full (IO Error: Could not write file")
    assert told.endswith("free some and run the same again: nothing is half done")
    assert fetch(warehouse, NODES)["node"].tolist() == ["node"]


def test_a_path_with_a_question_mark_is_one_clear_line(bare):
    odd = bare.model_copy(update={"home": bare.home / "what?" / "home"})
    with pytest.raises(BadSetting, match=r"DuckDB takes what follows a '\?' for options; expected a path without one"):
        with writing(odd):
            pass


NOBODY = """
import os, sys
from pathlib import Path
from tasks.errors import WhorlError
from tasks.warehouse.connection import fetch, writing
from tasks.warehouse.place import Warehouse
import pandas, pyarrow  # while Python's own files can be read
os.setgid(65534); os.setuid(65534)
warehouse = Warehouse(home=Path(sys.argv[1]), memory_mb=128, threads=1)
try:
    print(fetch(warehouse, "SELECT node FROM ops.machines")["node"].tolist())
    with writing(warehouse):
        pass
except WhorlError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def open_to_a_group(bare):
    """A warehouse whose owner lets a group read it."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory(prefix="whorl-rights-") as folder:  # tmp_path lies where others may not look
        Path(folder).chmod(0o755)
        shared = bare.model_copy(update={"home": Path(folder) / "home"})
        with writing(shared) as connection:
            connection.execute(INSERT)
        assert shared.file.stat().st_mode & 0o777 == 0o600
        os.chown(shared.file, -1, 65534)
        shared.file.chmod(0o640)
        with writing(shared):  # which leaves the group its right
            pass
        yield shared


def as_nobody(home):
    command = [sys.executable, "-c", NOBODY, str(home)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


def test_a_home_that_may_only_be_read_can_be_read_and_says_why_it_cannot_be_written(open_to_a_group):
    found = as_nobody(open_to_a_group.home)
    assert found[0] == "['node']"
    assert found[1].startswith(f"BadSetting {open_to_a_group.home / '.queue'}: no right to use it (Permission denied)")
    assert found[1].endswith("change its rights, or name another home with WHORL_HOME")


def test_faults_that_nobody_can_mend_from_outside_pass_as_they_are():
    with pytest.raises(FileNotFoundError), faults.storage_faults("home"):
        raise FileNotFoundError(2, "No such file")
    with pytest.raises(duckdb.BinderException), faults.storage_faults("home"), duckdb.connect() as connection:
        connection.execute("SELECT nothing FROM (SELECT 1)")
    assert faults.first_line(ValueError("")) == "ValueError"


def test_an_interrupted_query_is_an_interrupt_and_no_fault():
    with pytest.raises(KeyboardInterrupt), faults.storage_faults("home"):
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="other"), faults.storage_faults("home"):
        raise RuntimeError("other")


@pytest.mark.parametrize("number", [28, 122, 27])
def test_a_full_disk_is_told_where_it_is_full(number):
    with pytest.raises(WhorlError, match=r"^/data/file: the disk is full"), faults.storage_faults("home"):
        raise OSError(number, "full", "/data/file")


@pytest.fixture
def small_disk(tmp_path):
    """A mounted disk of 8 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot mount a disk: {done.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_without_room_is_told_before_anything_starts(small_disk):
    with pytest.raises(WhorlError) as error:
        faults.check_home(small_disk / "home")
    told = one_line(error)
    assert re.search(r"the disk is full \(\d MB free, 64 MB are needed\); .*; free some and run the same again", told)
    (small_disk / "filler").write_bytes(bytes(8 * faults.MB - 16 * 1024))
    with pytest.raises(WhorlError, match="the disk is full"):
        faults.check_home(small_disk / "home")
    assert error.value.exit_code == 1


def test_a_home_that_is_mounted_for_reading_is_told(small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(BadSetting, match=r"no right to use it .*Read-only.*change its rights, or name another home"):
        faults.check_home(small_disk / "home")


def test_a_home_of_somebody_else_is_told(open_to_a_group):
    home = open_to_a_group.home
    faults.check_home(home)
    for path, mode in ((home, 0o777), (home / "prefect", 0o777), (open_to_a_group.file, 0o666)):
        path.chmod(mode)
    assert told_to_nobody(lambda: faults.check_home(home)) == ""
    for path in (open_to_a_group.file, home / "prefect", home):
        path.chmod(0o755)
        assert told_to_nobody(lambda: faults.check_home(home)).startswith(f"{path}")


def told_to_nobody(work):
    """What an error says when a user without rights does this."""
    reads, writes = os.pipe()
    if not (pid := os.fork()):
        try:
            os.setresuid(65534, 65534, 65534)
            work()
        except BaseException as error:
            os.write(writes, str(error).encode())
        os._exit(0)
    os.close(writes)
    os.waitpid(pid, 0)
    with os.fdopen(reads) as told:
        return told.read()


@pytest.mark.parametrize("name", ["file", "file/home"])
def test_a_home_that_cannot_be_a_folder_is_told(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(BadSetting, match="is no folder; expected one for the warehouse; name another with WHORL_HOME"):
        faults.check_home(tmp_path / name)


IO, GAVE_UP = duckdb.IOException, duckdb.InternalException
SAID = [
    (IO('Cannot open file "/w": Permission denied'), BadSetting, "no right to use it (Cannot open"),
    (IO('Could not write file "/w": No space left on device\nadvice'), WhorlError, "the disk is full (Could not"),
    (IO("Could not set lock on file"), WarehouseBusy, "another program, or another part of this one, has"),
    (GAVE_UP("Attempted to access index 3"), WarehouseBroken, "DuckDB gave up on it (Attempted to access index 3)"),
    (duckdb.OutOfMemoryException("failed to pin block"), BadSetting, "DuckDB needs more memory than it may use (fail"),
]


@pytest.mark.parametrize(("error", "kind", "told"), SAID, ids=[told for _, _, told in SAID])
def test_what_duckdb_says_of_file_disk_or_memory_is_one_of_our_lines(error, kind, told):
    found = faults.of_duckdb("/w", error)
    assert type(found) is kind and str(found).startswith(f"/w: {told}") and "advice" not in str(found)


def test_what_duckdb_says_of_a_question_is_none():
    assert faults.of_duckdb("/w", duckdb.ParserException("syntax error")) is None
