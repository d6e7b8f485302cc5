"""`whorl datasets`: public reference data that whorl was measured on, and fetching it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.commands import completion
from flows.commands.options import Json
from flows.invocation import invocation_of
from flows.progress_bar import progress_bar
from flows.tables import PIPED, Column, show_table

if TYPE_CHECKING:
    from tasks.settings import Settings

app = typer.Typer(help="Public reference data, and fetching it", no_args_is_help=True)

LISTED = (
    Column("name", "name", kind="name"),
    Column("is_here", "here", style=lambda is_here: "green" if is_here else "dim"),
    Column("title", "what"),
    Column("rows", "rows", kind="number"),
    Column("words", "for"),
    Column("licence", "licence", is_extra=True),
    Column("home", "public home", is_extra=True),
)


@app.command("list")
def list_data_sets(context: typer.Context, as_json: Json = False) -> None:
    """List the data sets, and which of them this machine has."""
    from flows.machine_output import plain, show_json
    from tasks.datasets import DATA_SETS

    invocation = invocation_of(context)
    folder = _folder(invocation.settings)
    rows = [{**plain(one), "is_here": one.is_in(folder), "can_be_fetched": bool(one.sha256)} for one in DATA_SETS]
    if as_json:
        show_json({"datasets": rows})
        return
    show_table(rows, LISTED, piped_width=PIPED)
    invocation.note(f"looked in {folder} (WHORL_DATASETS); 'whorl datasets fetch NAME' fetches or says where to look")


@app.command()
def fetch(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of a data set", autocompletion=completion.data_sets)],
    as_json: Json = False,
) -> None:
    """Download a data set from its public home, check its hash, and print its path."""
    from flows.machine_output import show_json
    from tasks import datasets

    invocation = invocation_of(context)
    with progress_bar(invocation):
        path = datasets.fetch(datasets.find_data_set(name), _folder(invocation.settings))
    if as_json:
        show_json({"name": name, "path": str(path)})
    else:
        print(path)


def _folder(settings: "Settings") -> Path:
    """WHORL_DATASETS, or datasets/ in the home folder."""
    named = settings.whorl.datasets
    return Path(named).expanduser().absolute() if named else settings.warehouse.home / "datasets"
