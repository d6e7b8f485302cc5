"""Connections: what is found after a kill, and every fault of file, disk and memory as one line that helps."""

import os
import resource
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import duckdb
import pytest

from tasks.errors import BadSetting, NoWarehouse, WarehouseBroken, WarehouseBusy, WhorlError
from tasks.warehouse import connection as connections
from tasks.warehouse import faults
from tasks.warehouse.connection import fetch, opened, reading, transaction, writing
from tasks.warehouse.logs import logs_of

INSERT = "INSERT INTO ops.machines VALUES ('log', 'node', 'big')"
NODES = "SELECT node FROM ops.machines"

KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
from tasks.warehouse.connection import writing
from tasks.warehouse.place import Warehouse
with writing(Warehouse(home=Path(sys.argv[1]), memory_mb=128, threads=1)) as connection:
    connection.execute(sys.argv[2])
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_writer(warehouse, statement=INSERT):
    """A process that commits one statement and is killed before DuckDB writes its log into the file."""
    subprocess.run([sys.executable, "-c", KILLED_WRITER, str(warehouse.home), statement], check=False)


def one_line(error):
    text = str(error.value)
    assert "\n" not in text
    return text


def test_there_is_no_warehouse_before_somebody_fills_it(bare):
    with pytest.raises(NoWarehouse) as error:
        fetch(bare, "SELECT 1")
    assert one_line(error) == (
        f"{bare.file}: there is no warehouse yet; fill one, for instance with 'whorl jobs ingest FILE', "
        "or name another home with WHORL_HOME"
    )
    assert not bare.home.exists()


def test_the_first_writer_makes_the_warehouse(bare):
    with writing(bare) as connection:
        connection.execute(INSERT)
    assert fetch(bare, NODES)["node"].tolist() == ["node"]
    assert sorted(path.name for path in bare.home.iterdir()) == [".gate", ".lock", ".queue", "warehouse.duckdb"]


def test_two_processes_may_make_the_warehouse_at_once(bare):
    command = "import sys; from pathlib import Path; from tasks.warehouse.connection import writing\n"
    command += "from tasks.warehouse.place import Warehouse\n"
    command += "with writing(Warehouse(home=Path(sys.argv[1]), threads=1)) as connection:\n"
    command += "    connection.execute(\"INSERT INTO ops.machines VALUES ('log', uuid()::VARCHAR, 'big')\")\n"
    started = [subprocess.Popen([sys.executable, "-c", command, str(bare.home)]) for _ in range(3)]
    assert [process.wait() for process in started] == [0, 0, 0]
    assert len(fetch(bare, NODES)) == 3


def test_a_reader_cannot_write(warehouse):
    with reading(warehouse) as connection, pytest.raises(duckdb.InvalidInputException, match="read-only"):
        connection.execute(INSERT)


def test_a_reader_sees_what_a_killed_writer_committed_and_leaves_its_log_alone(warehouse):
    killed_writer(warehouse)
    assert logs_of(warehouse.file)
    assert fetch(warehouse, NODES)["node"].tolist() == ["node"]
    assert logs_of(warehouse.file)


def test_a_writer_takes_up_the_log_of_a_killed_one(warehouse):
    killed_writer(warehouse)
    with writing(warehouse):
        pass
    assert not logs_of(warehouse.file)
    assert fetch(warehouse, NODES)["node"].tolist() == ["node"]


def test_nothing_of_an_open_transaction_survives_a_kill(warehouse):
    killed_writer(warehouse, f"BEGIN; {INSERT}")
    assert fetch(warehouse, NODES)["node"].tolist() == []


def test_a_transaction_that_fails_leaves_nothing_and_tells_its_own_error(warehouse):
    with writing(warehouse) as connection:
        with pytest.raises(ZeroDivisionError), transaction(connection):
            connection.execute(INSERT)
            raise ZeroDivisionError
        with pytest.raises(ZeroDivisionError), transaction(connection):
            connection.execute("ROLLBACK")  # as DuckDB does by itself after some faults
            raise ZeroDivisionError
    assert fetch(warehouse, NODES)["node"].tolist() == []


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


def test_a_damaged_database_is_one_clear_line(warehouse):
    content = bytearray(warehouse.file.read_bytes())
    content[4096 : 4096 * 3] = bytes(8192)
    warehouse.file.write_bytes(content)
    with pytest.raises(WarehouseBroken, match="DuckDB cannot open it"), reading(warehouse):
        pass


def test_a_log_that_an_earlier_file_left_behind_does_not_keep_a_new_one_from_opening(warehouse):
    killed_writer(warehouse)
    warehouse.file.unlink()
    with writing(warehouse) as connection:
        connection.execute(INSERT)
    assert fetch(warehouse, NODES)["node"].tolist() == ["node"]
    assert [path.name for path in warehouse.home.glob("warehouse.duckdb.lost-*.wal")]


def test_a_leftover_draft_of_a_killed_process_is_in_nobodys_way(bare):
    bare.home.mkdir()
    for name in ("warehouse.duckdb.new", "warehouse.duckdb.new.wal"):
        (bare.home / name).write_text("half")
    with writing(bare) as connection:
        connection.execute(INSERT)
    assert fetch(bare, NODES)["node"].tolist() == ["node"]


def test_too_little_memory_is_one_clear_line(warehouse, monkeypatch):
    tight = warehouse.model_copy(update={"memory_mb": 10})
    monkeypatch.setattr(connections.duckdb, "connect", without_spill(duckdb.connect))
    sql = "SELECT count(*) FROM (SELECT DISTINCT hash(range)::VARCHAR || 'and some more text' FROM range(2000000))"
    with pytest.raises(BadSetting) as error:
        fetch(tight, sql)
    assert one_line(error).startswith(
        f"{warehouse.file}: DuckDB needs more memory than it may use (Out of Memory Error: "
    )
    assert one_line(error).endswith(
        "expected a larger whorl.memory_mb; raise it in conf/local/whorl.yaml or with WHORL_WHORL__MEMORY_MB"
    )


def without_spill(connect):
    """DuckDB without a folder to spill to, so that a small query fills its memory."""
    return lambda file, *, read_only, config: connect(
        file, read_only=read_only, config={**config, "temp_directory": ""}
    )


def test_what_does_not_fit_into_memory_is_spilled(warehouse):
    tight = warehouse.model_copy(update={"memory_mb": 64})
    sql = "SELECT max(a) AS a FROM (SELECT range AS a, hash(range)::VARCHAR AS b FROM range(1500000) ORDER BY b)"
    assert fetch(tight, sql)["a"].tolist() == [1_499_999]


def test_many_rows_can_be_fetched(warehouse):
    assert len(fetch(warehouse, "SELECT range AS a, range::VARCHAR AS b FROM range(500000)")) == 500_000


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


ANOTHER_PROGRAM = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "r")
print("open", flush=True)
input()
"""


@pytest.fixture
def another_program(warehouse):
    """A function that opens the warehouse in a DuckDB of its own, without our lock."""
    started = []

    def start(mode):
        command = [sys.executable, "-c", ANOTHER_PROGRAM, str(warehouse.file), mode]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "open\n"
        return process

    yield start
    for process in started:
        process.communicate("\n")


def test_a_file_that_another_program_has_open_is_busy_and_not_broken(warehouse, another_program, monkeypatch):
    monkeypatch.setattr(connections, "RELEASE_S", 0)
    process = another_program("r")
    assert fetch(warehouse, NODES)["node"].tolist() == []
    with pytest.raises(WarehouseBusy) as error, writing(warehouse):
        pass
    assert one_line(error).startswith(
        f"{warehouse.file}: another program, or another part of this one, has the file open"
    )
    assert f"(PID {process.pid})" in one_line(error)
    assert one_line(error).endswith("close it there, or work on a copy made with 'whorl warehouse snapshot'")


def test_a_lock_that_duckdb_still_holds_for_a_moment_is_waited_for(warehouse, another_program):
    process = another_program("w")
    threading.Timer(0.2, process.kill).start()
    assert fetch(warehouse, NODES)["node"].tolist() == []


def test_cursors_and_relations_kept_beyond_their_block_do_not_keep_the_file_open(warehouse):
    with reading(warehouse) as connection:
        kept = connection.cursor(), connection.sql(NODES), connection.execute(NODES)
    with writing(warehouse):
        pass
    assert len(kept) == 3


def test_other_limits_in_another_thread_of_this_process_are_told_as_such(warehouse, monkeypatch):
    monkeypatch.setattr(connections, "RELEASE_S", 0)
    other = warehouse.model_copy(update={"memory_mb": 512})
    with reading(warehouse), pytest.raises(WarehouseBusy, match="different configuration"):
        with opened(other, other.file, read_only=True):
            pass


def test_settings_that_another_thread_has_locked_keep_nobody_from_reading(warehouse):
    with reading(warehouse) as locked:
        locked.execute("SET lock_configuration = true")
        with opened(warehouse, warehouse.file, read_only=True) as connection:
            assert connection.execute(NODES).fetchall() == []


def test_no_progress_bar_is_drawn(warehouse):
    found = fetch(warehouse, "SELECT current_setting('enable_progress_bar') AS drawn")
    assert found["drawn"].tolist() == [False]


def test_limits_reach_duckdb(warehouse):
    found = fetch(
        warehouse.model_copy(update={"memory_mb": 333, "threads": 3}),
        """SELECT current_setting('memory_limit') AS memory, current_setting('threads') AS threads,
            current_setting('temp_directory') AS spill, current_setting('autoinstall_known_extensions') AS installs""",
    ).iloc[0]
    assert (found["memory"], found["threads"], found["installs"]) == ("317.5 MiB", 3, False)
    assert found["spill"] == str(warehouse.spill)


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
def open_to_all(bare):
    """A warehouse that everybody may read and nobody but its owner may write."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory(prefix="whorl-rights-") as folder:  # tmp_path lies where others may not look
        Path(folder).chmod(0o755)
        shared = bare.model_copy(update={"home": Path(folder) / "home"})
        with writing(shared) as connection:
            connection.execute(INSERT)
        yield shared


def as_nobody(home):
    command = [sys.executable, "-c", NOBODY, str(home)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


def test_a_home_that_may_only_be_read_can_be_read_and_says_why_it_cannot_be_written(open_to_all):
    found = as_nobody(open_to_all.home)
    assert found[0] == "['node']"
    assert found[1].startswith(f"BadSetting {open_to_all.home / '.queue'}: no right to use it (Permission denied)")
    assert found[1].endswith("change its rights, or name another home with WHORL_HOME")


def test_a_home_that_may_not_even_be_read_is_one_clear_line(open_to_all):
    open_to_all.home.chmod(0o700)
    found = as_nobody(open_to_all.home)
    assert len(found) == 1
    assert found[0].startswith(f"BadSetting {open_to_all.file}: no right to use it (Permission denied)")


def test_faults_that_nobody_can_mend_from_outside_pass_as_they_are():
    with pytest.raises(FileNotFoundError), faults.told_clearly("home"):
        raise FileNotFoundError(2, "No such file")
    with pytest.raises(duckdb.BinderException), faults.told_clearly("home"), duckdb.connect() as connection:
        connection.execute("SELECT nothing FROM (SELECT 1)")
    assert faults.first_line(ValueError("")) == "ValueError"


@pytest.mark.parametrize("number", [28, 122, 27])
def test_a_full_disk_is_told_where_it_is_full(number):
    with pytest.raises(WhorlError, match=r"^/data/file: the disk is full"), faults.told_clearly("home"):
        raise OSError(number, "full", "/data/file")


def test_rlimit_is_that_of_this_process():
    """The limit of the test about full disks must not leak into this process."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
