"""The parameters of the flow `whorl-upkeep`. Nothing here imports prefect."""

from pydantic import Field

from flows.job_params import WAREHOUSE
from tasks.params import Params
from tasks.warehouse.place import Warehouse
from tasks.warehouse.prune_params import PruneParams


class UpkeepParams(Params):
    """What is backed up, and what is kept."""

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
    prune: PruneParams = Field(PruneParams(), description="What the warehouse keeps")
    warehouse: Warehouse = Field(description=WAREHOUSE)
