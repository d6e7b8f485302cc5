"""Rebuild: the same rows from the landing folder, and nothing of whorl's own memory lost."""

import os
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from tasks.errors import BadInput, WarehouseBroken, WarehouseBusy
from tasks.warehouse import connection as connections
from tasks.warehouse import copies
from tasks.warehouse.connection import fetch, writing
from tasks.warehouse.copies import hash_tables, rebuild
from tasks.warehouse.runs import RunRecord, record_run

ROWS = [{"run_id": "1", "runtime_s": 10.0}, {"run_id": "2", "runtime_s": 20.0}]
NOON = datetime(2026, 1, 1, 12)
RUN = RunRecord(
    run_id="r1", flow="jobs-ingest", word="jobs", source="log", status="completed", started_at=NOON, ended_at=NOON,
    parameters={}, figures={},
)  # fmt: skip


def hashes(warehouse):
    return {one.table: one.hash for one in hash_tables(warehouse) if one.table != "ops.migrations"}


@pytest.fixture
def filled(warehouse, put_in):
    """Two files, the second of them read twice, a run, an alarm, and a summary that another step made."""
    put_in(warehouse, [*ROWS, ROWS[0]], "a.csv")
    put_in(warehouse, ROWS[1:], "b.csv")
    put_in(warehouse, ROWS[:1], "b.csv", version="2")
    record_run(warehouse, RUN)
    with writing(warehouse) as connection:
        connection.execute(
            "INSERT INTO ops.alarms VALUES ('1', 'jobs', 'log', 'slow-run', 's', 'm', '{}', '2026-01-01', NULL)"
        )
        connection.execute(
            "INSERT INTO jobs.groups (source, group_key, n_runs, n_finished, n_failed, n_cancelled, n_ongoing, "
            "first_at, last_at, n_history, n_new) "
            "VALUES ('log', 'job', 2, 2, 0, 0, 0, '2026-01-01', '2026-01-02', 1, 1)"
        )
    return warehouse


def test_a_rebuilt_warehouse_holds_the_same_rows_in_every_table(filled):
    before = hashes(filled)
    assert rebuild(filled) == {"jobs": 2, "workloads": 0, "nodes": 0, "kept_history": 1}
    assert hashes(filled) == before
    assert not list(filled.home.glob("warehouse.duckdb?*"))


def test_a_lost_warehouse_comes_back(filled):
    before = hashes(filled)
    filled.file.unlink()
    assert rebuild(filled) == {"jobs": 2, "workloads": 0, "nodes": 0, "kept_history": 0}
    after = hashes(filled)
    lost = {"ops.runs", "ops.alarms", "jobs.groups"}
    assert {name for name in before if before[name] != after[name]} == lost


def test_a_warehouse_that_does_not_open_comes_back_and_is_kept_beside_with_its_log(filled, runs_in):
    before = runs_in(filled)
    filled.file.write_bytes(b"hello")
    Path(f"{filled.file}.wal").write_bytes(b"log")
    assert rebuild(filled)["kept_history"] == 0
    assert runs_in(filled) == before
    kept = sorted(filled.home.glob("warehouse.duckdb.broken-*"))
    assert [path.read_bytes() for path in kept] == [b"hello", b"log"]
    assert kept[1].name == f"{kept[0].name}.wal"


def test_what_only_the_log_of_a_killed_process_holds_is_taken_over(filled):
    child = os.fork()
    if child == 0:
        with writing(filled) as connection:
            connection.execute("UPDATE ops.runs SET status = 'failed'")
            os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    assert Path(f"{filled.file}.wal").exists()
    rebuild(filled)
    assert fetch(filled, "SELECT status FROM ops.runs")["status"].tolist() == ["failed"]


def test_a_warehouse_that_another_program_has_open_is_busy_and_loses_nothing(filled, monkeypatch):
    """It does not open either, but it is not broken: its history must not be left behind."""
    monkeypatch.setattr(connections, "RELEASE_S", 0)
    before = filled.file.read_bytes()
    with duckdb.connect(str(filled.file), read_only=True):
        with pytest.raises(WarehouseBusy, match="has the file open"):
            rebuild(filled)
    assert filled.file.read_bytes() == before
    assert rebuild(filled)["kept_history"] == 1


def test_a_landing_folder_with_a_fault_leaves_the_warehouse_alone(filled, manifests):
    before = hashes(filled)
    name = next(iter(manifests(filled).values()))["tables"]["runs"]["name"]
    (Path(filled.landing_folder) / "jobs" / name).unlink()
    with pytest.raises(BadInput, match="the landing file is missing"):
        rebuild(filled)
    assert hashes(filled) == before


def test_without_anything_a_rebuild_makes_an_empty_warehouse(bare):
    assert rebuild(bare) == {"jobs": 0, "workloads": 0, "nodes": 0, "kept_history": 0}
    assert fetch(bare, "SELECT count(*) AS n FROM jobs.runs")["n"].tolist() == [0]


def test_a_batch_that_was_landed_and_never_ingested_comes_in(warehouse, land, runs_in):
    land(warehouse, ROWS)
    rebuild(warehouse)
    assert len(runs_in(warehouse)) == 2


def test_a_draft_with_a_log_is_never_put_in_place(warehouse):
    draft = warehouse.home / "draft"
    draft.write_bytes(b"")
    Path(f"{draft}.wal").write_bytes(b"")
    with pytest.raises(WarehouseBroken, match="not whole without its log; run the same again"):
        copies.put_in_place(warehouse, draft, keep_old_as=None)


def test_a_log_that_duckdb_does_not_write_into_its_file_is_found_out(warehouse):
    with pytest.raises(WarehouseBroken, match="DuckDB did not finish it"), writing(warehouse) as connection:
        Path(f"{warehouse.file}.wal.recovery").write_bytes(b"")
        connections.finish(connection, warehouse.file)


def test_where_a_file_system_knows_no_links_the_old_file_is_kept_as_a_copy(filled, monkeypatch):
    def refuse(*_args):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    filled.file.write_bytes(b"hello")
    rebuild(filled)
    assert [path.read_bytes() for path in filled.home.glob("warehouse.duckdb.broken-*")] == [b"hello"]


@pytest.mark.parametrize(("table", "keeps"), [("jobs.runs", True), ("ops.alarms", False)])
def test_what_can_be_read_of_a_damaged_warehouse_is_taken_over_and_it_is_kept_beside(filled, table, keeps, caplog):
    before, content = hashes(filled), bytearray(filled.file.read_bytes())
    with duckdb.connect(str(filled.file), read_only=True) as connection:
        found = connection.execute(f"SELECT DISTINCT block_id FROM pragma_storage_info('{table}') WHERE block_id >= 0")
        for (block,) in found.fetchall():
            content[3 * 4096 + block * 262_144 + 1000] ^= 0xFF
    filled.file.write_bytes(content)
    with pytest.raises(WarehouseBroken, match="is damaged"):
        hashes(filled)
    rebuild(filled)
    after = hashes(filled)
    assert {name for name in before if before[name] != after[name]} <= {"ops.alarms", "ops.runs", "jobs.groups"}
    assert len(list(filled.home.glob("warehouse.duckdb.broken-*"))) == 1
    assert ("ops.alarms" in caplog.text) == (after["ops.alarms"] != before["ops.alarms"])
    if not keeps:
        assert after["ops.alarms"] != before["ops.alarms"]
