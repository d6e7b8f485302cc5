"""Options that several verbs share, and the one source that a verb means when none is named."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.commands import completion

if TYPE_CHECKING:
    from tasks.warehouse.place import Warehouse

Json = Annotated[bool, typer.Option("--json", help="One JSON value on stdout and nothing else")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of everything random", show_default=False)]
TablesOut = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write tables as Parquet, and a page with figures, there")
]
Source = Annotated[
    str | None,
    typer.Option(
        "--source",
        "-s",
        help="Source of the rows; not needed while there is only one",
        autocompletion=completion.sources,
        show_default=False,
    ),
]


def one_source(warehouse: "Warehouse", source: str | None) -> str:
    """The named source, or the only one with job runs. Raises as source_of."""
    from tasks.warehouse.sources import source_of

    return source_of(warehouse, "jobs", source)


def one_source_with_runs(warehouse: "Warehouse", source: str | None) -> str:
    """As one_source; it must have runs of one kind, so that this is told before Prefect is started.

    Raises as refuse_mixture too."""
    from tasks.jobs.summary import refuse_mixture
    from tasks.warehouse.connection import reading

    chosen = one_source(warehouse, source)
    with reading(warehouse) as connection:
        refuse_mixture(connection, chosen)
    return chosen
