"""Options that several verbs of `whorl workloads` share, and the one source that a verb means when none is named."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.options import one_source, only
from flows.commands.reading_options import labelled_read_flags
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
SOURCES = "SELECT DISTINCT source FROM ops.files WHERE word = 'workloads' ORDER BY source"


def read_flags(
    label_from: str | None,
    manifest: Path | None,
    renamed: list[str] | None,
    time_zone: str | None = None,
    *,
    example: str = "at_s=elapsed",
) -> dict[str, Any]:
    """Flags of the command line as settings of workloads.read. Raises BadParameter for a --map that is none."""
    return labelled_read_flags(label_from, manifest, renamed, time_zone, example=example)


def one_workload_source(warehouse: "Warehouse", source: str | None) -> str:
    """The named source, or the only one with telemetry. Raises BadSetting, NotFound, NoWarehouse."""
    if source is not None:
        return one_source(warehouse, source)
    from tasks.warehouse.connection import fetch

    names = [str(name) for name in fetch(warehouse, SOURCES)["source"]]
    return only(names, f"{warehouse.file}: no telemetry yet; read some with 'whorl workloads ingest FILE'")


def source_with_model(warehouse: "Warehouse", source: str | None) -> str:
    """The named source, or the only one with a model of workloads. Raises BadSetting, NotFound."""
    if source is not None:
        return checked_source(source)
    from tasks.workloads.champions import sources_with_model

    none = f"{warehouse.models}: no model of workloads yet; make one with 'whorl workloads train'"
    return only(sources_with_model(warehouse), none)
