"""Options that several verbs of `whorl workloads` share, and the one source that a verb means when none is named."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    """The named source, or the only one with telemetry. Raises as source_of."""
    from tasks.warehouse.sources import source_of

    return source_of(warehouse, "workloads", source)


def one_source_with_telemetry(warehouse: "Warehouse", source: str | None) -> str:
    """As one_workload_source; it must have runs, so that this is told before Prefect is started."""
    from tasks.workloads.model_steps import newest

    chosen = one_workload_source(warehouse, source)
    newest(warehouse, chosen, 1)
    return chosen


def source_with_model(warehouse: "Warehouse", source: str | None) -> str:
    """The named source, or the only one with a model of workloads. Raises BadSetting, NotFound."""
    from tasks.errors import NotFound
    from tasks.warehouse.sources import only
    from tasks.workloads.champions import no_model, sources_with_model

    if source is not None:
        if checked_source(source) not in sources_with_model(warehouse):
            raise NotFound(no_model(source))
        return source
    none = f"{warehouse.models}: no model of workloads yet; make one with 'whorl workloads train'"
    return only(sources_with_model(warehouse), none)
