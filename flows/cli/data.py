"""`whorl query`, `config`, `warehouse`, `datasets`: what is known, what is set, and copies of it."""

import csv
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from flows.cli.invocation import Invocation, Output, progress_bar
from flows.cli.output import PIPED, as_command, clean, is_limited, plain, setting, show_rows, show_table, stdout_console
from tasks.quantities import counted
from tasks.report.result import Column, as_text, columns, count, extra

if TYPE_CHECKING:
    import pyarrow as pa

    from tasks.settings import Settings
    from tasks.warehouse.pruning import Pruned

NESTED_CHARS = 60  # of a list or struct in a table on a terminal
VALUE_CHARS = 150  # of a setting for a person; --json and conf/ have all of it
TABLE_ROWS = 100  # of a query for a person; machines get all rows


def query(call: Invocation, sql: str, limit: int | None = None, as_csv: bool = False) -> None:
    """Ask the warehouse in SQL.

    Nothing can be changed, and no file be read, from here.

    SQL: One SELECT; '-' reads it from stdin
    --limit (0..): Rows at most, 0: all; a table has 100, JSON and CSV all
    --limit-s (float whorl.query_limit_s): Seconds that it may take, 0: any time; default: whorl.query_limit_s
    --csv: Comma-separated values with a header"""
    from tasks.warehouse.query import ask, rows_of

    if call.as_json and as_csv:
        raise typer.BadParameter("choose one of --json and --csv")
    most = (None if call.as_json or as_csv else TABLE_ROWS) if limit is None else limit or None
    answer = ask(
        call.warehouse, sys.stdin.read() if sql == "-" else sql, limit=most, limit_s=call.settings.whorl.query_limit_s
    )
    rows = rows_of(answer.rows)
    if call.as_json or as_csv:
        if call.as_json:
            show_rows(rows)
        else:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(answer.rows.column_names)
            writer.writerows(row.values() for row in rows)
        if answer.is_cut:
            call.note(f"whorl: cut after {count(answer.rows.num_rows)} rows (--limit)")
        return
    show_table(list(rows), [_column(field) for field in answer.rows.schema])
    more = "; there are more: --limit N shows N of them, --limit 0 all" if answer.is_cut else ""
    call.note(f"{counted(answer.rows.num_rows, 'row')}{more}")


def config(call: Invocation, word: str | None = None, defaults: str | None = None) -> Output:
    """Show each setting and where it came from, those that differ from the defaults first.

    word: Only this word
    --defaults WORD: Print the defaults of a word as commented YAML, for conf/local/WORD.yaml"""
    from tasks.settings import leaves

    if defaults is not None:
        from tasks.settings import Settings, commented_defaults

        print(commented_defaults(type(getattr(Settings(), _known_word(defaults)))), end="")
        return
    resolved = call.resolved
    values = leaves(resolved.settings.model_dump())
    beginning = f"{_known_word(word)}." if word else ""
    rows = [
        {"key": key, "value": value, "from": resolved.origins.get(key, "default")}
        for key, value in values.items()
        if key.startswith(beginning)
    ]
    yield {row["key"]: {"value": row["value"], "from": row["from"]} for row in rows}
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
    is_long = pa.types.is_nested(field.type) and is_limited()  # a list of vertices would fill the screen
    show = (lambda value: _cut(_cell(value), NESTED_CHARS)) if is_long else _cell
    return Column(field.name, field.name, show, kind="number" if is_number else "text")


def _cut(whole: str, most: int) -> str:
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def _cell(value: Any) -> str:
    if isinstance(value, float) and value == value:
        return f"{value:.10g}"
    whole = ", ".join(map(str, value)) if isinstance(value, list) else value
    return clean(whole) if isinstance(whole, str) else as_text(whole)


MADE_AFTER = ("summary", "characterise", "train", "predict")  # in this order
HASHED = columns(("table", "table", "name"), ("n_rows", "rows", count), ("hash", "hash", "name"))


def snapshot(call: Invocation, file: Path) -> Output:
    """Copy the warehouse to one file that others may open with DuckDB.

    file: File to write"""
    from tasks.warehouse import copies

    made = copies.snapshot(call.warehouse, file)
    yield {"file": str(made.absolute()), "size_bytes": made.stat().st_size}
    print(made)


def rebuild(call: Invocation) -> Output:
    """Make the warehouse again from the landing folder: the same rows; runs and alarms are kept.

    What was made from the rows (predictions, reasons, what-ifs) is not made again; the last line says by what it is."""
    from tasks.warehouse.connection import fetch
    from tasks.warehouse.copies import rebuild as rebuild_warehouse

    warehouse = call.warehouse
    with progress_bar(call):
        rebuilt = rebuild_warehouse(warehouse)
    yield rebuilt
    files = ", ".join(f"{counted(n, 'file')} of {word}" for word, n in rebuilt.items() if word != "kept_history")
    print(f"{warehouse.file}: rebuilt from {files}")
    if not rebuilt["kept_history"]:
        call.note("not all runs, alarms and answers could be taken over from the warehouse that was there before")
    held = fetch(warehouse, "SELECT DISTINCT source FROM ops.files WHERE word = 'jobs' ORDER BY source")["source"]
    if sources := [clean(str(source)) for source in held]:
        call.note(_not_made_again(sources, is_kept=bool(rebuilt["kept_history"])))


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


def backup(call: Invocation, folder: Path) -> Output:
    """Copy warehouse, landing files and models to a new folder, with a list of hashes.

    folder: Folder that the backup's folder goes to"""
    from tasks.warehouse import copies

    made = copies.backup(call.warehouse, folder)
    sizes = [file.stat().st_size for file in made.rglob("*") if file.is_file()]
    yield {"folder": str(made.absolute()), "n_files": len(sizes), "size_bytes": sum(sizes)}
    print(made)


def restore(call: Invocation, folder: Path) -> Output:
    """Bring back a backup; the present warehouse is kept beside it.

    folder: Folder of one backup: whorl-<time>, with backup.json in it"""
    from tasks.warehouse import copies

    warehouse = call.warehouse
    n_files = copies.restore(warehouse, folder)
    yield {"home": str(warehouse.home), "folder": str(folder.absolute()), "n_files": n_files}
    print(f"{warehouse.home}: restored from {folder}, {counted(n_files, 'file')}")


def prune(call: Invocation, backups: Path | None = None, dry_run: bool = False) -> Output:
    """Remove old runs, recordings and copies, models not in use, landing files of no batch, and what kills left.

    What is kept is set by whorl.prune in conf/; 'whorl config whorl' shows it.

    --runs-kept-days DAYS (float whorl.prune.runs_kept_days): Age at which a run is forgotten
    --models-kept N (int whorl.prune.models_kept): Models kept of each kind, the latest
    --orphans-kept-hours HOURS (float whorl.prune.orphans_kept_hours): Age at which a file of no batch goes
    --copies-kept-days DAYS (float whorl.prune.copies_kept_days): Age at which a copy kept aside, or half a backup,
        goes
    --live-kept-days DAYS (float whorl.prune.live_kept_days): Age at which what a watch recorded goes
    --backups DIR: Where half backups may be, if not in backups/
    --dry-run: Only say what would go"""
    from tasks.warehouse.pruning import prune as prune_warehouse

    now = datetime.now(UTC).replace(tzinfo=None)
    pruned = prune_warehouse(call.warehouse, call.settings.whorl.prune, now, backups=backups, dry_run=dry_run)
    yield pruned
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


def hashes(call: Invocation) -> Output:
    """Show rows and a hash of every table: equal hashes, equal rows."""
    from tasks.warehouse.copies import hash_tables

    rows = plain(hash_tables(call.warehouse))
    yield {row["table"]: {"n_rows": row["n_rows"], "hash": row["hash"]} for row in rows}
    show_table(rows, HASHED)


def dictionary(_: Invocation) -> Output:
    """Print the data dictionary: every table and column with its meaning and unit, as Markdown."""
    from tasks.warehouse.migrations import data_dictionary, described_tables

    yield {"tables": described_tables()}
    print(data_dictionary(), end="")


LISTED = columns(
    ("name", "name", "name"), Column("is_here", "here", style=lambda is_here: "green" if is_here else "dim"),
    ("title", "what"), ("rows", "rows", "number"), ("words", "for"),
    *extra(("licence", "licence"), ("home", "public home")),
)  # fmt: skip


def list_data_sets(call: Invocation) -> Output:
    """List the data sets, and which of them this machine has."""
    from tasks.datasets import DATA_SETS

    folder = _folder(call.settings)
    rows = [
        {**plain(data_set), "is_here": data_set.is_in(folder), "can_be_fetched": bool(data_set.sha256)}
        for data_set in DATA_SETS
    ]
    yield {"datasets": rows}
    show_table(rows, LISTED, piped_width=PIPED)
    call.note(f"looked in {folder} (WHORL_DATASETS); 'whorl datasets fetch NAME' fetches or says where to look")


def fetch(call: Invocation, name: str) -> Output:
    """Download a data set from its public home, check its hash, and print its path.

    name: Name of a data set"""
    from tasks import datasets

    with progress_bar(call):
        path = datasets.fetch(datasets.find_data_set(name), _folder(call.settings))
    yield {"name": name, "path": str(path)}
    print(path)


def _folder(settings: "Settings") -> Path:
    """WHORL_DATASETS, or datasets/ in the home folder."""
    named = settings.whorl.datasets
    return Path(named).expanduser().absolute() if named else settings.warehouse.home / "datasets"
