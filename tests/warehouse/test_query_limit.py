"""Limits of a query: nobody waits for a question that somebody forgot, and it takes no more memory than it may."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from tasks.errors import BadInput
from tasks.settings import Settings
from tasks.warehouse.connection import writing
from tasks.warehouse.lock import holders_of as lock_holders
from tasks.warehouse.query import ask

ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE hash(a.range, b.range) = 1"
MANY_ROWS = "SELECT a.range FROM range(1000000000) a, range(1000000000) b"


@pytest.mark.parametrize("sql", [ENDLESS, MANY_ROWS])
def test_a_query_beyond_its_limit_is_stopped_with_one_clear_line(warehouse, sql):
    with pytest.raises(BadInput) as error:
        ask(warehouse, sql, limit_s=0.05)
    assert str(error.value) == (
        "query: stopped after 0.05 s, its time limit: whoever wants to write waits for it; expected an answer within "
        "that time; ask for less, or allow more with --limit-s or whorl.query_limit_s (0: no limit)"
    )


def test_a_writer_gets_its_turn_when_a_query_was_stopped(warehouse):
    patient = warehouse.model_copy(update={"lock_wait_s": 60})
    told = []

    def forget():
        try:
            ask(patient, ENDLESS, limit_s=0.3)
        except BadInput as error:
            told.append(error)

    forgotten = threading.Thread(target=forget)
    forgotten.start()
    with writing(patient) as connection:
        connection.execute("INSERT INTO ops.machines VALUES ('log', 'node', 'big')")
    forgotten.join()
    assert len(told) == 1


def test_without_a_limit_a_query_takes_its_time(warehouse):
    assert ask(warehouse, "SELECT count(*) AS n FROM range(3000000)", limit_s=0).rows.to_pylist() == [{"n": 3_000_000}]


def test_the_shipped_limit_lets_a_writer_wait_for_it(warehouse):
    """Else a writer would give up while a query is still allowed to go on."""
    common = Settings().whorl
    assert 0 < common.query_limit_s < common.lock_wait_s


ONE_CALL = {
    "repeat": "SELECT length(repeat('x', 4000000000))",
    "list_sort": "SELECT len(list_sort(range(200000000)))",
    "levenshtein": "SELECT levenshtein(repeat('ab', 200000), repeat('ba', 200000))",
    "regexp": "SELECT length(regexp_replace(repeat('ab', 500000000), '(a|b)', 'xyz', 'g'))",
    "sum": "SELECT list_sum(range(300000000))",
}


@pytest.mark.parametrize("call", ONE_CALL)
def test_a_limit_binds_inside_one_call_of_a_function(warehouse, call):
    """By its time or by its memory: DuckDB itself looks for neither in there."""
    before = psutil.Process().children()
    with pytest.raises(BadInput, match=r"its time limit|MB that DuckDB may use|too little memory"):
        ask(warehouse, ONE_CALL[call], limit_s=1)
    with writing(warehouse.model_copy(update={"lock_wait_s": 0})):
        pass
    assert psutil.Process().children() == before


def test_memory_is_bounded_whatever_a_query_does(warehouse):
    """Rows that have left DuckDB count too."""
    with pytest.raises(BadInput, match="more than the 256 MB that DuckDB may use"):
        ask(warehouse, "SELECT repeat('x', 1000000) AS a, range FROM range(100000)")


ASKING = """
import sys
from pathlib import Path
from tasks.warehouse.place import Warehouse
from tasks.warehouse.query import ask
ask(Warehouse(home=Path(sys.argv[1])), sys.argv[2])
"""


@pytest.fixture
def asking(warehouse):
    """Another program with an endless query at work, and the child that answers it."""
    with subprocess.Popen(
        [sys.executable, "-c", ASKING, str(warehouse.home), ENDLESS], stderr=subprocess.PIPE
    ) as other:
        while not holders_of(warehouse.home / ".lock"):
            assert other.poll() is None
        [child] = psutil.Process(other.pid).children()
        yield other, child
        other.kill()


def holders_of(lock: Path) -> list[int]:
    return lock_holders(lock) if lock.exists() else []


def test_a_query_ends_with_the_program_that_asks(warehouse, asking):
    other, child = asking
    other.kill()
    child.wait(60)
    with writing(warehouse.model_copy(update={"lock_wait_s": 0})):
        pass


def test_control_c_ends_the_query_too(warehouse, asking):
    other, child = asking
    other.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in other.communicate(timeout=60)[1]
    assert not child.is_running()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_query_whose_process_dies_is_one_clear_line(warehouse, how):
    def kill():
        while not holders_of(warehouse.home / ".lock"):
            pass
        [pid] = holders_of(warehouse.home / ".lock")
        os.kill(pid, how)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(BadInput) as error:
        ask(warehouse, ENDLESS)
    killer.join()
    assert str(error.value) == (
        f"query: its process was ended by {how.name}; often that means too little memory; "
        "expected a query that fits; ask for less"
    )


def test_no_module_of_the_working_folder_is_imported(warehouse, tmp_path, monkeypatch):
    (tmp_path / "duckdb.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    assert ask(warehouse, "SELECT 1 AS a").rows.to_pylist() == [{"a": 1}]
