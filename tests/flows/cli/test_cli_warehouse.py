"""`whorl warehouse`: copies, rebuilding, tidying up, and what stands in it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tasks.jobs.intake import (
    Intake,
    land_log,
)
from tasks.jobs.params import GroupParams, ReadParams
from tasks.warehouse.connection import fetch
from tasks.warehouse.hashes import hash_tables
from tasks.warehouse.ingest import ingest
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
    assert ended.out.startswith(f"{home}/warehouse.duckdb: rebuilt from 0 files of jobs")
    assert "not made again" not in ended.err  # there was nothing


@pytest.mark.slow
def test_a_rebuild_says_what_it_does_not_make_again_and_by_which_commands_it_is(
    whorl: Whorl, csv_log: Path, home: Path
) -> None:
    intake = Intake("a b", "own", ReadParams(), GroupParams())
    warehouse = Warehouse(home=home)
    ingest(warehouse, "jobs", land_log(warehouse, str(csv_log), intake).batch_id)
    first = whorl("warehouse", "rebuild").err.splitlines()
    assert len(first) == 1
    assert "predictions, reasons and what-ifs stand as they did; anew by whorl jobs summary --source 'a b'" in first[0]
    warehouse.file.unlink()
    assert "what-ifs are lost; anew by " in whorl("warehouse", "rebuild").err.splitlines()[-1]
    assert whorl("warehouse", "rebuild", "--json").err == ""


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


def test_machines_are_told_what_a_copy_is_and_where(whorl: Whorl, varied_log: Warehouse, tmp_path: Path) -> None:
    file = tmp_path / "copy.duckdb"
    told = json.loads(whorl("warehouse", "snapshot", file, "--json").out)
    assert told == {"file": str(file), "size_bytes": file.stat().st_size}
    made = json.loads(whorl("warehouse", "backup", tmp_path / "backups", "--json").out)
    files = [one for one in Path(made["folder"]).rglob("*") if one.is_file()]
    assert made == {
        "folder": str(next((tmp_path / "backups").iterdir())),
        "n_files": len(files),
        "size_bytes": sum(one.stat().st_size for one in files),
    }
    back = json.loads(whorl("warehouse", "restore", made["folder"], "--json").out)
    assert back == {"home": str(varied_log.home), "folder": made["folder"], "n_files": 1}  # the list counts no list


def test_machines_get_the_dictionary_table_by_table(whorl: Whorl) -> None:
    told = json.loads(whorl("warehouse", "dictionary", "--json").out)["tables"]
    assert set(told["jobs.runs"]) == {"meaning", "columns"}
    assert told["jobs.runs"]["columns"]["runtime_s"]["type"] == "DOUBLE"
    assert told["jobs.runs"]["columns"]["run_id"]["is_nullable"] is False


def kept_aside(warehouse: Warehouse) -> Path:
    kept = warehouse.file.with_name(f"{warehouse.file.name}.broken-20200101T120000000000")
    kept.write_text("not whole")
    return kept


def test_a_copy_kept_aside_goes_when_it_is_old(whorl: Whorl, varied_log: Warehouse) -> None:
    kept = kept_aside(varied_log)
    ended = whorl("warehouse", "prune")
    assert ended.out.splitlines() == [str(kept), "removed: 0 runs, 0 models, 0 landing files, 1 old copy"]
    assert not kept.exists()


def test_what_prune_keeps_can_be_set_and_a_flag_wins(
    whorl: Whorl, varied_log: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = kept_aside(varied_log)
    monkeypatch.setenv("WHORL_WHORL__PRUNE__COPIES_KEPT_DAYS", "36500")
    assert json.loads(whorl("warehouse", "prune", "--json", "--home", varied_log.home).out)["copies"] == []
    told = whorl("warehouse", "prune", "--json", "--home", varied_log.home, "--copies-kept-days", 1, "--dry-run").out
    assert json.loads(told)["copies"] == [str(kept)]
    assert kept.exists()


@pytest.mark.parametrize(
    ("flag", "value", "key"),
    [
        ("--runs-kept-days", "-1", "runs_kept_days"),
        ("--models-kept", "10001", "models_kept"),
        ("--orphans-kept-hours", "nan", "orphans_kept_hours"),
        ("--copies-kept-days", "inf", "copies_kept_days"),
        ("--live-kept-days", "-0.5", "live_kept_days"),
    ],
)
def test_a_wrong_flag_of_prune_is_one_line(
    whorl: Whorl, varied_log: Warehouse, flag: str, value: str, key: str
) -> None:
    ended = whorl("warehouse", "prune", flag, value)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"whorl: flag: whorl.prune.{key}: ")
    assert ended.err.count("\n") == 1


def test_half_backups_are_looked_for_where_a_flag_says(whorl: Whorl, varied_log: Warehouse, tmp_path: Path) -> None:
    half = tmp_path / "far" / "whorl-20200101T120000000000Z"
    half.mkdir(parents=True)
    os.utime(half, (0, 0))
    assert json.loads(whorl("warehouse", "prune", "--json").out)["copies"] == []
    assert json.loads(whorl("warehouse", "prune", "--json", "--backups", tmp_path / "far").out)["copies"] == [str(half)]
    assert not half.exists()


def test_what_a_watch_recorded_goes_when_it_is_old(whorl: Whorl, varied_log: Warehouse) -> None:
    recorded = varied_log.home / "recordings" / "workloads-live" / "live-one.parquet"
    recorded.parent.mkdir(parents=True)
    recorded.write_text("recorded")
    os.utime(recorded, (0, 0))
    assert json.loads(whorl("warehouse", "prune", "--json", "--live-kept-days", 36_500).out)["recordings"] == []
    assert whorl("warehouse", "prune").out.splitlines() == [
        str(recorded),
        "removed: 0 runs, 0 models, 0 landing files, 0 recorded runs and 1 recording",
    ]
    assert not recorded.exists()
