"""Options that several verbs of `whorl workloads` share, and the one source that a verb means when none is named."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.options import one_source
from tasks.source_names import checked_source

if TYPE_CHECKING:
    from tasks.warehouse.place import Warehouse

LabelFrom = Annotated[
    str | None,
    typer.Option(metavar="stem|parent|column:NAME", help="Where the workload of a file is written", show_default=False),
]
Manifest = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="CSV or JSONL with path, workload, input, round, machine of each file", show_default=False
    ),
]
Renamed = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="OURS=THEIRS", help="Column of a table that has another name; repeatable"),
]
TimeZone = Annotated[
    str | None, typer.Option(help="Time zone of times that name none, such as Europe/Berlin", show_default=False)
]
SOURCES = "SELECT DISTINCT source FROM ops.files WHERE word = 'workloads' ORDER BY source"


def read_flags(
    label_from: str | None, manifest: Path | None, renamed: list[str] | None, time_zone: str | None = None
) -> dict[str, Any]:
    """Flags of the command line as settings of workloads.read. Raises BadParameter for a --map that is none."""
    pairs = [pair.partition("=") for pair in renamed or []]
    if wrong := [ours + sign for ours, sign, theirs in pairs if not (ours and theirs)]:
        raise typer.BadParameter(f"{wrong[0]!r} is not OURS=THEIRS, such as at_s=elapsed", param_hint="--map")
    told = {
        "label_from": label_from,
        "manifest": str(manifest.absolute()) if manifest else None,
        "columns": {ours: theirs for ours, _, theirs in pairs} or None,
        "time_zone": time_zone,
    }
    return {key: value for key, value in told.items() if value is not None}


def one_workload_source(warehouse: "Warehouse", source: str | None) -> str:
    """The named source, or the only one with telemetry. Raises BadSetting, NotFound, NoWarehouse."""
    if source is not None:
        return one_source(warehouse, source)
    from tasks.errors import NotFound
    from tasks.warehouse.connection import fetch

    names = [str(name) for name in fetch(warehouse, SOURCES)["source"]]
    return _only(names, NotFound(f"{warehouse.file}: no telemetry yet; read some with 'whorl workloads ingest FILE'"))


def source_with_model(warehouse: "Warehouse", source: str | None) -> str:
    """The named source, or the only one with a model of workloads. Raises BadSetting, NotFound."""
    if source is not None:
        return checked_source(source)
    from tasks.errors import NotFound
    from tasks.workloads.champions import sources_with_model

    none = f"{warehouse.models}: no model of workloads yet; make one with 'whorl workloads train'"
    return _only(sources_with_model(warehouse), NotFound(none))


def _only(names: list[str], none: Exception) -> str:
    from tasks.errors import NotFound

    if not names:
        raise none
    if len(names) > 1:
        raise NotFound(f"there are {len(names)} sources: {', '.join(names)}; choose one with --source")
    return names[0]
