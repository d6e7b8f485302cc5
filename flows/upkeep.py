"""The flow `whorl-upkeep`: a backup of the warehouse is made, and what is too old goes."""

import logging
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

from prefect.client.orchestration import get_client
from prefect.client.schemas import filters
from prefect.settings import PREFECT_LOCAL_STORAGE_PATH
from pydantic import Field

from flows.engine.forms import TAG, InHomeParams, flow
from flows.engine.steps import step
from tasks.storage import remove_inside
from tasks.warehouse import copies, pruning
from tasks.warehouse.copies import backup_folders
from tasks.warehouse.place import PruneParams, Warehouse

logger = logging.getLogger(__name__)
PAGE = 200  # what Prefect's API gives at once
DAY_S = 86_400
RESULT = re.compile(r"^[0-9a-f-]{32,64}$")


@step
def back_up(warehouse: Warehouse, folder: str) -> str:
    """Make a backup below the folder; returns where it is."""
    made = copies.backup(warehouse, Path(folder))
    logger.info("backup in %s", made)
    return str(made)


@step
def remove_old_backups(folder: str, n_kept: int) -> int:
    """Remove all whole backups but the latest, and the latest that was verified; returns how many went.

    Other folders are left alone."""
    made = sorted(path for path in backup_folders(Path(folder)) if (path / copies.MANIFEST).is_file())
    kept = {*made[max(0, len(made) - n_kept) :], *[path for path in made if copies.is_verified(path)][-1:]}
    old = [path for path in made if path not in kept]
    for backup in old:
        remove_inside(Path(folder), backup)
    return len(old)


@step
def remove_old_flow_runs(kept_days: float) -> int:
    """Remove whorl's own flow runs that ended so long ago from Prefect; returns how many went."""
    before = datetime.now(UTC) - timedelta(days=kept_days)
    wanted = filters.FlowRunFilter(
        end_time=filters.FlowRunFilterEndTime(before_=before), tags=filters.FlowRunFilterTags(all_=[TAG])
    )
    n_removed = 0
    with get_client(sync_client=True) as client:
        while runs := client.read_flow_runs(flow_run_filter=wanted, limit=PAGE):
            for run in runs:
                client.delete_flow_run(run.id)
            n_removed += len(runs)
    return n_removed


@step
def remove_old_results(kept_days: float) -> int:
    """Remove the keys that steps kept for continued runs; returns how many files went.

    The folder is Prefect's setting and may hold other things: a result is named by a hash or a UUID."""
    oldest_s = time.time() - kept_days * DAY_S
    folder = Path(PREFECT_LOCAL_STORAGE_PATH.value())
    files = [file for file in folder.glob("*") if RESULT.match(file.name) and file.is_file()]
    old = [file for file in files if file.stat().st_mtime < oldest_s]
    for file in old:
        remove_inside(folder, file)
    return len(old)


@step
def prune(warehouse: Warehouse, params: PruneParams, backups: str) -> dict[str, int]:
    """Prune the warehouse; returns counts of rows and files. backups: the folder that they go to."""
    pruned = pruning.prune(warehouse, params, datetime.now(UTC).replace(tzinfo=None), backups=Path(backups))
    return {"n_rows": pruned.n_runs + pruned.n_recorded, "n_files": pruned.n_files}


class UpkeepParams(InHomeParams):
    """What is backed up, and what is kept."""

    FIRST: ClassVar = "prune.runs_kept_days prune.models_kept"
    with_backup: bool = Field(True, description="Back the warehouse up before anything is removed")
    backup_folder: str = Field(
        "", description="Folder for backups, best on another disk; empty: backups/ in the home folder"
    )
    backups_kept: int = Field(7, ge=1, le=10_000, description="Backups that are kept, the latest")
    flow_runs_kept_days: float = Field(
        90,
        gt=0,
        le=36_500,
        description="Age at which flow runs are removed from Prefect, with the keys they kept, in days",
    )
    prune: PruneParams = PruneParams()


@flow(lambda: "back up and clean up")
def whorl_upkeep(params: UpkeepParams) -> dict[str, str | int]:
    """Back up the warehouse, and remove old backups, old flow runs and what the warehouse no longer needs."""
    warehouse = params.warehouse
    folder = params.backup_folder or str(warehouse.backups)
    has_something = warehouse.file.exists()
    backup = back_up(warehouse, folder) if params.with_backup and has_something else ""
    pruned = prune(warehouse, params.prune, folder) if has_something else {"n_rows": 0, "n_files": 0}
    return {
        "backup": backup,  # its folder, empty without one
        "n_backups_removed": remove_old_backups(folder, params.backups_kept) if backup else 0,
        "n_flow_runs_removed": remove_old_flow_runs(params.flow_runs_kept_days),
        "n_results_removed": remove_old_results(params.flow_runs_kept_days),
        "n_rows_removed": pruned["n_rows"],
        "n_files_removed": pruned["n_files"],
    }
