"""Options that several verbs of `whorl nodes` share, and the one source that a verb means when none is named."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.options import one_source

if TYPE_CHECKING:
    from tasks.warehouse.place import Warehouse

LabelFrom = Annotated[
    str | None,
    typer.Option(metavar="stem|parent|column:NAME", help="Where the node of a file is written", show_default=False),
]
Manifest = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="CSV or JSONL: path, benchmark, node, machine_type, started_at, is_stressed, dose",
        show_default=False,
    ),
]
Renamed = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="OURS=THEIRS", help="Column of a table that has another name; repeatable"),
]
TimeZone = Annotated[
    str | None, typer.Option(help="Time zone of times that name none, such as Europe/Berlin", show_default=False)
]
SOURCES = "SELECT DISTINCT source FROM ops.files WHERE word = 'nodes' ORDER BY source"


def read_flags(
    label_from: str | None, manifest: Path | None, renamed: list[str] | None, time_zone: str | None = None
) -> dict[str, Any]:
    """Flags of the command line as settings of nodes.read. Raises BadParameter for a --map that is none."""
    pairs = [pair.partition("=") for pair in renamed or []]
    if wrong := [ours + sign for ours, sign, theirs in pairs if not (ours and theirs)]:
        raise typer.BadParameter(f"{wrong[0]!r} is not OURS=THEIRS, such as node=hostname", param_hint="--map")
    told = {
        "label_from": label_from,
        "manifest": str(manifest.absolute()) if manifest else None,
        "columns": {ours: theirs for ours, _, theirs in pairs} or None,
        "time_zone": time_zone,
    }
    return {key: value for key, value in told.items() if value is not None}


def one_node_source(warehouse: "Warehouse", source: str | None) -> str:
    """The named source, or the only one with executions of benchmarks. Raises BadSetting, NotFound, NoWarehouse."""
    if source is not None:
        return one_source(warehouse, source)
    from tasks.errors import NotFound
    from tasks.warehouse.connection import fetch

    names = [str(name) for name in fetch(warehouse, SOURCES)["source"]]
    if not names:
        raise NotFound(f"{warehouse.file}: no executions of benchmarks yet; read some with 'whorl nodes ingest PATH'")
    if len(names) > 1:
        raise NotFound(f"there are {len(names)} sources: {', '.join(names)}; choose one with --source")
    return names[0]
