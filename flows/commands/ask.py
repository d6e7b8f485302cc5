"""`whorl query` and `whorl config`: what stands in the warehouse, and what is set."""

import sys
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands import completion
from flows.commands.options import Json
from flows.invocation import Invocation, invocation_of
from flows.shown import clean, count, counted, setting, text
from flows.tables import PIPED, Column, is_limited, show_table, stdout_console

if TYPE_CHECKING:
    import pyarrow as pa

NESTED_CHARS = 60  # of a list or struct in a table on a terminal
VALUE_CHARS = 150  # of a setting for a person; --json and conf/ have all of it
TABLE_ROWS = 100  # of a query for a person; machines get all rows


def add_commands(app: typer.Typer) -> None:
    """Add the two verbs to the root."""
    app.command()(query)
    app.command()(config)


def query(
    context: typer.Context,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT; '-' reads it from stdin")],
    limit: Annotated[
        int | None,
        typer.Option(
            min=0, help=f"Rows at most, 0: all; a table has {TABLE_ROWS}, JSON and CSV all", show_default=False
        ),
    ] = None,
    limit_s: Annotated[
        float | None,
        typer.Option(help="Seconds that it may take, 0: any time; default: whorl.query_limit_s", show_default=False),
    ] = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values with a header")] = False,
) -> None:
    """Ask the warehouse in SQL.

    Nothing can be changed, and no file be read, from here."""
    from flows.machine_output import show_rows
    from tasks.warehouse.query import ask
    from tasks.warehouse.values import rows_of

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
    word: Annotated[str | None, typer.Argument(help="Only this word", autocompletion=completion.words)] = None,
    defaults: Annotated[
        str | None,
        typer.Option(metavar="WORD", help="Print the defaults of a word as commented YAML, for conf/local/WORD.yaml"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show each setting and where it came from, those that differ from the defaults first."""
    from flows.machine_output import show_json
    from tasks.settings import leaves

    if defaults is not None:
        from tasks.conf_files import commented_defaults
        from tasks.settings import Settings

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
        show_json({row["key"]: {"value": row["value"], "from": row["from"]} for row in rows})
        return
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
    return _cut(text(value), NESTED_CHARS)


def _cut(whole: str, most: int) -> str:
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def _cell(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) and value == value else text(value)


def _show_csv(names: list[str], rows: Iterable[dict[str, Any]]) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(row.values() for row in rows)


def _tell_rows(invocation: Invocation, n_rows: int, *, is_cut: bool) -> None:
    more = "; there are more: --limit N shows N of them, --limit 0 all" if is_cut else ""
    invocation.note(f"{counted(n_rows, 'row')}{more}")
