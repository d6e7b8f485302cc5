"""`whorl warehouse`: copies, a new start from the landing folder, tidying up, and what stands in it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.options import Json
from flows.invocation import invocation_of
from flows.progress_bar import progress_bar
from flows.shown import count, counted
from flows.tables import Column, show_table

app = typer.Typer(help="Copies of the warehouse, rebuilding, tidying up", no_args_is_help=True)

HASHED = (
    Column("table", "table", kind="name"),
    Column("n_rows", "rows", count, kind="number"),
    Column("hash", "hash", kind="name"),
)


@app.command()
def snapshot(context: typer.Context, file: Annotated[Path, typer.Argument(help="File to write")]) -> None:
    """Copy the warehouse to one file that others may open with DuckDB."""
    from tasks.warehouse import copies

    print(copies.snapshot(invocation_of(context).warehouse, file))


@app.command()
def rebuild(context: typer.Context, as_json: Json = False) -> None:
    """Make the warehouse again from the landing folder: the same rows; runs and alarms are kept."""
    from flows.machine_output import show_json
    from tasks.warehouse.rebuild import rebuild as rebuild_warehouse

    invocation = invocation_of(context)
    warehouse = invocation.warehouse
    with progress_bar(invocation):
        found = rebuild_warehouse(warehouse)
    if as_json:
        show_json(found)
        return
    files = ", ".join(f"{counted(n, 'file')} of {word}" for word, n in found.items() if word != "kept_history")
    print(f"{warehouse.file}: rebuilt from {files}")
    if not found["kept_history"]:
        invocation.note("runs and alarms could not be taken over: there was no usable warehouse before")


@app.command()
def backup(
    context: typer.Context, folder: Annotated[Path, typer.Argument(help="Folder that the backup's folder goes to")]
) -> None:
    """Copy warehouse, landing files and models to a new folder, with a list of hashes."""
    from tasks.warehouse import copies

    print(copies.backup(invocation_of(context).warehouse, folder))


@app.command()
def restore(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Folder of one backup: whorl-<time>, with backup.json in it")],
) -> None:
    """Bring back a backup; the present warehouse is kept beside it."""
    from tasks.warehouse import copies

    warehouse = invocation_of(context).warehouse
    n_files = copies.restore(warehouse, folder)
    print(f"{warehouse.home}: restored from {folder}, {counted(n_files, 'file')}")


@app.command()
def prune(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go")] = False,
    as_json: Json = False,
) -> None:
    """Remove old runs, models that are not in use, landing files of no batch, and what killed processes left."""
    from flows.machine_output import show_json
    from tasks.warehouse.pruning import PruneParams
    from tasks.warehouse.pruning import prune as prune_warehouse

    now = datetime.now(UTC).replace(tzinfo=None)
    pruned = prune_warehouse(invocation_of(context).warehouse, PruneParams(), now, dry_run=dry_run)
    if as_json:
        show_json(pruned)
        return
    for name in (*pruned.models, *pruned.landing_files, *pruned.leftovers):
        print(name)
    n_models, n_files = len(pruned.models), len(pruned.landing_files)
    what = f"{counted(pruned.n_runs, 'run')}, {counted(n_models, 'model')}, {counted(n_files, 'landing file')}"
    if pruned.leftovers:
        what += f", {counted(len(pruned.leftovers), 'leftover')} of killed processes"
    print(f"{'would remove' if dry_run else 'removed'}: {what}")


@app.command()
def hashes(context: typer.Context, as_json: Json = False) -> None:
    """Show rows and a hash of every table: equal hashes, equal rows."""
    from flows.machine_output import plain, show_json
    from tasks.warehouse.hashes import hash_tables

    rows = plain(hash_tables(invocation_of(context).warehouse))
    if as_json:
        show_json({row["table"]: {"n_rows": row["n_rows"], "hash": row["hash"]} for row in rows})
    else:
        show_table(rows, HASHED)


@app.command()
def dictionary() -> None:
    """Print the data dictionary: every table and column with its meaning and unit, as Markdown."""
    from tasks.warehouse.dictionary import data_dictionary

    print(data_dictionary(), end="")
