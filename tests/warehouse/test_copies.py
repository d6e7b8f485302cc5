"""Snapshots and backups: whole copies, checked before they are used, and a round trip that changes nothing."""

import hashlib
import json
import os
import shutil
import uuid
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import fsspec
import pytest

from tasks.errors import BadInput, NoWarehouse, WarehouseBroken, WarehouseBusy
from tasks.warehouse import connection as connections
from tasks.warehouse import copies, registry
from tasks.warehouse.connection import fetch, logs_of, writing
from tasks.warehouse.copies import MANIFEST, backup, hash_tables, old_copies, rebuild, restore
from tasks.warehouse.place import PruneParams
from tasks.warehouse.pruning import prune
from tasks.warehouse.runs import RunRecord, record_run

ROWS = [{"run_id": "1", "runtime_s": 10.0}, {"run_id": "2", "runtime_s": 20.0}]
NOON = datetime(2026, 1, 1, 12)


def hashes(warehouse):
    return {one.table: one.hash for one in hash_tables(warehouse)}


def hashes_of_rows(warehouse):
    return {table: hashed for table, hashed in hashes(warehouse).items() if table != "ops.migrations"}


def add_model(warehouse, model_id, day):
    card = registry.ModelCard(
        model_id=model_id, word="jobs", source="log", kind="shapes", trained_at=NOON + timedelta(days=day), run_id="r",
        data_version="d", code_version="c", seed=1, parameters={}, metrics={"crps": 1.0},
    )  # fmt: skip
    registry.register(warehouse, card, lambda folder: (folder / "weights.bin").write_bytes(model_id.encode()) and None)
    registry.promote(warehouse, "jobs", model_id, "because")


@pytest.fixture
def filled(warehouse, put_in):
    put_in(warehouse, ROWS, "a.csv", refused=[{"place": 9, "reason": "odd", "raw": "?"}])
    add_model(warehouse, "m1", 1)
    return warehouse


@pytest.fixture
def elsewhere(filled, tmp_path):
    """Another home with nothing in it."""
    return filled.model_copy(update={"home": tmp_path / "elsewhere ü'"})


def test_a_snapshot_is_one_file_with_all_rows_and_replaces_an_older_one_and_its_stale_log(filled, tmp_path):
    target = copies.snapshot(filled, tmp_path / "new folder" / "it's.duckdb")
    assert [path.name for path in target.parent.iterdir()] == ["it's.duckdb"]
    assert target.stat().st_mode & 0o077 == 0
    with duckdb.connect(str(target), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM jobs.runs").fetchone() == (2,)
    Path(f"{target}.wal").write_bytes(b"stale")
    with writing(filled) as connection:
        connection.execute("DELETE FROM jobs.runs")
    copies.snapshot(filled, target)
    with duckdb.connect(str(target)) as connection:
        assert connection.execute("SELECT count(*) FROM jobs.runs").fetchone() == (0,)


def test_a_snapshot_of_nothing_is_one_clear_line(bare, tmp_path):
    with pytest.raises(NoWarehouse, match="there is no warehouse yet"):
        copies.snapshot(bare, tmp_path / "copy.duckdb")
    with pytest.raises(NoWarehouse, match="there is no warehouse yet"):
        copies.backup(bare, tmp_path / "backups")
    assert not (tmp_path / "backups").exists()


def test_a_snapshot_onto_the_warehouse_or_a_folder_is_refused(filled, tmp_path):
    with pytest.raises(BadInput, match="is the warehouse itself; expected another file; name a new file"):
        copies.snapshot(filled, filled.home / ".." / filled.home.name / "warehouse.duckdb")
    with pytest.raises(BadInput, match="is a folder; expected a file; name a file in it, such as"):
        copies.snapshot(filled, tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="is a file of another kind; expected a new name or an earlier snapshot"):
        copies.snapshot(filled, tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_snapshot_holds_what_a_killed_writer_left_in_its_log(filled, tmp_path):
    with writing(filled) as connection:
        connection.execute("INSERT INTO ops.machines VALUES ('log', 'node', 'big')")
        left = {path: path.read_bytes() for path in (filled.file, *logs_of(filled.file))}
    for path, content in left.items():  # as they stand after a kill
        path.write_bytes(content)
    assert len(left) == 2
    target = copies.snapshot(filled, tmp_path / "copy.duckdb")
    with duckdb.connect(str(target), read_only=True) as connection:
        assert connection.execute("SELECT node FROM ops.machines").fetchall() == [("node",)]
    assert not logs_of(filled.file)


def test_backup_and_restore_elsewhere_give_the_same_hashes(filled, elsewhere, tmp_path):
    made = copies.backup(filled, tmp_path / "backups")
    assert copies.restore(elsewhere, made) == 7
    assert hashes(elsewhere) == hashes(filled) == json.loads((made / "backup.json").read_text())["tables"]
    assert copies.is_verified(made)
    paths = [made, *made.rglob("*"), *elsewhere.home.glob("warehouse.duckdb*")]
    assert {path.stat().st_mode & 0o077 for path in paths} == {0}  # for their owner alone
    assert registry.champion(elsewhere.models, "jobs", "log", "shapes").model_id == "m1"
    assert (elsewhere.models / "jobs" / "m1" / "weights.bin").read_bytes() == b"m1"
    before = hashes_of_rows(elsewhere)
    rebuild(elsewhere)
    assert hashes_of_rows(elsewhere) == before


def test_restore_brings_back_the_rows_and_keeps_what_stood_there(filled, put_in, tmp_path, runs_in):
    made, before = copies.backup(filled, tmp_path / "backups"), hashes(filled)
    put_in(filled, [{"run_id": "3", "runtime_s": 1.0}], "b.csv")
    copies.restore(filled, made)
    assert hashes(filled) == before
    kept = next(filled.home.glob("warehouse.duckdb.before-restore-*"))
    with duckdb.connect(str(kept), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM jobs.runs").fetchone() == (3,)
    rebuild(filled)
    assert len(runs_in(filled)) == 3


def test_restore_keeps_models_and_the_list_of_champions_that_came_after_the_backup(filled, tmp_path):
    made = copies.backup(filled, tmp_path / "backups")
    add_model(filled, "m2", 2)
    copies.restore(filled, made)
    assert registry.champion(filled.models, "jobs", "log", "shapes").model_id == "m1"
    assert [card.model_id for card in registry.cards(filled.models)] == ["m1", "m2"]
    assert fetch(filled, "SELECT model_id FROM ops.models ORDER BY 1")["model_id"].tolist() == ["m1", "m2"]
    kept = next((filled.models / "jobs").glob("champions.jsonl.before-restore-*"))
    assert [json.loads(line)["model_id"] for line in kept.read_text().splitlines()] == ["m1", "m2"]


def test_restore_mends_damaged_landing_files_and_models(filled, tmp_path, put_in):
    made, before = copies.backup(filled, tmp_path / "backups"), hashes(filled)
    (filled.models / "jobs" / "m1" / "weights.bin").write_bytes(b"damaged")
    for path in (Path(filled.landing_folder) / "jobs").iterdir():
        path.write_bytes(b"damaged")
    filled.file.write_bytes(b"damaged")
    copies.restore(filled, made)
    assert hashes(filled) == before
    assert (filled.models / "jobs" / "m1" / "weights.bin").read_bytes() == b"m1"
    rebuild(filled)


def test_a_backup_leaves_out_what_is_not_finished(filled, tmp_path):
    jobs = Path(filled.landing_folder) / "jobs"
    (jobs / ".reading-x").mkdir()
    (jobs / ".reading-x" / "runs.parquet").write_text("half")
    (jobs / "a.json.part").write_text("half")
    (filled.models / "jobs" / ".m9-abc").mkdir()
    made, other = (copies.backup(filled, tmp_path / "backups") for _ in range(2))
    assert made != other  # though of one second
    names = " ".join(str(path.relative_to(made)) for path in made.rglob("*"))
    assert not [part for part in ("reading", ".part", ".m9") if part in names]


def test_a_home_below_a_hidden_folder_is_backed_up_in_full(filled, elsewhere, put_in, tmp_path):
    hidden = filled.model_copy(update={"home": tmp_path / ".local" / "whorl"})
    put_in(hidden, ROWS)
    made = copies.backup(hidden, tmp_path / "backups")
    assert len(list((made / "landing" / "jobs").iterdir())) == 3


def test_a_remote_landing_folder_is_backed_up_and_restored(filled, elsewhere, put_in, tmp_path):
    name = uuid.uuid4().hex
    remote = elsewhere.model_copy(update={"landing": f"memory://{name}/landing"})
    put_in(remote, ROWS)
    made, before = copies.backup(remote, tmp_path / "backups"), hashes(remote)
    fsspec.filesystem("memory").rm(f"/{name}", recursive=True)
    copies.restore(remote, made)
    assert hashes(remote) == before
    rebuild(remote)
    assert fetch(remote, "SELECT count(*) AS n FROM jobs.runs")["n"].tolist() == [2]
    fsspec.filesystem("memory").rm(f"/{name}", recursive=True)


def flip_blocks(file, table="jobs.runs"):
    """Damage every block of a DuckDB file that holds rows of a table."""
    content = bytearray(file.read_bytes())
    with duckdb.connect(str(file), read_only=True) as connection:
        found = connection.execute(f"SELECT DISTINCT block_id FROM pragma_storage_info('{table}') WHERE block_id >= 0")
        for (block,) in found.fetchall():
            content[3 * 4096 + block * 262_144 + 1000] ^= 0xFF
    file.write_bytes(content)


def test_a_damaged_warehouse_is_neither_backed_up_nor_given_to_others(filled, tmp_path):
    sound = copies.backup(filled, tmp_path / "backups")
    flip_blocks(filled.file)
    for copy in (copies.backup, copies.snapshot):
        with pytest.raises(
            WarehouseBroken, match=r"is damaged: DuckDB cannot read all of it .*; bring back a copy with"
        ):
            copy(filled, tmp_path / "backups" if copy is copies.backup else tmp_path / "copy.duckdb")
    assert [path.name for path in (tmp_path / "backups").iterdir()] == [sound.name]
    assert not list(tmp_path.glob("copy*"))


def test_a_copy_that_is_another_than_the_warehouse_is_refused(filled, tmp_path, monkeypatch):
    other = tmp_path / "other.duckdb"
    copies.snapshot(filled, other)
    with writing(filled) as connection:
        connection.execute("DELETE FROM jobs.runs")
    monkeypatch.setattr(copies.shutil, "copyfile", lambda _source, target: target.write_bytes(other.read_bytes()))
    with pytest.raises(WarehouseBroken, match=r"is another than .*, of which it is a copy; bring back"):
        copies.backup(filled, tmp_path / "backups")
    assert list((tmp_path / "backups").iterdir()) == []


def test_a_backup_of_a_damaged_warehouse_is_not_restored(filled, tmp_path):
    """As versions made them that did not look."""
    made, before = copies.backup(filled, tmp_path / "backups"), hashes(filled)
    flip_blocks(made / "warehouse.duckdb")
    manifest = json.loads((made / "backup.json").read_text())
    manifest["files"]["warehouse.duckdb"] = hashlib.sha256((made / "warehouse.duckdb").read_bytes()).hexdigest()
    (made / "backup.json").write_text(json.dumps(manifest))
    with pytest.raises(WarehouseBroken, match="is damaged"):
        copies.restore(filled, made)
    assert hashes(filled) == before


def test_what_a_killed_snapshot_left_goes_with_the_next_one_a_day_later(filled, tmp_path):
    old, young, other = (tmp_path / f"copy.duckdb.{name}.part" for name in ("0" * 32, "1" * 32, "mine"))
    for file in (old, young, other):
        file.touch()
    for file in (old, other):
        os.utime(file, (0, 0))
    copies.snapshot(filled, tmp_path / "copy.duckdb")
    assert [file.exists() for file in (old, young, other)] == [False, True, True]


DAMAGES = {
    "file changed": "missing or changed since the backup; expected sha256 ",
    "file missing": "missing or changed since the backup; expected sha256 ",
    "warehouse changed": "missing or changed since the backup; expected sha256 ",
    "no list": "no backup.json in it; expected a folder made by 'whorl warehouse backup'; name another",
    "half a list": "not the list of a backup; expected a folder made by 'whorl warehouse backup'; use another",
    "another list": "not the list of a backup",
    "no warehouse": "lacks warehouse.duckdb, or names files outside of the backup",
    "names that lead outside": "lacks warehouse.duckdb, or names files outside of the backup",
}


def damage(made, how):
    manifest = made / "backup.json"
    content = json.loads(manifest.read_text())
    landed = next(path for path in made.rglob("runs-*.parquet"))
    if how == "file changed":
        landed.write_bytes(landed.read_bytes() + b"?")
    elif how == "file missing":
        landed.unlink()
    elif how == "warehouse changed":
        (made / "warehouse.duckdb").write_bytes(b"?")
    elif how == "no list":
        manifest.unlink()
    elif how == "half a list":
        manifest.write_text(manifest.read_text()[:-20])
    elif how == "another list":
        manifest.write_text("[1, 2]")
    elif how == "no warehouse":
        del content["files"]["warehouse.duckdb"]
        manifest.write_text(json.dumps(content))
    elif how == "names that lead outside":
        content["files"]["landing/../../evil"] = "0"
        manifest.write_text(json.dumps(content))


def test_a_damaged_backup_is_refused_before_anything_is_touched(filled, tmp_path, put_in):
    sound = copies.backup(filled, tmp_path / "backups")
    put_in(filled, [{"run_id": "3", "runtime_s": 1.0}], "b.csv")
    before = {path: path.read_bytes() for path in filled.home.rglob("*") if path.is_file()}
    for how, told in DAMAGES.items():
        made = tmp_path / how
        shutil.copytree(sound, made)
        damage(made, how)
        with pytest.raises(BadInput) as error:
            copies.restore(filled, made)
        assert told in str(error.value) and "\n" not in str(error.value), how
        assert {path: path.read_bytes() for path in filled.home.rglob("*") if path.is_file()} == before, how


NOW = datetime(2026, 3, 1, 12)
DAYS = PruneParams().copies_kept_days


def stamp(age_days):
    return (NOW - timedelta(days=age_days)).strftime("%Y%m%dT%H%M%S%f")


def kept(file, reason, age_days, *, log=False):
    """A copy of a file kept aside so many days ago; its time of change is much older, as that of a link is."""
    copy = file.with_name(f"{file.name}.{reason}-{stamp(age_days)}{'.wal' if log else ''}")
    copy.write_text("kept")
    os.utime(copy, (0, 0))
    return copy


def half_backup(folder, age_days, *, changed_days):
    made = folder / f"whorl-{stamp(age_days)}Z"
    (made / "landing").mkdir(parents=True)
    file = made / "landing" / "runs.parquet"
    file.write_text("rows")
    at = (NOW - timedelta(days=changed_days) - datetime(1970, 1, 1)).total_seconds()
    for path in (file, made / "landing", made):
        os.utime(path, (at, at))
    return made


def old(warehouse):
    with writing(warehouse):
        return old_copies(warehouse, warehouse.backups, DAYS, NOW)


@pytest.mark.parametrize("reason", ["broken", "lost"])
def test_what_was_kept_aside_goes_with_its_log_by_the_time_in_its_name(warehouse, reason):
    gone = [kept(warehouse.file, reason, 31, log=log) for log in (False, True)]
    kept(warehouse.file, reason, 29)
    assert old(warehouse) == gone


def test_the_newest_copy_of_a_restore_stays_with_its_log_where_no_backup_was_verified(warehouse):
    older, _, log = (kept(warehouse.file, "before-restore", age, log=log) for age, log in ((50, 0), (40, 0), (40, 1)))
    half_backup(warehouse.backups, 1, changed_days=1)
    manifest = backup(warehouse, warehouse.backups) / MANIFEST
    listing = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(listing | {"tables": {}}))  # as earlier versions wrote it
    assert old(warehouse) == [older]
    manifest.write_text(json.dumps(listing))
    assert old(warehouse) == sorted([older, log, log.with_suffix("")])


def test_half_a_backup_goes_when_it_is_old_and_nobody_writes_to_it(warehouse):
    gone = half_backup(warehouse.backups, 31, changed_days=31)
    half_backup(warehouse.backups, 33, changed_days=0)  # a long one is still being made
    half_backup(warehouse.backups, 29, changed_days=29)
    assert old(warehouse) == [gone]


def test_whole_backups_and_what_is_not_ours_stay(warehouse, tmp_path):
    whole = half_backup(warehouse.backups, 99, changed_days=99)
    (whole / MANIFEST).write_text("{}")
    elsewhere = half_backup(tmp_path, 40, changed_days=40)
    (warehouse.backups / elsewhere.name).symlink_to(elsewhere)
    for name in ("whorl-photos", "photos", "whorl-20200101T120000Z.old"):
        (warehouse.backups / name).mkdir()
        os.utime(warehouse.backups / name, (0, 0))
    for name in ("before-restore-1", "mine", "broken-99999999T999999999999"):
        warehouse.file.with_name(f"{warehouse.file.name}.{name}").write_text("whole")
    assert old(warehouse) == []


def test_lists_of_champions_kept_by_a_restore_go_but_not_the_only_one(warehouse):
    champions = [warehouse.models / word / "champions.jsonl" for word in ("jobs", "nodes")]
    for file in champions:
        file.parent.mkdir(parents=True)
        file.write_text("")
    gone, only = (kept(file, "before-restore", 31) for file in champions)
    champions[1].unlink()
    assert old(warehouse) == [gone]
    assert only.exists()


def test_prune_removes_what_a_real_restore_kept_only_after_the_stated_days(warehouse):
    restore(warehouse, backup(warehouse, warehouse.backups))
    (copy,) = warehouse.home.glob("*.before-restore-*")
    today = datetime.now()
    assert prune(warehouse, PruneParams(), today).copies == []
    later = today + timedelta(days=DAYS + 1)
    assert prune(warehouse, PruneParams(), later, dry_run=True).copies == [str(copy)]
    assert copy.exists()
    assert prune(warehouse, PruneParams(), later).copies == [str(copy)]
    assert not copy.exists()
    assert warehouse.file.exists()


def test_a_backup_whose_files_are_renamed_just_now_stays(warehouse, monkeypatch):
    made = half_backup(warehouse.backups, 31, changed_days=31)
    look = type(made).rglob

    def renamed_meanwhile(folder, pattern):
        yield from look(folder, pattern)
        yield folder / "landing" / "runs.parquet.part"

    monkeypatch.setattr(type(made), "rglob", renamed_meanwhile)
    assert old(warehouse) == []


RUN = RunRecord(
    run_id="r1", flow="jobs-ingest", word="jobs", source="log", status="completed", started_at=NOON, ended_at=NOON,
    parameters={}, figures={},
)  # fmt: skip


@pytest.fixture
def lived_in(warehouse, put_in):
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


def test_a_rebuilt_warehouse_holds_the_same_rows_in_every_table(lived_in):
    before = hashes_of_rows(lived_in)
    assert rebuild(lived_in) == {"jobs": 2, "workloads": 0, "nodes": 0, "kept_history": 1}
    assert hashes_of_rows(lived_in) == before
    assert not list(lived_in.home.glob("warehouse.duckdb?*"))


def test_a_lost_warehouse_comes_back(lived_in):
    before = hashes_of_rows(lived_in)
    lived_in.file.unlink()
    assert rebuild(lived_in) == {"jobs": 2, "workloads": 0, "nodes": 0, "kept_history": 0}
    after = hashes_of_rows(lived_in)
    lost = {"ops.runs", "ops.alarms", "jobs.groups"}
    assert {name for name in before if before[name] != after[name]} == lost


def test_a_warehouse_that_does_not_open_comes_back_and_is_kept_beside_with_its_log(lived_in, runs_in):
    before = runs_in(lived_in)
    lived_in.file.write_bytes(b"hello")
    Path(f"{lived_in.file}.wal").write_bytes(b"log")
    assert rebuild(lived_in)["kept_history"] == 0
    assert runs_in(lived_in) == before
    kept = sorted(lived_in.home.glob("warehouse.duckdb.broken-*"))
    assert [path.read_bytes() for path in kept] == [b"hello", b"log"]
    assert kept[1].name == f"{kept[0].name}.wal"


def test_what_only_the_log_of_a_killed_process_holds_is_taken_over(lived_in):
    child = os.fork()
    if child == 0:
        with writing(lived_in) as connection:
            connection.execute("UPDATE ops.runs SET status = 'failed'")
            os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    assert Path(f"{lived_in.file}.wal").exists()
    rebuild(lived_in)
    assert fetch(lived_in, "SELECT status FROM ops.runs")["status"].tolist() == ["failed"]


def test_a_warehouse_that_another_program_has_open_is_busy_and_loses_nothing(lived_in, monkeypatch):
    """It does not open either, but it is not broken: its history must not be left behind."""
    monkeypatch.setattr(connections, "RELEASE_S", 0)
    before = lived_in.file.read_bytes()
    with duckdb.connect(str(lived_in.file), read_only=True):
        with pytest.raises(WarehouseBusy, match="has the file open"):
            rebuild(lived_in)
    assert lived_in.file.read_bytes() == before
    assert rebuild(lived_in)["kept_history"] == 1


def test_a_landing_folder_with_a_fault_leaves_the_warehouse_alone(lived_in, manifests):
    before = hashes_of_rows(lived_in)
    name = next(iter(manifests(lived_in).values()))["tables"]["runs"]["name"]
    (Path(lived_in.landing_folder) / "jobs" / name).unlink()
    with pytest.raises(BadInput, match="the landing file is missing"):
        rebuild(lived_in)
    assert hashes_of_rows(lived_in) == before


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


def test_where_a_file_system_knows_no_links_the_old_file_is_kept_as_a_copy(lived_in, monkeypatch):
    def refuse(*_args):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    lived_in.file.write_bytes(b"hello")
    rebuild(lived_in)
    assert [path.read_bytes() for path in lived_in.home.glob("warehouse.duckdb.broken-*")] == [b"hello"]


@pytest.mark.parametrize(("table", "keeps"), [("jobs.runs", True), ("ops.alarms", False)])
def test_what_can_be_read_of_a_damaged_warehouse_is_taken_over_and_it_is_kept_beside(lived_in, table, keeps, caplog):
    before = hashes_of_rows(lived_in)
    flip_blocks(lived_in.file, table)
    with pytest.raises(WarehouseBroken, match="is damaged"):
        hashes_of_rows(lived_in)
    rebuild(lived_in)
    after = hashes_of_rows(lived_in)
    assert {name for name in before if before[name] != after[name]} <= {"ops.alarms", "ops.runs", "jobs.groups"}
    assert len(list(lived_in.home.glob("warehouse.duckdb.broken-*"))) == 1
    assert ("ops.alarms" in caplog.text) == (after["ops.alarms"] != before["ops.alarms"])
    if not keeps:
        assert after["ops.alarms"] != before["ops.alarms"]
