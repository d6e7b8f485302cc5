"""`whorl warehouse`: copies, rebuilding, tidying up, and what stands in it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from tasks.warehouse.connection import fetch
from tasks.warehouse.hashes import hash_tables
from tasks.warehouse.place import Warehouse

Whorl = Callable[..., Any]


def test_a_snapshot_is_a_warehouse_of_its_own(whorl: Whorl, varied_log: Warehouse, tmp_path: Path) -> None:
    ended = whorl("warehouse", "snapshot", tmp_path / "copy" / "warehouse.duckdb")
    assert ended.out == f"{tmp_path}/copy/warehouse.duckdb\n"
    copied = Warehouse(home=tmp_path / "copy")
    assert fetch(copied, "SELECT count(*) AS n FROM jobs.runs")["n"][0] == 41


def test_a_backup_comes_back(whorl: Whorl, varied_log: Warehouse, home: Path, tmp_path: Path) -> None:
    before = whorl("warehouse", "hashes", "--json").out
    folder = whorl("warehouse", "backup", tmp_path / "backups").out.strip()
    (home / "warehouse.duckdb").unlink()
    ended = whorl("warehouse", "restore", folder)
    assert ended.out.startswith(f"{home}: restored from {folder}, ")
    assert whorl("warehouse", "hashes", "--json").out == before


def test_a_folder_that_is_no_backup_is_refused(whorl: Whorl, varied_log: Warehouse, tmp_path: Path) -> None:
    ended = whorl("warehouse", "restore", tmp_path)
    assert ended.code == 3
    assert "no backup.json in it; expected a folder made by 'whorl warehouse backup'" in ended.err


def test_a_dry_prune_removes_nothing(whorl: Whorl, varied_log: Warehouse) -> None:
    before = whorl("warehouse", "hashes", "--json").out
    ended = whorl("warehouse", "prune", "--dry-run")
    assert ended.out == "would remove: 0 runs, 0 models, 0 landing files\n"
    assert json.loads(whorl("warehouse", "prune", "--json").out)["n_runs"] == 0
    assert whorl("warehouse", "hashes", "--json").out == before


def test_pruning_names_what_killed_processes_left(whorl: Whorl, varied_log: Warehouse) -> None:
    draft = varied_log.file.with_name(f"{varied_log.file.name}.rebuilding")
    draft.write_text("half")
    ended = whorl("warehouse", "prune")
    assert ended.out.splitlines() == [
        str(draft),
        "removed: 0 runs, 0 models, 0 landing files, 1 leftover of killed processes",
    ]
    assert not draft.exists()


def test_rebuilding_says_from_how_many_files(whorl: Whorl, home: Path) -> None:
    ended = whorl("warehouse", "rebuild")
    assert ended.code == 0
    assert ended.out == f"{home}/warehouse.duckdb: rebuilt from 0 files of jobs\n"


def test_hashes_see_rows_and_not_their_order(job_log_at: Callable[[Path], Any], tmp_path: Path) -> None:
    at = pd.Timestamp("2026-01-01")
    rows: list[dict[str, Any]] = [{"runtime_s": float(i), "run_id": f"r{i}", "submitted_at": at} for i in range(30)]

    def hashed(name: str, chosen: list[dict[str, Any]]) -> dict[str, str]:
        return {one.table: one.hash for one in hash_tables(job_log_at(tmp_path / name)(chosen))}

    first = hashed("a", rows)
    assert hashed("b", rows[::-1])["jobs.runs"] == first["jobs.runs"]
    assert hashed("c", rows[:-1])["jobs.runs"] != first["jobs.runs"]
    assert hashed("d", [*rows, rows[0]])["jobs.runs"] != first["jobs.runs"]
    doubled_pair = [*rows[2:], rows[1], rows[1]]  # as many rows, two the same: an exclusive or would not see it
    assert hashed("e", [*doubled_pair, rows[0]])["jobs.runs"] != hashed("f", [*rows, rows[0]])["jobs.runs"]


def test_the_dictionary_explains_every_column_of_a_query(whorl: Whorl) -> None:
    shown = whorl("warehouse", "dictionary").out
    assert shown.startswith("# Data dictionary\n")
    assert "| `runtime_s` | DOUBLE | seconds from start to end" in shown
