"""Tables for people: as wide as the terminal, whole where nobody looks at a terminal."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from flows.shown import clean, shorten, text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

GAP = 2  # blanks between two columns
LEAST_KEY = 16  # a shortened key keeps at least so many characters
LEAST_TEXT = 20  # wrapped text is at least so wide
UNLIMITED = 10_000

Kind = Literal["text", "key", "name", "number"]


@dataclass(frozen=True)
class Column:
    """One column of a table.

    kind: text is wrapped, a key is shortened in its middle, a name and a number (to the right) are never cut.
    is_extra: left out where there is no room for it. style: the colour of a value, as rich names it."""

    key: str
    title: str
    show: Callable[[Any], str] = text
    kind: Kind = "text"
    is_extra: bool = False
    style: Callable[[Any], str] | None = None


def show_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> None:
    """Print rows under the titles of the columns."""
    console = stdout_console()
    cells = {column.key: [column.show(row.get(column.key)) for row in rows] for column in columns}
    widths = fitted(columns, cells, console.width)
    table = _empty_table(shows_header=True)
    chosen = [column for column in columns if column.key in widths]
    for column in chosen:
        is_number = column.kind == "number"
        table.add_column(
            _plain_text(clean(column.title)),
            justify="right" if is_number else "left",
            width=widths[column.key],
            no_wrap=column.kind in ("key", "name"),
        )
    for at, row in enumerate(rows):
        table.add_row(*[_cell(column, cells[column.key][at], row, widths[column.key]) for column in chosen])
    _print(console, table)


def show_facts(facts: Mapping[str, str]) -> None:
    """Print names and values below each other."""
    console = stdout_console()
    table = _empty_table(shows_header=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(_plain_text(clean(name)), _plain_text(clean(value)))
    _print(console, table)


def fitted(columns: Sequence[Column], cells: Mapping[str, Sequence[str]], width: int) -> dict[str, int]:
    """The widths of the columns that fit into `width`: extras go first, then keys shrink, then text is wrapped."""
    from rich.cells import cell_len

    natural = {
        column.key: max([cell_len(part) for part in column.title.split()] + [cell_len(c) for c in cells[column.key]])
        if column.kind == "number"
        else max(cell_len(part) for part in [column.title, *cells[column.key]])
        for column in columns
    }
    for column in reversed([column for column in columns if column.is_extra]):
        if _total(natural) > width:
            del natural[column.key]
    for kind, least in (("key", LEAST_KEY), ("text", LEAST_TEXT)):
        elastic = [column.key for column in columns if column.kind == kind and natural.get(column.key, 0) > least]
        while _total(natural) > width and (wide := [key for key in elastic if natural[key] > least]):
            natural[max(wide, key=lambda key: natural[key])] -= 1
    return natural


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + GAP * (len(widths) - 1)


def stdout_console() -> "Console":
    """The console of results: the terminal's width, or no limit where the output goes to a file or a program."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(highlight=False, width=UNLIMITED)


def _empty_table(*, shows_header: bool) -> "Table":
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=shows_header, header_style="bold")


def _cell(column: Column, cell: str, row: Mapping[str, Any], width: int) -> Any:
    shown = shorten(cell, width) if column.kind == "key" else cell
    return _plain_text(shown, column.style(row.get(column.key)) if column.style else "")


def _plain_text(line: str, style: str = "") -> Any:
    from rich.text import Text

    return Text(line, style=style)  # Text, not str: brackets in the name of a job are no markup


def _print(console: "Console", table: "Table") -> None:
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        print(line.rstrip(), file=sys.stdout)
