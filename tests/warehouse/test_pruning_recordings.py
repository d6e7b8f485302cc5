"""What watches have recorded goes when it is old, with all that was made of it; nothing else does."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tasks.warehouse import landing
from tasks.warehouse.alarms import Alarm, raise_alarms
from tasks.warehouse.connection import fetch, transaction, writing
from tasks.warehouse.hashes import hash_tables
from tasks.warehouse.live_recordings import live_folder
from tasks.warehouse.place import Warehouse
from tasks.warehouse.prune_params import PruneParams
from tasks.warehouse.pruning import Pruned, prune
from tasks.warehouse.rebuild import rebuild
from tasks.workloads import steps
from tasks.workloads.landed import fetch_runs
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.record.parts import (
    table_of,
    write_table,
)

LATER = datetime(2100, 1, 1)
KEEP_ALL = {"runs_kept_days": 36_500, "orphans_kept_hours": 0, "live_kept_days": 14}
OF_RUNS = ("runs", "counters", "phases", "run_phases", "identifications")


@pytest.fixture
def watched(identifying_log: Warehouse) -> Warehouse:
    """A source with labelled runs, and three that watches have recorded, landed and identified."""
    [run] = fetch_runs(identifying_log, "log", ["a-00"])
    for name in ("one", "two", "three"):
        path = live_folder(identifying_log) / f"live-{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        live = replace(run, run_id=name, workload=None, round=None, values=run.values + len(name))
        write_table(path, table_of(live), {"is_simulated": True})
        steps.ingest_batch(
            identifying_log, steps.land_telemetry(identifying_log, str(path), "log", "wide", ReadParams())
        )
    steps.identify(identifying_log, "log", ["one", "two", "three", "a-00"], "all")
    return identifying_log


def runs_in(warehouse: Warehouse, table: str) -> set[str]:
    return set(fetch(warehouse, f"SELECT DISTINCT run_id FROM workloads.{table}")["run_id"])


def hashes(warehouse: Warehouse) -> dict[str, str]:
    return {one.table: one.hash for one in hash_tables(warehouse) if one.table.startswith("workloads.")}


def test_old_recordings_go_with_all_that_was_made_of_them(watched: Warehouse) -> None:
    with writing(watched) as connection, transaction(connection):
        connection.execute("INSERT INTO workloads.run_phases BY NAME SELECT 'log' AS source, 'two' AS run_id, "
                           "'k' AS key, 1 AS phase, 0 AS start_sample, 30 AS end_sample").fetchall()  # fmt: skip
    dry = prune(watched, PruneParams(**KEEP_ALL), LATER, dry_run=True)
    assert len(runs_in(watched, "runs")) == 27
    pruned = prune(watched, PruneParams(**KEEP_ALL), LATER)
    assert pruned == dry
    assert (pruned.n_recorded, len(pruned.recordings), pruned.n_runs) == (3, 3, 0)
    assert list(live_folder(watched).iterdir()) == []
    for table in OF_RUNS:
        assert not runs_in(watched, table) & {"one", "two", "three"}, table
    assert len(runs_in(watched, "runs")) == 24 and runs_in(watched, "identifications") == {"a-00"}
    assert len(fetch(watched, "SELECT * FROM ops.files")) == 1
    assert len(landing.batches(watched.landing_folder, "workloads")) == 1
    assert prune(watched, PruneParams(**KEEP_ALL), LATER) == Pruned(0, [], [], [], [])


def test_a_rebuild_does_not_bring_them_back(watched: Warehouse) -> None:
    prune(watched, PruneParams(**KEEP_ALL), LATER)
    before = hashes(watched)
    rebuild(watched)
    assert hashes(watched) == before


def test_young_recordings_stay(watched: Warehouse) -> None:
    before = hashes(watched)
    now = datetime.fromtimestamp(max(path.stat().st_mtime for path in live_folder(watched).iterdir()))
    assert prune(watched, PruneParams(**KEEP_ALL), now + timedelta(days=13)).n_files == 0
    assert hashes(watched) == before
    assert len(list(live_folder(watched).iterdir())) == 3


def test_a_run_that_an_alarm_names_stays_and_so_does_one_with_a_label(watched: Warehouse) -> None:
    with writing(watched) as connection:
        raise_alarms(connection, [Alarm("workloads", "log", "unknown-workload", "two", "since run two", {})])
        connection.execute("UPDATE workloads.runs SET workload = 'a' WHERE run_id = 'three'").fetchall()
    assert prune(watched, PruneParams(**KEEP_ALL), LATER).n_recorded == 1
    assert runs_in(watched, "runs") & {"one", "two", "three"} == {"two", "three"}
    assert {"two", "three"} <= runs_in(watched, "counters") & runs_in(watched, "identifications")


def test_telemetry_of_other_folders_stays_however_old_it_is(watched: Warehouse, tmp_path: Path) -> None:
    [run] = fetch_runs(watched, "log", ["b-00"])
    path = tmp_path / "workloads-live" / "live-mine.parquet"  # not below recordings/
    path.parent.mkdir()
    write_table(path, table_of(replace(run, run_id="mine", workload=None)), {"is_simulated": True})
    steps.ingest_batch(watched, steps.land_telemetry(watched, str(path), "log", "wide", ReadParams()))
    os.utime(path, (0, 0))
    prune(watched, PruneParams(**KEEP_ALL), LATER)
    assert "mine" in runs_in(watched, "runs")
    assert path.exists()


def test_what_a_killed_prune_left_in_the_landing_folder_goes_next_time(
    watched: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_: Callable[..., object]) -> list[str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tasks.warehouse.pruning._named_first", die)
        with pytest.raises(KeyboardInterrupt):
            prune(watched, PruneParams(**KEEP_ALL), LATER)
    assert not runs_in(watched, "runs") & {"one", "two", "three"}
    assert len(landing.batches(watched.landing_folder, "workloads")) == 4
    prune(watched, PruneParams(**KEEP_ALL), LATER)
    assert len(landing.batches(watched.landing_folder, "workloads")) == 1
    before = hashes(watched)
    rebuild(watched)
    assert hashes(watched) == before
