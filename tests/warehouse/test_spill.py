"""What memory does not hold goes to the disk, up to a limit, and what a killed process left of it goes."""

import logging
import os
import subprocess
import sys

import pytest

from tasks.errors import BadInput, BadSetting
from tasks.warehouse.connection import fetch, reading, writing
from tasks.warehouse.query import ask
from tasks.warehouse.spill import clear_spill

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


def test_a_larger_limit_lets_the_same_query_through(tight):
    assert fetch(tight.model_copy(update={"spill_mb": 2000}), SORTED).iloc[0, 0] == 3_000_000


def test_the_limit_reaches_duckdb(warehouse):
    wide = warehouse.model_copy(update={"spill_mb": 1024})
    found = fetch(wide, "SELECT current_setting('max_temp_directory_size') AS most")
    assert found["most"].tolist() == ["976.5 MiB"]
