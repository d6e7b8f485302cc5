"""Pruning: what is not needed goes, and nothing else, whatever the history."""

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import fsspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.errors import NoWarehouse, WhorlError
from tasks.record.parts import write_table
from tasks.warehouse import landing, pruning, registry
from tasks.warehouse.alarms import Alarm, raise_alarms
from tasks.warehouse.connection import fetch, transaction, writing
from tasks.warehouse.copies import hash_tables, rebuild
from tasks.warehouse.ingest import ingest
from tasks.warehouse.place import PruneParams, Warehouse
from tasks.warehouse.pruning import Pruned, live_folder, prune
from tasks.warehouse.runs import RunRecord, record_run
from tasks.workloads import steps
from tasks.workloads.intake import fetch_runs
from tasks.workloads.params import ReadParams
from tasks.workloads.record.parts import table_of

ROWS = [{"run_id": "1", "runtime_s": 10.0}, {"run_id": "2", "runtime_s": 20.0}]
NOON = datetime(2026, 1, 1, 12)
LATER = datetime(2100, 1, 1)
ALL = PruneParams(runs_kept_days=0, models_kept=0, orphans_kept_hours=0)


def add_run(warehouse, run_id, started_at):
    run = RunRecord(
        run_id=run_id, flow="f", word="jobs", source="log", status="completed", started_at=started_at, ended_at=LATER,
        parameters={}, figures={},
    )  # fmt: skip
    record_run(warehouse, run)


def add_model(warehouse, model_id, day, source="log"):
    card = registry.ModelCard(
        model_id=model_id, word="jobs", source=source, kind="shapes", trained_at=NOON + timedelta(days=day), run_id="r",
        data_version="d", code_version="c", seed=1, parameters={}, metrics={},
    )  # fmt: skip
    registry.register(warehouse, card, lambda folder: None)


def rows_of(warehouse):
    return {one.table: one.hash for one in hash_tables(warehouse) if one.table not in ("ops.migrations", "ops.runs")}


def test_old_runs_go_and_young_ones_stay(warehouse):
    add_run(warehouse, "old", NOON - timedelta(days=91))
    add_run(warehouse, "young", NOON - timedelta(days=89))
    assert prune(warehouse, PruneParams(), NOON).n_runs == 1
    assert fetch(warehouse, "SELECT run_id FROM ops.runs")["run_id"].tolist() == ["young"]


def test_the_latest_models_of_each_source_and_all_champions_stay(warehouse):
    for day in range(1, 5):
        add_model(warehouse, f"a{day}", day)
    add_model(warehouse, "b1", 1, source="other")
    registry.promote(warehouse, "jobs", "a1", "first")
    registry.promote(warehouse, "jobs", "a4", "better")
    pruned = prune(warehouse, PruneParams(models_kept=1), NOON)
    assert pruned.models == ["a2", "a3"]
    assert sorted(card.model_id for card in registry.cards(warehouse.models)) == ["a1", "a4", "b1"]
    assert fetch(warehouse, "SELECT model_id FROM ops.models ORDER BY 1")["model_id"].tolist() == ["a1", "a4", "b1"]
    assert registry.roll_back(warehouse, "jobs", "log", "shapes").model_id == "a1"


def test_the_landing_files_of_a_reading_that_was_replaced_go(warehouse, put_in, landed):
    put_in(warehouse, ROWS)
    newer = put_in(warehouse, ROWS[:1], version="2")
    assert len(prune(warehouse, ALL, LATER).landing_files) == 2  # the manifest and its rows; the quarantine is shared
    assert set(landed(warehouse)) == {f"{newer.batch_id}.json", *(one.name for one in newer.tables.values())}
    assert prune(warehouse, ALL, LATER) == pruning.Pruned(0, [], [], [], [])  # nothing is left for a second one


def test_files_stay_that_only_the_warehouse_still_needs(warehouse, put_in, land, runs_in):
    """A newer reading is landed but not yet ingested: to replace rows, ingest looks into the files that it has."""
    put_in(warehouse, [{"run_id": "1", "runtime_s": 1.0}], "a.csv")
    put_in(warehouse, [{"run_id": "1", "runtime_s": 2.0}], "b.csv")
    waits = land(warehouse, [], "a.csv", version="2")
    newest = land(warehouse, [], "b.csv", version="2")
    assert prune(warehouse, ALL, LATER).landing_files == []
    ingest(warehouse, "jobs", newest.batch_id)
    assert runs_in(warehouse) == [("log", "1", "completed", 1.0)]
    ingest(warehouse, "jobs", waits.batch_id)
    assert runs_in(warehouse) == []


def test_what_a_reader_is_about_to_name_stays_for_a_day(warehouse, put_in):
    put_in(warehouse, ROWS)
    jobs = Path(warehouse.landing_folder) / "jobs"
    being_read = jobs / ".reading-x" / "runs.parquet"
    being_read.parent.mkdir()
    being_read.write_text("growing")
    os.utime(being_read.parent, (0, 0))  # a folder does not change while a file in it grows
    (jobs / "runs-0000.parquet").write_text("young")
    (jobs / "x.json.abc.part").write_text("old")
    os.utime(jobs / "x.json.abc.part", (0, 0))
    now = datetime.fromtimestamp(being_read.stat().st_mtime) + timedelta(hours=1)
    assert prune(warehouse, PruneParams(runs_kept_days=36_500), now).landing_files == [str(jobs / "x.json.abc.part")]
    assert being_read.exists()
    prune(warehouse, PruneParams(), now + timedelta(days=2))
    assert not being_read.parent.exists()
    assert not (jobs / "runs-0000.parquet").exists()


def test_leftovers_of_killed_processes_go(warehouse):
    warehouse.file.with_name("warehouse.duckdb.rebuilding").write_text("half")
    warehouse.file.with_name("warehouse.duckdb.rebuilding.wal").write_text("half")
    kept = warehouse.file.with_name("warehouse.duckdb.before-restore-1")
    kept.write_text("whole")
    draft = warehouse.models / "jobs" / ".m1-abc"
    draft.mkdir(parents=True)
    pruned = prune(warehouse, ALL, LATER)
    drafts = ["warehouse.duckdb.rebuilding", "warehouse.duckdb.rebuilding.wal"]
    assert [Path(name).name for name in pruned.leftovers] == [".m1-abc", *drafts]
    assert kept.exists()
    assert not draft.exists()
    assert sorted(path.name for path in warehouse.home.glob("warehouse*")) == ["warehouse.duckdb", kept.name]


def test_there_is_nothing_to_prune_before_somebody_fills_the_warehouse(bare):
    """An empty warehouse must not take the place of one that was lost."""
    with pytest.raises(NoWarehouse, match="there is no warehouse yet"):
        prune(bare, ALL, LATER)
    assert not bare.home.exists()


def test_a_dry_run_says_the_same_and_removes_nothing(warehouse, put_in):
    put_in(warehouse, ROWS)
    put_in(warehouse, ROWS, version="2")
    add_run(warehouse, "old", NOON)
    add_model(warehouse, "m1", 1)
    warehouse.file.with_name("warehouse.duckdb.restoring").write_text("half")
    before = sorted(path for path in warehouse.home.rglob("*"))
    dry = prune(warehouse, ALL, LATER, dry_run=True)
    assert sorted(path for path in warehouse.home.rglob("*")) == before
    assert fetch(warehouse, "SELECT run_id FROM ops.runs")["run_id"].tolist() == ["old"]
    assert prune(warehouse, ALL, LATER) == dry
    assert (dry.n_runs, dry.models, len(dry.landing_files), len(dry.leftovers)) == (1, ["m1"], 1, 1)
    assert dry.n_files == 3  # the model, the landing file and the leftover


def test_a_remote_landing_folder_is_pruned_too(warehouse, put_in):
    name = uuid.uuid4().hex
    remote = warehouse.model_copy(update={"landing": f"memory://{name}"})
    put_in(remote, ROWS)
    put_in(remote, ROWS[:1], version="2")
    assert len(prune(remote, ALL, LATER).landing_files) == 2
    before = rows_of(remote)
    rebuild(remote)
    assert rows_of(remote) == before
    fsspec.filesystem("memory").rm(f"/{name}", recursive=True)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("land"), st.sampled_from("ab"), st.sampled_from("12"), st.sampled_from(["", "1", "12"])),
        st.tuples(st.just("model"), st.sampled_from(["m1", "m2", "m3"])),
        st.tuples(st.just("promote"), st.sampled_from(["m1", "m2", "m3"])),
        st.tuples(st.just("prune"), st.integers(0, 1)),
    ),
    min_size=1,
    max_size=7,
)


def follow(warehouse, put_in, step):
    act, *what = step
    known = {card.model_id for card in registry.cards(warehouse.models)}
    if act == "land":
        file, version, ids = what
        put_in(warehouse, [{"run_id": one, "runtime_s": float(version)} for one in ids], file, version=version)
    elif act == "model":
        add_model(warehouse, what[0], int(what[0][1]))
    elif act == "promote" and what[0] in known:
        registry.promote(warehouse, "jobs", what[0], "chosen")
    elif act == "prune":
        prune(warehouse, PruneParams(runs_kept_days=0, models_kept=what[0], orphans_kept_hours=0), LATER)


def property_over(n_examples, migrated, put_in):
    @settings(max_examples=n_examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(steps=STEPS)
    def holds(steps):
        with tempfile.TemporaryDirectory(prefix="whorl-prune-") as folder:
            warehouse = Warehouse(home=Path(folder), memory_mb=128, threads=1)
            shutil.copy(migrated, warehouse.file)
            for step in steps:
                follow(warehouse, put_in, step)
            before, made = rows_of(warehouse), registry.decisions(warehouse.models, "jobs")
            prune(warehouse, ALL, LATER)
            assert {name: one for name, one in rows_of(warehouse).items() if name != "ops.models"} == {
                name: one for name, one in before.items() if name != "ops.models"
            }
            for decision in made:
                assert registry.read_card(warehouse.models, "jobs", decision.model_id)
            pruned = rows_of(warehouse)
            rebuild(warehouse)
            assert rows_of(warehouse) == pruned

    holds()


@pytest.mark.slow
def test_prune_never_removes_what_a_rebuild_or_a_champion_needs(migrated, put_in):
    property_over(120, migrated, put_in)


def test_nothing_outside_of_the_home_is_removed_whatever_a_card_says(warehouse, tmp_path):
    """A card that named its word `jobs/../../..` once took a folder beside the home with it."""
    for day in (1, 2):
        add_model(warehouse, f"m{day}", day)
    file = warehouse.models / "jobs" / "m1" / "model.json"
    file.write_text(file.read_text().replace('"jobs"', '"jobs/../../.."').replace('"m1"', '"precious"'))
    (tmp_path / "precious").mkdir()
    assert prune(warehouse, ALL, LATER).models == ["m2"]
    assert (tmp_path / "precious").exists() and file.exists()


def test_links_go_without_what_they_lead_to(warehouse, put_in, tmp_path):
    put_in(warehouse, ROWS)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    links = [warehouse.home / "landing" / "jobs" / ".reading-x", warehouse.models / "jobs" / ".m1-x"]
    links += [warehouse.file.with_name("warehouse.duckdb.rebuilding")]
    links[1].parent.mkdir(parents=True)
    for link in links:
        link.symlink_to(precious)
    prune(warehouse, ALL, LATER)
    assert [link.is_symlink() for link in links] == [False] * 3
    assert (precious / "file").read_text() == "mine"


def test_a_word_that_is_a_link_out_of_the_home_is_refused(warehouse, tmp_path):
    (tmp_path / "precious" / ".m1-x").mkdir(parents=True)
    warehouse.models.mkdir()
    (warehouse.models / "jobs").symlink_to(tmp_path / "precious")
    with pytest.raises(WhorlError, match=r"leads out of .*; nothing was removed"):
        prune(warehouse, ALL, LATER)
    assert (tmp_path / "precious" / ".m1-x").exists()


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
