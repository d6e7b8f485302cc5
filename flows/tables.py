"""Tables for people: as wide as the terminal, whole where nobody looks at a terminal.

Rich knows the terminal; the rows are put together here, since rich takes half a second for a thousand of them."""

import logging
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

from flows.shown import clean, shorten, text

if TYPE_CHECKING:
    from rich.console import Console

logger = logging.getLogger(__name__)
GAP = "  "  # between two columns
LEAST_KEY = 10  # a shortened key keeps at least so many characters
LEAST_TEXT = 20  # wrapped text is at least so wide
UNLIMITED = 10_000
PIPED = 100  # of what is read by people alone, also where nobody looks at a terminal

Kind = Literal["text", "key", "name", "number"]
Painter = Callable[[str, str], str]


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


def show_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], *, piped_width: int = UNLIMITED) -> None:
    """Print rows under the titles of the columns. Which columns a terminal has no room for is said on stderr."""
    console = stdout_console()
    paint = _painter(console)
    cells = {column.key: [column.show(row.get(column.key)) for row in rows] for column in columns}
    width = min(console.width, UNLIMITED if is_limited() else piped_width)
    widths = fitted(columns, cells, width)
    chosen = [column for column in columns if column.key in widths]
    if gone := [column.title for column in columns if column.key not in widths]:
        logger.warning("left out at a width of %d: %s (--json has all)", width, ", ".join(gone))
    titles = [_lines(column, clean(column.title), widths[column.key]) for column in chosen]
    bold = ["bold"] * len(chosen)
    for line in _beside(chosen, titles, widths, bold, paint):
        print(line)
    for at, row in enumerate(rows):
        styles = [column.style(row.get(column.key)) if column.style else "" for column in chosen]
        parts = [_lines(column, cells[column.key][at], widths[column.key]) for column in chosen]
        for line in _beside(chosen, parts, widths, styles, paint):
            print(line)


def show_facts(facts: Mapping[str, str]) -> None:
    """Print names and values below each other."""
    columns = (Column("name", "", kind="name"), Column("value", ""))
    console = stdout_console()
    paint = _painter(console)
    cells = {"name": [clean(name) for name in facts], "value": [clean(value) for value in facts.values()]}
    widths = fitted(columns, cells, console.width)
    for name, value in zip(cells["name"], cells["value"], strict=True):
        parts = [[name], _lines(columns[1], value, widths["value"])]
        for line in _beside(columns, parts, widths, ["dim", ""], paint):
            print(line)


def fitted(columns: Sequence[Column], cells: Mapping[str, Sequence[str]], width: int) -> dict[str, int]:
    """The widths of the columns that fit into `width`.

    The titles of numbers are broken first, then extras go, keys shrink, and text is wrapped at last."""
    found = {column.key: _natural([column.title, *cells[column.key]]) for column in columns}
    if _total(found) > width:
        numbers = [column for column in columns if column.kind == "number"]
        found |= {column.key: _natural([*column.title.split(), *cells[column.key]]) for column in numbers}
    for column in reversed([column for column in columns if column.is_extra]):
        if _total(found) > width:
            del found[column.key]
    for kind, least in (("key", LEAST_KEY), ("text", LEAST_TEXT)):
        elastic = [column.key for column in columns if column.kind == kind and column.key in found]
        while _total(found) > width and (wide := [key for key in elastic if found[key] > least]):
            found[max(wide, key=lambda key: found[key])] -= 1
    return found


def stdout_console() -> "Console":
    """The console of results: the terminal's width, or no limit where the output goes to a file or a program."""
    from rich.console import Console

    return Console() if is_limited() else Console(width=UNLIMITED)


def is_limited() -> bool:
    """Whether somebody looks at the output on a terminal."""
    return sys.stdout.isatty() or "COLUMNS" in os.environ


def _natural(lines: Sequence[str]) -> int:
    """The width that shows every line whole."""
    return max(map(_width, lines), default=0)


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1)


def _width(line: str) -> int:
    """Columns of a terminal that the line takes; some letters take two."""
    if line.isascii():
        return len(line)
    from rich.cells import cell_len

    return cell_len(line)


def _lines(column: Column, cell: str, width: int) -> list[str]:
    if column.kind == "key":
        return [shorten(cell, width)]
    return [cell] if _width(cell) <= width else textwrap.wrap(cell, width)


def _beside(
    columns: Sequence[Column],
    parts: Sequence[list[str]],
    widths: Mapping[str, int],
    styles: Sequence[str],
    paint: Painter,
) -> Iterator[str]:
    """The lines of one row: the lines of its cells side by side."""
    for cells in zip_longest(*parts, fillvalue=""):
        padded = [
            " " * (widths[column.key] - _width(cell)) + cell
            if column.kind == "number"
            else cell + " " * (widths[column.key] - _width(cell))
            for column, cell in zip(columns, cells, strict=True)
        ]
        padded[-1] = padded[-1].rstrip()
        yield GAP.join(paint(*pair) for pair in zip(padded, styles, strict=True)).rstrip()


def _painter(console: "Console") -> Painter:
    """What puts a style around a text: nothing without a terminal; with NO_COLOR only what is no colour."""
    if console.color_system is None:
        return lambda line, _: line
    from rich.color import ColorSystem
    from rich.style import Style

    def paint(line: str, style: str) -> str:
        parsed = Style.parse(style)
        return (parsed.without_color if console.no_color else parsed).render(line, color_system=ColorSystem.STANDARD)

    return paint
