"""What the shell offers after TAB: names that the warehouse knows. A busy or missing warehouse offers nothing."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from tasks.warehouse.place import Warehouse

LONGEST_WAIT_S = 0.3  # for the lock: a person waits with a half-written line
MOST = 500


def sources(context: typer.Context) -> list[str]:
    """Names of sources."""
    return _column(context, "SELECT DISTINCT source FROM ops.files ORDER BY source")


def run_ids(context: typer.Context) -> list[str]:
    """Ids of runs, the latest first."""
    return _column(context, "SELECT run_id FROM ops.runs ORDER BY started_at DESC")


def job_keys(context: typer.Context) -> list[str]:
    """Keys of the jobs of the source named so far, or of all sources."""
    source = context.params.get("source")
    return _column(
        context,
        "SELECT group_key FROM jobs.groups WHERE coalesce(source = $source, TRUE) ORDER BY n_finished DESC, group_key",
        {"source": source},
    )


def model_ids(context: typer.Context) -> list[str]:
    """Ids of models, from the names of their folders."""
    home = _warehouse(context)
    return sorted({folder.name for folder in home.models.glob("*/[!.]*")}) if home else []


def words() -> list[str]:
    """Words that have settings."""
    from tasks.settings import Settings

    return list(Settings.model_fields)


def data_sets() -> list[str]:
    """Names of reference data sets."""
    from tasks.datasets import DATA_SETS

    return [one.name for one in DATA_SETS]


def _column(context: typer.Context, sql: str, values: dict[str, str | None] | None = None) -> list[str]:
    from tasks.errors import WhorlError
    from tasks.warehouse.connection import reading

    warehouse = _warehouse(context)
    if warehouse is None:
        return []
    try:
        with reading(warehouse) as connection:
            return [str(row[0]) for row in connection.execute(f"{sql} LIMIT {MOST}", values or {}).fetchall()]
    except WhorlError:
        return []


def _warehouse(context: typer.Context) -> "Warehouse | None":
    from tasks.errors import WhorlError
    from tasks.settings import load_settings

    home = context.find_root().params.get("home")
    try:
        settings = load_settings({"whorl": {"home": str(Path.cwd() / home)}} if home else {}).settings
    except WhorlError:
        return None
    return settings.warehouse.model_copy(update={"lock_wait_s": LONGEST_WAIT_S})
