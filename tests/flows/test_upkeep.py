"""Upkeep: a backup that can be restored, and nothing removed that somebody still needs."""

import os
import time
from pathlib import Path

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_LOCAL_STORAGE_PATH, temporary_settings

from flows.engine.forms import call, resolved_parameters
from flows.jobs import IngestParams, jobs_ingest
from flows.upkeep import UpkeepParams, prune, remove_old_backups, remove_old_flow_runs, remove_old_results, whorl_upkeep
from tasks.settings import Settings, WhorlParams
from tasks.warehouse.connection import fetch, writing
from tasks.warehouse.copies import MANIFEST, restore
from tasks.warehouse.place import PruneParams, Warehouse

DAY_S = 86_400


def backup_in(folder: Path, stamp: str, listing: str = "{}") -> Path:
    made = folder / f"whorl-{stamp}"
    made.mkdir(parents=True)
    (made / MANIFEST).write_text(listing)
    return made


def test_only_backups_are_removed_and_the_last_that_was_verified_stays_however_many_came_after_it(
    tmp_path: Path,
) -> None:
    verified = '{"tables": {"jobs.runs": "0"}}'
    made = [backup_in(tmp_path, f"2026010{day}T000000Z", verified if day < 3 else "{}") for day in range(1, 6)]
    half, photos = tmp_path / "whorl-20260101T120000Z", tmp_path / "photos"
    half.mkdir()  # no listing: being written, or never finished
    photos.mkdir()
    assert remove_old_backups.fn(str(tmp_path), 2) == 2
    assert [one.exists() for one in made] == [False, True, False, True, True]
    assert half.exists() and photos.exists()


def test_a_link_among_the_backups_is_left_alone(tmp_path: Path) -> None:
    precious = backup_in(tmp_path / "elsewhere", "20260101T000000Z")
    (tmp_path / "backups").mkdir()
    (tmp_path / "backups" / precious.name).symlink_to(precious)
    backup_in(tmp_path / "backups", "20260102T000000Z")
    assert remove_old_backups.fn(str(tmp_path / "backups"), 1) == 0
    assert (precious / MANIFEST).exists()


def test_only_old_results_are_removed(tmp_path: Path) -> None:
    old, new, letter = tmp_path / ("0" * 32), tmp_path / ("1" * 64), tmp_path / "letter.txt"
    for file in (old, new, letter):
        file.write_text("{}")
        os.utime(file, (time.time() - 91 * DAY_S * (file is not new),) * 2)
    with temporary_settings({PREFECT_LOCAL_STORAGE_PATH: tmp_path}):
        assert remove_old_results.fn(90) == 1
    assert (old.exists(), new.exists(), letter.exists()) == (False, True, True)


def test_leftovers_and_half_backups_count_among_the_files_that_went(warehouse: Warehouse, tmp_path: Path) -> None:
    with writing(warehouse):
        pass
    warehouse.file.with_name(f"{warehouse.file.name}.rebuilding").write_text("half")
    half = tmp_path / "backups" / "whorl-20200101T000000Z"
    half.mkdir(parents=True)
    os.utime(half, (0, 0))
    assert prune.fn(warehouse, PruneParams(), str(half.parent)) == {"n_rows": 0, "n_files": 2}
    assert not half.exists()


def test_what_an_upkeep_prunes_is_what_the_settings_say() -> None:
    settings = Settings(whorl=WhorlParams(prune=PruneParams(models_kept=2)))
    assert resolved_parameters(settings, whorl_upkeep)["models_kept"] == 2


def test_an_upkeep_of_nothing_is_no_error(prefect_server: None, warehouse: Warehouse) -> None:
    found = call(whorl_upkeep, UpkeepParams(warehouse=warehouse))
    assert (found["backup"], found["n_rows_removed"]) == ("", 0)


def test_what_an_upkeep_backs_up_can_be_restored(
    prefect_server: None, warehouse: Warehouse, csv_log: Path, tmp_path: Path
) -> None:
    call(jobs_ingest, IngestParams(paths=[str(csv_log)], with_summary=False, warehouse=warehouse))
    found = call(whorl_upkeep, UpkeepParams(warehouse=warehouse))
    elsewhere = Warehouse(home=tmp_path / "elsewhere")
    elsewhere.home.mkdir()
    restore(elsewhere, Path(found["backup"]))
    assert fetch(elsewhere, "SELECT count(*) AS n FROM jobs.runs")["n"].to_list() == [10]


@pytest.mark.slow
def test_flow_runs_go_when_they_are_old_and_whorls(prefect_server: None, warehouse: Warehouse, csv_log: Path) -> None:
    @flow(name="somebody-elses")
    def theirs() -> None:
        """A flow of another project on the same server."""

    theirs()
    call(jobs_ingest, IngestParams(paths=[str(csv_log)], with_summary=False, warehouse=warehouse))
    assert remove_old_flow_runs.fn(90) == 0
    assert remove_old_flow_runs.fn(1e-9) >= 1
    with get_client(sync_client=True) as client:
        flows = {flow.id: flow.name for flow in client.read_flows()}
        left = {flows[run.flow_id] for run in client.read_flow_runs(limit=200)}
    assert "somebody-elses" in left
    assert "jobs-ingest" not in left
