"""Connections: what is found after a kill, who may have the file open at once, and crowds that nobody starves in."""

import json
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest

from tasks.errors import BadInput, BadSetting, NoWarehouse, WarehouseBusy
from tasks.warehouse import connection as connections
from tasks.warehouse.connection import clear_spill, fetch, logs_of, opened, reading, transaction, writing
from tasks.warehouse.query import ask

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


def killed_writer(warehouse):
    """A process that commits one statement and is killed before DuckDB writes its log into the file."""
    subprocess.run([sys.executable, "-c", KILLED_WRITER, str(warehouse.home), INSERT], check=False)


def one_line(error):
    text = str(error.value)
    assert "\n" not in text
    return text


INTERRUPTED_READER = """
import sys
from pathlib import Path
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
class CtrlC:
    def find_spec(self, name, *_):
        if name == "pandas":
            raise KeyboardInterrupt
sys.meta_path.insert(0, CtrlC())
fetch(Warehouse(home=Path(sys.argv[1]), memory_mb=128, threads=1), "SELECT 1")
"""


def test_an_interrupt_while_pandas_is_imported_is_no_lack_of_pandas(warehouse):
    command = [sys.executable, "-c", INTERRUPTED_READER, str(warehouse.home)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.stderr.endswith("KeyboardInterrupt\n")


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


def test_a_reader_sees_what_a_killed_writer_committed_and_leaves_its_log_to_the_next_writer(warehouse):
    killed_writer(warehouse)
    assert logs_of(warehouse.file)
    assert fetch(warehouse, NODES)["node"].tolist() == ["node"]
    assert logs_of(warehouse.file)
    with writing(warehouse):
        pass
    assert not logs_of(warehouse.file)
    assert fetch(warehouse, NODES)["node"].tolist() == ["node"]


def test_a_transaction_that_fails_leaves_nothing_and_tells_its_own_error(warehouse):
    with writing(warehouse) as connection:
        with pytest.raises(ZeroDivisionError), transaction(connection):
            connection.execute(INSERT)
            raise ZeroDivisionError
        with pytest.raises(ZeroDivisionError), transaction(connection):
            connection.execute("ROLLBACK")  # as DuckDB does by itself after some faults
            raise ZeroDivisionError
    assert fetch(warehouse, NODES)["node"].tolist() == []


def test_a_log_that_an_earlier_file_left_behind_does_not_keep_a_new_one_from_opening(warehouse):
    killed_writer(warehouse)
    warehouse.file.unlink()
    with writing(warehouse) as connection:
        connection.execute(INSERT)
    assert fetch(warehouse, NODES)["node"].tolist() == ["node"]
    assert [path.name for path in warehouse.home.glob("warehouse.duckdb.lost-*.wal")]


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


def test_limits_reach_duckdb_and_no_progress_bar_is_drawn(warehouse):
    names = ("memory_limit", "threads", "temp_directory", "autoinstall_known_extensions", "max_temp_directory_size",
             "enable_progress_bar")  # fmt: skip
    limited = warehouse.model_copy(update={"memory_mb": 333, "threads": 3, "spill_mb": 1024})
    sql = ", ".join(f"current_setting('{name}') AS {name}" for name in names)
    found = fetch(limited, f"SELECT {sql}").iloc[0].tolist()
    assert found == ["317.5 MiB", 3, str(warehouse.spill), False, "976.5 MiB", False]


MUCH = "SELECT hash(range)::VARCHAR || 'x' AS a, random() AS b FROM range(3000000)"
SORTED = f"SELECT count(DISTINCT (a, b)) FROM ({MUCH})"
KILLED = """
import os, signal, sys
from pathlib import Path
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse
with reading(Warehouse(home=Path(sys.argv[1]), memory_mb=64, threads=1)) as connection:
    connection.execute("CREATE TEMP TABLE t AS " + sys.argv[2])
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def tight(warehouse):
    """A warehouse with little memory and hardly any disk for what does not fit."""
    return warehouse.model_copy(update={"memory_mb": 64, "spill_mb": 1})


def spilled(warehouse):
    return [path.name for path in warehouse.spill.glob("duckdb_temp_*.tmp")] if warehouse.spill.exists() else []


def test_what_a_killed_query_spilled_goes_with_the_next_writer(warehouse):
    subprocess.run([sys.executable, "-c", KILLED, str(warehouse.home), MUCH], check=False)
    assert spilled(warehouse)
    with writing(warehouse):
        assert spilled(warehouse) == []


def test_a_dead_file_goes_though_its_process_id_is_ours_again(warehouse):
    warehouse.spill.mkdir()
    files = [warehouse.spill / f"duckdb_temp_{pid}_0_storage_DEFAULT-0.tmp" for pid in (0, os.getpid())]
    strange = warehouse.spill / "notes.txt"
    for file in (*files, strange):
        file.write_text("rows")
    assert clear_spill(warehouse.spill) == sorted(files)
    assert [path.name for path in warehouse.spill.iterdir()] == ["notes.txt"]


def test_a_reader_leaves_alone_what_others_spilled(warehouse):
    """Other readers may be at work."""
    warehouse.spill.mkdir()
    other = warehouse.spill / "duckdb_temp_0_0_storage_DEFAULT-0.tmp"
    other.write_text("rows")
    with reading(warehouse):
        assert other.exists()


def test_a_dead_file_that_cannot_be_removed_keeps_nobody_from_writing(warehouse, caplog):
    (warehouse.spill / "duckdb_temp_0_0_folder").mkdir(parents=True)
    with caplog.at_level(logging.WARNING), writing(warehouse):
        pass
    assert caplog.messages == [
        f"{warehouse.spill / 'duckdb_temp_0_0_folder'}: cannot be removed (Is a directory); a killed process left it"
    ]


def test_a_query_that_spills_more_than_it_may_is_one_clear_line(tight):
    with pytest.raises(BadInput) as error:
        ask(tight, SORTED)
    assert str(error.value) == (
        "query: more than the 1 MB of disk that DuckDB may use for what memory does not hold; "
        "expected a query that fits; raise whorl.spill_mb, or ask for less"
    )


def test_a_writer_that_spills_more_than_it_may_is_one_clear_line(tight):
    with pytest.raises(BadSetting) as error, writing(tight) as connection:
        connection.execute(f"CREATE TEMP TABLE t AS {MUCH}")
    assert str(error.value).startswith(
        f"{tight.file}: DuckDB needs more disk space for what memory does not hold than it may use "
        "(Out of Memory Error: failed to offload data block"
    )
    assert str(error.value).endswith(
        "; expected a larger whorl.spill_mb or whorl.memory_mb; raise one in conf/local/whorl.yaml or with "
        "WHORL_WHORL__SPILL_MB"
    )
    assert "\n" not in str(error.value)


PROGRAM = Path(__file__).with_name("crowd.py")


def test_a_reader_between_writers_that_never_pause_gets_its_turn(warehouse):
    """In a queue 18 times, without one once or twice."""
    command = [sys.executable, str(PROGRAM), str(warehouse.home), "1", "3", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["readers"]["faults"] == found["writers"]["faults"] == []
    assert min(found["readers"]["served"]) >= 5
