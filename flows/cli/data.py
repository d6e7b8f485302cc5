"""`whorl query`, `config`, `warehouse`, `datasets`: what is known, what is set, and copies of it."""

import sys
import textwrap
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from flows.cli.invocation import Invocation, Json, given, invocation_of, offered_data_sets, offered_words, progress_bar
from flows.cli.output import (
    PIPED,
    as_command,
    clean,
    is_limited,
    plain,
    setting,
    show_json,
    show_rows,
    show_table,
    stdout_console,
)
from tasks.quantities import counted
from tasks.report.result import Column, as_text, columns, count, extra

if TYPE_CHECKING:
    import pyarrow as pa

    from tasks.settings import Settings
    from tasks.warehouse.place import Warehouse
    from tasks.warehouse.pruning import Pruned

NESTED_CHARS = 60  # of a list or struct in a table on a terminal
VALUE_CHARS = 150  # of a setting for a person; --json and conf/ have all of it
TABLE_ROWS = 100  # of a query for a person; machines get all rows


def query(
    context: typer.Context,
    sql: Annotated[str, Argument(metavar="SQL", help="One SELECT; '-' reads it from stdin")],
    limit: Annotated[
        int | None, Option(min=0, help=f"Rows at most, 0: all; a table has {TABLE_ROWS}, JSON and CSV all")
    ] = None,
    limit_s: Annotated[
        float | None, Option(help="Seconds that it may take, 0: any time; default: whorl.query_limit_s")
    ] = None,
    as_json: Json = False,
    as_csv: Annotated[bool, Option("--csv", help="Comma-separated values with a header")] = False,
) -> None:
    """Ask the warehouse in SQL.

    Nothing can be changed, and no file be read, from here."""
    from tasks.warehouse.query import ask, rows_of

    if as_json and as_csv:
        raise typer.BadParameter("choose one of --json and --csv")
    invocation = invocation_of(context)
    flags = {} if limit_s is None else {"whorl": {"query_limit_s": limit_s}}
    settings = invocation.resolved(flags).settings
    most = (None if as_json or as_csv else TABLE_ROWS) if limit is None else limit or None
    answer = ask(
        settings.warehouse, sys.stdin.read() if sql == "-" else sql, limit=most, limit_s=settings.whorl.query_limit_s
    )
    rows = rows_of(answer.rows)
    if as_json:
        show_rows(rows)
    elif as_csv:
        _show_csv(answer.rows.column_names, rows)
    else:
        show_table(list(rows), [_column(field) for field in answer.rows.schema])
        _tell_rows(invocation, answer.rows.num_rows, is_cut=answer.is_cut)
    if answer.is_cut and (as_json or as_csv):
        invocation.note(f"whorl: cut after {count(answer.rows.num_rows)} rows (--limit)")


def config(
    context: typer.Context,
    word: Annotated[str | None, Argument(help="Only this word", autocompletion=offered_words)] = None,
    defaults: Annotated[
        str | None,
        Option(metavar="WORD", help="Print the defaults of a word as commented YAML, for conf/local/WORD.yaml"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show each setting and where it came from, those that differ from the defaults first."""
    from tasks.settings import leaves

    if defaults is not None:
        from tasks.settings import Settings, commented_defaults

        print(commented_defaults(type(getattr(Settings(), _known_word(defaults)))), end="")
        return
    resolved = invocation_of(context).resolved()
    values = leaves(resolved.settings.model_dump())
    beginning = f"{_known_word(word)}." if word else ""
    rows = [
        {"key": key, "value": value, "from": resolved.origins.get(key, "default")}
        for key, value in values.items()
        if key.startswith(beginning)
    ]
    if as_json:
        return show_json({row["key"]: {"value": row["value"], "from": row["from"]} for row in rows})
    width = stdout_console().width if is_limited() else PIPED
    for row in sorted(rows, key=lambda row: row["from"] == "default"):
        line = f"{row['key']}: {_cut(setting(row['value']), VALUE_CHARS)}  ({row['from']})"
        print(textwrap.fill(clean(line), width, subsequent_indent="    ", break_on_hyphens=False))


def _known_word(word: str) -> str:
    from tasks.errors import NotFound
    from tasks.settings import Settings

    if word not in Settings.model_fields:
        raise NotFound(f"{word!r}: no such word; there are settings of {', '.join(Settings.model_fields)}")
    return word


def _column(field: "pa.Field") -> Column:
    import pyarrow as pa

    is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
    show = _cut_cell if pa.types.is_nested(field.type) and is_limited() else _cell
    return Column(field.name, field.name, show, kind="number" if is_number else "text")


def _cut_cell(value: Any) -> str:
    """A list or struct in one line; a list of vertices would fill the screen. Machines get all of it."""
    return _cut(_cell(value), NESTED_CHARS)


def _cut(whole: str, most: int) -> str:
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def _cell(value: Any) -> str:
    if isinstance(value, float) and value == value:
        return f"{value:.10g}"
    whole = ", ".join(map(str, value)) if isinstance(value, list) else value
    return clean(whole) if isinstance(whole, str) else as_text(whole)


def _show_csv(names: list[str], rows: Iterable[dict[str, Any]]) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(row.values() for row in rows)


def _tell_rows(invocation: Invocation, n_rows: int, *, is_cut: bool) -> None:
    more = "; there are more: --limit N shows N of them, --limit 0 all" if is_cut else ""
    invocation.note(f"{counted(n_rows, 'row')}{more}")


MADE_AFTER = ("summary", "characterise", "train", "predict")  # in this order
HASHED = columns(("table", "table", "name"), ("n_rows", "rows", count), ("hash", "hash", "name"))


def snapshot(
    context: typer.Context, file: Annotated[Path, Argument(help="File to write")], as_json: Json = False
) -> None:
    """Copy the warehouse to one file that others may open with DuckDB."""
    from tasks.warehouse import copies

    made = copies.snapshot(invocation_of(context).warehouse, file)
    if as_json:
        return show_json({"file": str(made.absolute()), "size_bytes": made.stat().st_size})
    print(made)


def rebuild(context: typer.Context, as_json: Json = False) -> None:
    """Make the warehouse again from the landing folder: the same rows; runs and alarms are kept.

    What was made from the rows (predictions, reasons, what-ifs) is not made again; the last line says by what it is."""
    from tasks.warehouse.rebuild import rebuild as rebuild_warehouse

    invocation = invocation_of(context)
    warehouse = invocation.warehouse
    with progress_bar(invocation):
        found = rebuild_warehouse(warehouse)
    if as_json:
        return show_json(found)
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


def backup(
    context: typer.Context,
    folder: Annotated[Path, Argument(help="Folder that the backup's folder goes to")],
    as_json: Json = False,
) -> None:
    """Copy warehouse, landing files and models to a new folder, with a list of hashes."""
    from tasks.warehouse import copies

    made = copies.backup(invocation_of(context).warehouse, folder)
    if as_json:
        sizes = [file.stat().st_size for file in made.rglob("*") if file.is_file()]
        return show_json({"folder": str(made.absolute()), "n_files": len(sizes), "size_bytes": sum(sizes)})
    print(made)


def restore(
    context: typer.Context,
    folder: Annotated[Path, Argument(help="Folder of one backup: whorl-<time>, with backup.json in it")],
    as_json: Json = False,
) -> None:
    """Bring back a backup; the present warehouse is kept beside it."""
    from tasks.warehouse import copies

    warehouse = invocation_of(context).warehouse
    n_files = copies.restore(warehouse, folder)
    if as_json:
        return show_json({"home": str(warehouse.home), "folder": str(folder.absolute()), "n_files": n_files})
    print(f"{warehouse.home}: restored from {folder}, {counted(n_files, 'file')}")


def prune(
    context: typer.Context,
    runs_kept_days: Annotated[float | None, Option(metavar="DAYS", help="Age at which a run is forgotten")] = None,
    models_kept: Annotated[int | None, Option(metavar="N", help="Models kept of each kind, the latest")] = None,
    orphans_kept_hours: Annotated[
        float | None, Option(metavar="HOURS", help="Age at which a file of no batch goes")
    ] = None,
    copies_kept_days: Annotated[
        float | None, Option(metavar="DAYS", help="Age at which a copy kept aside, or half a backup, goes")
    ] = None,
    live_kept_days: Annotated[
        float | None, Option(metavar="DAYS", help="Age at which what a watch recorded goes")
    ] = None,
    backups: Annotated[Path | None, Option(metavar="DIR", help="Where half backups may be, if not in backups/")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only say what would go")] = False,
    as_json: Json = False,
) -> None:
    """Remove old runs, recordings and copies, models not in use, landing files of no batch, and what kills left.

    What is kept is set by whorl.prune in conf/; 'whorl config whorl' shows it."""
    from tasks.warehouse.pruning import prune as prune_warehouse

    flags = given(
        runs_kept_days=runs_kept_days,
        models_kept=models_kept,
        orphans_kept_hours=orphans_kept_hours,
        copies_kept_days=copies_kept_days,
        live_kept_days=live_kept_days,
    )
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


def hashes(context: typer.Context, as_json: Json = False) -> None:
    """Show rows and a hash of every table: equal hashes, equal rows."""
    from tasks.warehouse.copies import hash_tables

    rows = plain(hash_tables(invocation_of(context).warehouse))
    if as_json:
        show_json({row["table"]: {"n_rows": row["n_rows"], "hash": row["hash"]} for row in rows})
    else:
        show_table(rows, HASHED)


def dictionary(as_json: Json = False) -> None:
    """Print the data dictionary: every table and column with its meaning and unit, as Markdown."""
    from tasks.warehouse.migrations import data_dictionary, described_tables

    if as_json:
        return show_json({"tables": described_tables()})
    print(data_dictionary(), end="")


LISTED = columns(
    ("name", "name", "name"), Column("is_here", "here", style=lambda is_here: "green" if is_here else "dim"),
    ("title", "what"), ("rows", "rows", "number"), ("words", "for"),
    *extra(("licence", "licence"), ("home", "public home")),
)  # fmt: skip


def list_data_sets(context: typer.Context, as_json: Json = False) -> None:
    """List the data sets, and which of them this machine has."""
    from tasks.datasets import DATA_SETS

    invocation = invocation_of(context)
    folder = _folder(invocation.settings)
    rows = [{**plain(one), "is_here": one.is_in(folder), "can_be_fetched": bool(one.sha256)} for one in DATA_SETS]
    if as_json:
        return show_json({"datasets": rows})
    show_table(rows, LISTED, piped_width=PIPED)
    invocation.note(f"looked in {folder} (WHORL_DATASETS); 'whorl datasets fetch NAME' fetches or says where to look")


def fetch(
    context: typer.Context,
    name: Annotated[str, Argument(help="Name of a data set", autocompletion=offered_data_sets)],
    as_json: Json = False,
) -> None:
    """Download a data set from its public home, check its hash, and print its path."""
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
