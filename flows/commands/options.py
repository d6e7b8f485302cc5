"""Options that several verbs share, and the one source that a verb means when none is named."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.commands import completion
from tasks.source_names import checked_source

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
    """The named source, or the only one there is. Raises BadSetting for what can be no name, NotFound if there
    are none, or several to choose from."""
    if source is not None:
        return checked_source(source)
    from tasks.warehouse.connection import reading

    with reading(warehouse) as connection:
        found = connection.execute("SELECT DISTINCT source FROM ops.files ORDER BY source").fetchall()
    none = f"{warehouse.file}: no source has rows yet; fill one with 'whorl jobs ingest FILE'"
    return only([str(name) for (name,) in found], none)


def only(names: list[str], none: str) -> str:
    """The only source among the names. Raises NotFound: `none` if there is no name, else with those to choose from."""
    from tasks.errors import NotFound

    if not names:
        raise NotFound(none)
    if len(names) > 1:
        raise NotFound(f"there are {len(names)} sources: {', '.join(names)}; choose one with --source")
    return names[0]
