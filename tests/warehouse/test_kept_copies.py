"""Copies kept aside: the old ones go, never the young ones, and never the only one that can be used."""

import json
import os
import shutil
from datetime import datetime, timedelta

import pytest

from tasks.warehouse.connection import writing
from tasks.warehouse.copies import MANIFEST, backup, restore
from tasks.warehouse.kept_copies import old_copies
from tasks.warehouse.prune_params import PruneParams
from tasks.warehouse.pruning import prune

NOW = datetime(2026, 3, 1, 12)
DAYS = PruneParams().copies_kept_days


def stamp(age_days):
    return (NOW - timedelta(days=age_days)).strftime("%Y%m%dT%H%M%S%f")


def kept(file, reason, age_days, *, whole=True, log=False):
    """A copy of a file kept aside so many days ago; its time of change is much older, as that of a link is."""
    copy = file.with_name(f"{file.name}.{reason}-{stamp(age_days)}{'.wal' if log else ''}")
    shutil.copy(file, copy) if whole else copy.write_text("not whole")
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
def test_what_was_kept_aside_goes_by_the_time_in_its_name(warehouse, reason):
    gone = kept(warehouse.file, reason, 31, whole=False)
    kept(warehouse.file, reason, 29, whole=False)
    assert old(warehouse) == [gone]


def test_the_log_of_a_copy_goes_with_it(warehouse):
    gone = [kept(warehouse.file, "broken", 31, whole=False), kept(warehouse.file, "broken", 31, whole=False, log=True)]
    assert old(warehouse) == gone


def test_the_newest_usable_copy_stays_where_there_is_no_backup(warehouse):
    """The newest one of all does not open: it is no copy that could be used."""
    oldest = kept(warehouse.file, "before-restore", 50)
    only = kept(warehouse.file, "before-restore", 40)
    broken = kept(warehouse.file, "before-restore", 35, whole=False)
    assert old(warehouse) == sorted([oldest, broken])
    assert only.exists()


def test_the_log_of_the_only_copy_stays_with_it(warehouse):
    only = kept(warehouse.file, "before-restore", 40)
    log = only.with_name(f"{only.name}.wal")
    log.touch()
    assert old(warehouse) == []


def test_of_copies_of_one_reason_three_stay_however_young_they_are(warehouse):
    """Each swap that is killed and begun again leaves one."""
    ages = (1, 2, 3, 4, 5)
    made = [kept(warehouse.file, "before-restore", age, whole=age == 5) for age in ages]
    kept(warehouse.file, "lost", 1, whole=False)
    assert old(warehouse) == [made[3]]  # the oldest is the only one that can be used


def test_a_copy_with_a_damaged_table_is_none_that_can_be_used(warehouse):
    only = kept(warehouse.file, "before-restore", 40)
    damaged = kept(warehouse.file, "before-restore", 35)
    content = bytearray(damaged.read_bytes())
    for place in range(12_288 + 2_000, len(content), 262_144):
        content[place] ^= 0xFF
    damaged.write_bytes(content)
    assert old(warehouse) == [damaged]
    assert only.exists()


def test_a_backup_that_nobody_verified_is_no_reason_to_give_up_the_only_copy(warehouse):
    only = kept(warehouse.file, "before-restore", 40)
    manifest = backup(warehouse, warehouse.backups) / MANIFEST
    listing = json.loads(manifest.read_text())
    del listing["tables"]  # as earlier versions wrote it
    manifest.write_text(json.dumps(listing))
    assert old(warehouse) == []
    assert only.exists()


def test_no_copy_is_needed_where_there_is_a_whole_backup(warehouse):
    gone = kept(warehouse.file, "before-restore", 40)
    backup(warehouse, warehouse.backups)
    assert old(warehouse) == [gone]


def test_half_a_backup_is_no_reason_to_give_up_the_only_copy(warehouse):
    kept(warehouse.file, "before-restore", 40)
    half_backup(warehouse.backups, 1, changed_days=1)
    assert old(warehouse) == []


def test_a_second_name_of_the_present_file_is_no_copy(warehouse):
    """A restore that was killed on its last step leaves one."""
    only = kept(warehouse.file, "before-restore", 45)
    second = warehouse.file.with_name(f"{warehouse.file.name}.before-restore-{stamp(40)}")
    os.link(warehouse.file, second)
    assert old(warehouse) == [second]
    assert only.exists()


def test_half_a_backup_goes_when_it_is_old_and_nobody_writes_to_it(warehouse):
    gone = half_backup(warehouse.backups, 31, changed_days=31)
    half_backup(warehouse.backups, 33, changed_days=0)  # a long one is still being made
    half_backup(warehouse.backups, 29, changed_days=29)
    assert old(warehouse) == [gone]


def test_whole_backups_and_what_is_not_ours_stay(warehouse):
    whole = half_backup(warehouse.backups, 99, changed_days=99)
    (whole / MANIFEST).write_text("{}")
    for name in ("whorl-photos", "photos", "whorl-20200101T120000Z.old"):
        (warehouse.backups / name).mkdir()
        os.utime(warehouse.backups / name, (0, 0))
    for name in ("before-restore-1", "mine", "broken-99999999T999999999999"):
        warehouse.file.with_name(f"{warehouse.file.name}.{name}").write_text("whole")
    assert old(warehouse) == []


def test_a_link_to_a_folder_is_left_alone(warehouse, tmp_path):
    elsewhere = half_backup(tmp_path, 40, changed_days=40)
    warehouse.backups.mkdir()
    (warehouse.backups / elsewhere.name).symlink_to(elsewhere)
    assert old(warehouse) == []


def test_lists_of_champions_kept_by_a_restore_go_but_not_the_only_one(warehouse):
    champions = [warehouse.models / word / "champions.jsonl" for word in ("jobs", "nodes")]
    for file in champions:
        file.parent.mkdir(parents=True)
        file.write_text("")
    gone, only = (kept(file, "before-restore", 31, whole=False) for file in champions)
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
