"""`whorl warehouse`: copies, a new start from the landing folder, tidying up, and what stands in it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.options import Json
from flows.invocation import invocation_of
from flows.progress_bar import progress_bar
from flows.shown import as_command, clean, count, counted
from flows.tables import Column, show_table

if TYPE_CHECKING:
    from tasks.warehouse.place import Warehouse
    from tasks.warehouse.pruning import Pruned

app = typer.Typer(help="Copies of the warehouse, rebuilding, tidying up", no_args_is_help=True)

MADE_AFTER = ("summary", "characterise", "train", "predict")  # in this order
HASHED = (
    Column("table", "table", kind="name"),
    Column("n_rows", "rows", count, kind="number"),
    Column("hash", "hash", kind="name"),
)


@app.command()
def snapshot(
    context: typer.Context, file: Annotated[Path, typer.Argument(help="File to write")], as_json: Json = False
) -> None:
    """Copy the warehouse to one file that others may open with DuckDB."""
    from flows.machine_output import show_json
    from tasks.warehouse import copies

    made = copies.snapshot(invocation_of(context).warehouse, file)
    if as_json:
        show_json({"file": str(made.absolute()), "size_bytes": made.stat().st_size})
        return
    print(made)


@app.command()
def rebuild(context: typer.Context, as_json: Json = False) -> None:
    """Make the warehouse again from the landing folder: the same rows; runs and alarms are kept.

    What was made from the rows (predictions, reasons, what-ifs) is not made again; the last line says by what it is."""
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
        invocation.note("not all runs, alarms and answers could be taken over from the warehouse that was there before")
    if sources := _job_sources(warehouse):
        invocation.note(_not_made_again(sources, is_kept=bool(found["kept_history"])))


def _job_sources(warehouse: "Warehouse") -> list[str]:
    from tasks.warehouse.connection import fetch

    found = fetch(warehouse, "SELECT DISTINCT source FROM ops.files WHERE word = 'jobs' ORDER BY source")
    return [clean(str(source)) for source in found["source"]]


def _not_made_again(sources: list[str], *, is_kept: bool) -> str:
    """One line: what a rebuild leaves as it was, or cannot bring back, and the commands that make it again."""
    state = "stand as they did" if is_kept else "are lost"
    source = sources[0] if len(sources) == 1 else "SOURCE"
    commands = ", ".join(as_command("whorl", "jobs", verb, "--source", source) for verb in MADE_AFTER)
    named = f"; SOURCE: {', '.join(sources)}" if len(sources) > 1 else ""
    return (
        f"not made again: summaries, shapes, predictions, reasons and what-ifs {state}; anew by {commands}, "
        f"and in 'whorl serve' by the flows jobs-explain and jobs-whatif{named}"
    )


@app.command()
def backup(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Folder that the backup's folder goes to")],
    as_json: Json = False,
) -> None:
    """Copy warehouse, landing files and models to a new folder, with a list of hashes."""
    from flows.machine_output import show_json
    from tasks.warehouse import copies

    made = copies.backup(invocation_of(context).warehouse, folder)
    if as_json:
        sizes = [file.stat().st_size for file in made.rglob("*") if file.is_file()]
        show_json({"folder": str(made.absolute()), "n_files": len(sizes), "size_bytes": sum(sizes)})
        return
    print(made)


@app.command()
def restore(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Folder of one backup: whorl-<time>, with backup.json in it")],
    as_json: Json = False,
) -> None:
    """Bring back a backup; the present warehouse is kept beside it."""
    from flows.machine_output import show_json
    from tasks.warehouse import copies

    warehouse = invocation_of(context).warehouse
    n_files = copies.restore(warehouse, folder)
    if as_json:
        show_json({"home": str(warehouse.home), "folder": str(folder.absolute()), "n_files": n_files})
        return
    print(f"{warehouse.home}: restored from {folder}, {counted(n_files, 'file')}")


@app.command()
def prune(
    context: typer.Context,
    runs_kept_days: Annotated[
        float | None, typer.Option(metavar="DAYS", help="Age at which a run is forgotten", show_default=False)
    ] = None,
    models_kept: Annotated[
        int | None, typer.Option(metavar="N", help="Models kept of each kind, the latest", show_default=False)
    ] = None,
    orphans_kept_hours: Annotated[
        float | None, typer.Option(metavar="HOURS", help="Age at which a file of no batch goes", show_default=False)
    ] = None,
    copies_kept_days: Annotated[
        float | None,
        typer.Option(metavar="DAYS", help="Age at which a copy kept aside, or half a backup, goes", show_default=False),
    ] = None,
    live_kept_days: Annotated[
        float | None,
        typer.Option(metavar="DAYS", help="Age at which what a watch recorded goes", show_default=False),
    ] = None,
    backups: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where half backups may be, if not in backups/", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go")] = False,
    as_json: Json = False,
) -> None:
    """Remove old runs, recordings and copies, models not in use, landing files of no batch, and what kills left.

    What is kept is set by whorl.prune in conf/; 'whorl config whorl' shows it."""
    from flows.machine_output import show_json
    from tasks.warehouse.pruning import prune as prune_warehouse

    given = {
        "runs_kept_days": runs_kept_days,
        "models_kept": models_kept,
        "orphans_kept_hours": orphans_kept_hours,
        "copies_kept_days": copies_kept_days,
        "live_kept_days": live_kept_days,
    }
    flags: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    settings = invocation_of(context).resolved({"whorl": {"prune": flags}}).settings
    now = datetime.now(UTC).replace(tzinfo=None)
    pruned = prune_warehouse(settings.warehouse, settings.whorl.prune, now, backups=backups, dry_run=dry_run)
    if as_json:
        show_json(pruned)
    else:
        _show_pruned(pruned, is_dry=dry_run)


def _show_pruned(pruned: "Pruned", *, is_dry: bool) -> None:
    for name in (*pruned.models, *pruned.landing_files, *pruned.leftovers, *pruned.copies, *pruned.recordings):
        print(name)
    n_models, n_files = len(pruned.models), len(pruned.landing_files)
    what = f"{counted(pruned.n_runs, 'run')}, {counted(n_models, 'model')}, {counted(n_files, 'landing file')}"
    if pruned.leftovers:
        what += f", {counted(len(pruned.leftovers), 'leftover')} of killed processes"
    if pruned.copies:
        what += f", {count(len(pruned.copies))} old {'copy' if len(pruned.copies) == 1 else 'copies'}"
    if pruned.n_recorded or pruned.recordings:
        what += f", {counted(pruned.n_recorded, 'recorded run')} and {counted(len(pruned.recordings), 'recording')}"
    print(f"{'would remove' if is_dry else 'removed'}: {what}")


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
def dictionary(as_json: Json = False) -> None:
    """Print the data dictionary: every table and column with its meaning and unit, as Markdown."""
    from flows.machine_output import show_json
    from tasks.warehouse.dictionary import data_dictionary, described_tables

    if as_json:
        show_json({"tables": described_tables()})
        return
    print(data_dictionary(), end="")
