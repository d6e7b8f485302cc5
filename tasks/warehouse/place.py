"""Where a home keeps its warehouse, how it is opened, and what is kept when it is pruned. Light: settings import it."""

from pathlib import Path

from pydantic import Field

from tasks.params import Params

SPILL = "Disk space that DuckDB may use below spill/ of the home folder, for what memory_mb does not hold, in MB"


class Warehouse(Params):
    """A home folder with its warehouse, landing folder and models."""

    home: Path = Field(description="Folder that holds warehouse.duckdb, landing/, models/ and reports/")
    landing: str = Field("", description="Landing folder: a path or an fsspec address; empty: <home>/landing")
    lock_wait_s: float = Field(60, ge=0, le=86_400, description="How long to wait for the lock, in seconds")
    memory_mb: int = Field(1024, ge=64, le=2**20, description="Memory that DuckDB may use, in MB")
    threads: int = Field(2, ge=1, le=1024, description="Threads that DuckDB may use")
    spill_mb: int = Field(20_000, ge=1, le=2**30, description=SPILL)

    @property
    def file(self) -> Path:
        """The DuckDB file."""
        return self.home / "warehouse.duckdb"

    @property
    def landing_folder(self) -> str:
        """Where recordings and readers put their files."""
        return self.landing or str(self.home / "landing")

    @property
    def models(self) -> Path:
        """The folder of the model registry."""
        return self.home / "models"

    @property
    def backups(self) -> Path:
        """Where backups go when no other place is named."""
        return self.home / "backups"

    @property
    def spill(self) -> Path:
        """Where DuckDB puts what does not fit into memory_mb."""
        return self.home / "spill"


class PruneParams(Params):
    """What is kept when the warehouse is pruned."""

    runs_kept_days: float = Field(
        90,
        ge=0,
        le=36_500,
        description="Age at which a run is forgotten, in days. More where runs have to be accounted for",
    )
    models_kept: int = Field(
        5,
        ge=0,
        le=10_000,
        description="Models kept for each word, source and kind, the latest. More to go back further",
    )
    orphans_kept_hours: float = Field(
        24,
        ge=0,
        le=8_760,
        description="Age at which a landing file that no batch names is removed, in hours. More where uploads "
        "take days",
    )
    copies_kept_days: float = Field(
        30,
        ge=0,
        le=36_500,
        description="Age at which what a restore or rebuild kept aside, and an incomplete backup, is removed, in "
        "days. Less where the disk is full",
    )
    live_kept_days: float = Field(
        14,
        ge=0,
        le=36_500,
        description="Age at which what workloads-watch recorded goes, with the runs and all that was made of "
        "them, but for runs that an alarm names, in days. More to look back at what ran when",
    )
