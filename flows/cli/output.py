"""What commands print: values and tables for people, one JSON object for machines.

Rich knows the terminal; the rows are put together here, since rich takes half a second for a thousand of them."""

import dataclasses
import json
import logging
import math
import os
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from tasks.quantities import LEFT_OUT, MISSING, counted, is_missing, number, utc_text
from tasks.report.result import Column, Table, as_text

if TYPE_CHECKING:
    from rich.console import Console

UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"


def runs_or_windows(n: Any, n_windows: Any) -> str:
    """What so many traces are, n_windows of them cut from longer runs: 12 runs, 84 windows, 90 runs and windows."""
    n, n_windows = int(n or 0), int(n_windows or 0)
    return counted(n, "run" if not n_windows else "window" if n_windows == n else "runs and window")


def figure(value: Any) -> str:
    """A number of a table that may hold numbers and texts."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return number(value) if is_number else as_text(value)


def setting(value: Any) -> str:
    """The value of a setting or parameter, so that one that is empty can be seen."""
    if isinstance(value, dict | list | tuple) and not value:
        return "none"
    return as_text(value) if value != "" else "''"


def moment(value: Any) -> str:
    """A time to the second; the column's title says that it is UTC."""
    return MISSING if is_missing(value) else f"{value:%Y-%m-%d %H:%M:%S}"


def clean(line: str) -> str:
    """Without control characters: the name of a job must not move the cursor of a terminal or break a line."""
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else " " if char.isspace() else UNPRINTABLE for char in line)


def as_command(*words: object) -> str:
    """The words as a command that can be pasted into a shell."""
    return shlex.join(map(str, words))


def shorten(key: str, width: int) -> str:
    """The key with its middle left out: the two ends of a job's key tell it from its neighbours."""
    if len(key) <= width:
        return key
    head = width // 2
    return f"{key[:head]}{LEFT_OUT}{key[len(key) - (width - head - 1) :]}"


logger = logging.getLogger(__name__)
GAP = "  "  # between two columns
INDENT = "  "  # of what a sentence goes on with
LEAST_KEY = 10  # a shortened key keeps at least so many characters
LEAST_TEXT, NARROW_TEXT = 20, 12  # wrapped text is at least so wide; before a column is left out
UNLIMITED = 10_000
PIPED = 100  # of what is read by people alone, also where nobody looks at a terminal

FACTS = (Column("name", "", clean, kind="name", style=lambda _: "dim"), Column("value", "", clean))
Painter = Callable[[str, str], str]


def show_table(rows: Sequence[Mapping[str, Any]], shown: Sequence[Column], *, piped_width: int = UNLIMITED) -> None:
    """Print rows under the titles of the columns. Which columns a terminal has no room for is said on stderr."""
    console = stdout_console()
    paint = _painter(console)
    cells = {column.key: [column.text(row) for row in rows] for column in shown}
    width = min(console.width, UNLIMITED if is_limited() else piped_width)
    widths = fitted(shown, cells, width)
    columns = [column for column in shown if column.key in widths]
    if gone := [column.title for column in shown if column.key not in widths]:
        logger.warning("left out at a width of %d: %s (--json has all)", width, ", ".join(gone))
    if any(column.title for column in columns):
        titles = [_lines(column, clean(column.title), widths[column.key]) for column in columns]
        for line in _beside(columns, titles, widths, ["bold"] * len(columns), paint):
            print(line)
    for at, row in enumerate(rows):
        styles = [column.style(row.get(column.key)) if column.style else "" for column in columns]
        parts = [_lines(column, cells[column.key][at], widths[column.key]) for column in columns]
        for line in _beside(columns, parts, widths, styles, paint):
            print(line)


def say(*lines: str) -> None:
    """Print sentences, each on a line of its own, which a terminal wraps between words."""
    for line in map(clean, lines):
        if is_limited():
            width = stdout_console().width
            line = textwrap.fill(line, width, subsequent_indent=INDENT, break_on_hyphens=False, break_long_words=False)
        print(line)


def show_described(table: Table) -> None:
    """Print a table as reports describe it."""
    show_table(table.rows, table.columns)


def show_lines(title: str, lines: Sequence[str]) -> None:
    """Print sentences below a title, if there are any."""
    if lines:
        say("", title, *(f"- {line}" for line in lines))


def show_facts(facts: Mapping[str, str]) -> None:
    """Print names and values below each other."""
    show_table([{"name": name, "value": value} for name, value in facts.items()], FACTS)


def fitted(columns: Sequence[Column], cells: Mapping[str, Sequence[str]], width: int) -> dict[str, int]:
    """The widths of the columns that fit into `width`.

    Titles of numbers and names are broken first, then extras go, keys shrink, text is wrapped, names between their
    words, and text to few letters. Where that is not enough, columns go from the last on; the first stays."""
    widths = {column.key: _natural([column.title, *cells[column.key]]) for column in columns}
    if _total(widths) > width:
        rigid = [column for column in columns if column.kind in ("number", "name")]
        widths |= {column.key: _natural([*column.title.split(), *cells[column.key]]) for column in rigid}
    for column in reversed([column for column in columns if column.is_extra]):
        if _total(widths) > width:
            del widths[column.key]
    words = {
        column.key: [word for text in (column.title, *cells[column.key]) for word in text.split()] for column in columns
    }
    for kind, least in (("key", LEAST_KEY), ("text", LEAST_TEXT), ("name", 0), ("text", NARROW_TEXT)):
        elastic = {column.key: least or _natural(words[column.key]) for column in columns if column.kind == kind}
        while _total(widths) > width and (wide := [key for key in widths if widths[key] > elastic.get(key, UNLIMITED)]):
            widths[max(wide, key=lambda key: widths[key])] -= 1
    if _total(widths) > width and len(widths) > 1:
        return fitted([column for column in columns if column.key in widths][:-1], cells, width)
    return widths


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
    return [cell] if _width(cell) <= width else textwrap.wrap(cell, width, break_on_hyphens=column.kind != "name")


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


_n_printed = 0


def printed() -> int:
    """How many objects this process has printed, or begun to."""
    return _n_printed


def _count_printed() -> None:
    global _n_printed  # stdout is one for the process, and so is what was written to it
    _n_printed += 1


def show_json(value: Any) -> None:
    """Print one object of dicts, lists, dataclasses, parameter models, numbers, texts and times."""
    _count_printed()
    json.dump(plain(value), sys.stdout, indent=1, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def show_rows(rows: Iterable[dict[str, Any]]) -> None:
    """Print rows as the list of an object, row by row: a million of them fit into memory."""
    _count_printed()
    first = True
    sys.stdout.write('{"rows": [')
    for row in rows:
        sys.stdout.write("\n " if first else ",\n ")
        sys.stdout.write(_line(row))
        first = False
    sys.stdout.write("]}\n" if first else "\n]}\n")


def _line(row: dict[str, Any]) -> str:
    try:
        return json.dumps(row, default=plain, ensure_ascii=False, allow_nan=False)
    except ValueError:  # it has a NaN
        return json.dumps(plain(row), ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """The value in JSON's own types. Times without a zone are UTC in all of whorl and get a Z."""
    if hasattr(value, "model_dump"):  # a parameter model; pydantic is not imported for its name alone
        value = value.model_dump()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(inner) for inner in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if hasattr(value, "item") and not isinstance(value, datetime | date):  # a numpy number
        return plain(value.item())
    return _number_or_text(value)


def _number_or_text(value: Any) -> Any:
    if isinstance(value, float | Decimal):
        is_whole = isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value()
        return (int(value) if is_whole else float(value)) if math.isfinite(value) else None
    if value != value:  # NaT
        return
    if isinstance(value, datetime):
        return utc_text(value)
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, date) else str(value)
