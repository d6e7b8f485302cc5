"""Options that several verbs of `whorl nodes` share, and the one source that a verb means when none is named."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.reading_options import labelled_read_flags

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


def read_flags(
    label_from: str | None, manifest: Path | None, renamed: list[str] | None, time_zone: str | None = None
) -> dict[str, Any]:
    """Flags of the command line as settings of nodes.read. Raises BadParameter for a --map that is none."""
    return labelled_read_flags(label_from, manifest, renamed, time_zone, example="node=hostname")


def one_learning_source(warehouse: "Warehouse", source: str | None) -> str:
    """As one_node_source; it must have executions, so that this is told before Prefect is started.

    Raises BadInput if simulated executions stand among measured ones."""
    from tasks.nodes.history import version_of

    chosen = one_node_source(warehouse, source)
    version_of(warehouse, chosen)
    return chosen


def one_trained_source(warehouse: "Warehouse", source: str | None) -> str:
    """As one_learning_source; raises NotFound too if it has no detector."""
    from tasks.nodes.verdict_steps import require_detector

    chosen = one_learning_source(warehouse, source)
    require_detector(warehouse, chosen)
    return chosen


def one_node_source(warehouse: "Warehouse", source: str | None) -> str:
    """The named source, or the only one with executions of benchmarks. Raises as source_of."""
    from tasks.warehouse.sources import source_of

    return source_of(warehouse, "nodes", source)
