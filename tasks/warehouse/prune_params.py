"""What is kept when the warehouse is pruned. Light: the settings import it."""

from pydantic import Field

from tasks.params import Params


class PruneParams(Params):
    """What is kept when the warehouse is pruned."""

    runs_kept_days: float = Field(90, ge=0, le=36_500, description="Age at which a run is forgotten, in days")
    models_kept: int = Field(5, ge=0, le=10_000, description="Models kept for each word, source and kind, the latest")
    orphans_kept_hours: float = Field(
        24, ge=0, le=8_760, description="Age at which a landing file that no batch names is removed, in hours"
    )
    copies_kept_days: float = Field(
        30,
        ge=0,
        le=36_500,
        description="Age at which what a restore or rebuild kept aside, and an incomplete backup, is removed, in days",
    )
    live_kept_days: float = Field(
        14,
        ge=0,
        le=36_500,
        description="Age at which what workloads-watch recorded goes, with the runs and all that was made of them, but "
        "for runs that an alarm names, in days",
    )
