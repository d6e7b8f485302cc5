"""A result described once: the answer, how sure it is, why, what it rests on, and the tables and figures behind it.

Terminal, JSON, Prefect artifact and web page are renderings of the same description. Light: pandas and charts are
imported when a rendering asks for them."""

import base64
import re
import shlex
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from tasks.quantities import MISSING, digits, duration, is_missing, number, plain, ratio, share

if TYPE_CHECKING:
    import pandas as pd

    from tasks.report.charts import Chart

State = Literal["good", "look", "unknown"]
Kind = Literal["text", "key", "name", "number"]
LINE_CHARS, SENTENCE_CHARS = 160, 600
MARKDOWN_ROWS = 50
SAFE = "!'()*~"  # in addresses, as encodeURIComponent leaves them
MOST_PNG_BYTES = 100_000  # Prefect's page grows slow above


def times(value: float) -> str:
    """A factor: 1.20 ×."""
    return f"{ratio(value)} ×"


def one_line(text: Any, limit: int = LINE_CHARS) -> str:
    """A name from a log as one line: control characters gone, long ones cut in the middle."""
    clean = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in str(text)).strip() or "(no name)"
    if len(clean) <= limit:
        return clean
    half = (limit - 1) // 2
    return f"{clean[:half]}…{clean[-half:]}"


def sentence(text: Any) -> str:
    """Words from elsewhere on one line."""
    return one_line(text, SENTENCE_CHARS)


def command(*words: object) -> str:
    """A command as it is pasted into a shell, marked in a sentence by backticks."""
    return f"`{shlex.join(map(str, words))}`"


def spoken(text: str) -> list[tuple[str, bool]]:
    """The parts of a sentence, and whether each is a command: what stands in backticks."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # the last backtick stands for itself
        parts[-2:] = ["`".join(parts[-2:])]
    return [(part, at % 2 == 1) for at, part in enumerate(parts) if part]


def prose(text: str) -> str:
    """A sentence in markdown, its commands as code; nothing in it is read as markup."""
    return "".join(f"`{part}`" if is_command else _spaced(part) for part, is_command in spoken(text))


def _spaced(part: str) -> str:
    """Escaped, with the spaces at its ends, which `plain` takes off."""
    return f"{part[: len(part) - len(part.lstrip())]}{plain(part)}{part[len(part.rstrip()) :] if part.strip() else ''}"


def as_text(value: Any) -> str:
    """Any value in a cell: a dash for a missing one, yes and no for a claim, what a list holds."""
    if isinstance(value, list | tuple):
        return sentence(", ".join(map(str, value))) if value else "none"
    if is_missing(value):
        return MISSING
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else sentence(value) if value != "" else ""


def count(value: Any) -> str:
    """A whole number with thousands separators; a dash for a missing one."""
    return MISSING if is_missing(value) else f"{value:,.0f}"


def moment(value: Any) -> str:
    """Day and minute, as people write them: 1993-10-01 14:35."""
    return MISSING if is_missing(value) else f"{value:%Y-%m-%d %H:%M}"


QUANTITIES = (count, digits, duration, number, ratio, share, times)  # how columns of numbers are written


@dataclass(frozen=True)
class Cell:
    """A value with lines in small below it. is_marked: it stands out; value: what it is sorted by."""

    text: str
    notes: tuple[str, ...] = ()
    is_marked: bool = False
    value: float | None = None

    @property
    def line(self) -> str:
        """The cell on one line, where there is nothing small."""
        return f"{self.text} ({'; '.join(self.notes)})" if self.notes else self.text


NOTHING = Cell(MISSING)


@dataclass(frozen=True)
class Column:
    """A column of a table: its key in the rows, its title, how its values are written, and what they mean.

    kind: in a terminal text is wrapped, a key is shortened in its middle, a name and a number (to the right) are never
    cut. link: what stands before the value in the address that a name leads to. is_extra: a terminal leaves it out
    where there is no room; style: the colour of a value there, as rich names it."""

    key: str
    title: str
    show: Callable[[Any], str] = as_text
    kind: Kind = "text"
    meaning: str = ""
    link: str = ""
    is_extra: bool = False
    style: Callable[[Any], str] | None = None

    @property
    def is_number(self) -> bool:
        """Whether the values stand to the right and are sorted by size."""
        return self.kind == "number"

    def text(self, row: Mapping[str, Any]) -> str:
        """The value of a row as it is written, on one line."""
        value = row.get(self.key)
        return value.line if isinstance(value, Cell) else self.show(value)

    def address(self, row: Mapping[str, Any]) -> str | None:
        """Where the value of a row leads, relative to the site; None: nowhere."""
        value, href = row.get(self.key), row.get(f"{self.key}.href")
        return self.link + quote(str(value), safe=SAFE) if self.link and href is None and value is not None else href


Described = Column | tuple[str, str] | tuple[str, str, Callable[[Any], str] | Kind]


def columns(*described: Described) -> tuple[Column, ...]:
    """Columns from key, title and how values are written, or what kind they are; those of quantities are numbers."""
    return tuple(column if isinstance(column, Column) else _column(*column) for column in described)


def extra(*described: Described) -> tuple[Column, ...]:
    """Columns that a terminal leaves out where there is no room for them."""
    return tuple(replace(column, is_extra=True) for column in columns(*described))


def item_href(page: str, key: object) -> str:
    """Where an item is on the page of items."""
    return f"{page}#{quote(str(key), safe=SAFE)}"


def _column(key: str, title: str, how: Callable[[Any], str] | Kind = as_text) -> Column:
    if isinstance(how, str):
        return Column(key, title, kind=how)
    return Column(key, title, how, kind="number" if how in QUANTITIES else "text")


@dataclass(frozen=True)
class Table:
    """Rows with their columns and the words that say what they are.

    name: of a list that pages make searchable; more: what of a longer table is left out, and where all of it is."""

    title: str
    words: str
    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, Any]]
    name: str = ""
    more: str = ""

    def cells(self) -> list[list[str]]:
        """The rows as they are written."""
        return [[column.text(row) for column in self.columns] for row in self.rows]


def table(
    rows: Sequence[Mapping[str, Any]],
    *shown: Described,
    title: str = "",
    words: str = "",
    name: str = "",
    more: str = "",
) -> Table:
    """Rows by the columns that are shown of them."""
    return Table(title, words, columns(*shown), rows, name, more)


def cell_table(
    first: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]], title: str = "", words: str = ""
) -> Table:
    """A table of rows of cells, of which the first is the name of the row. first: what the names are."""
    shown = columns(("name", first), *((str(at), one_line(head), "number") for at, head in enumerate(heads)))
    return Table(
        title, words, shown, [{column.key: cell for column, cell in zip(shown, row, strict=True)} for row in rows]
    )


@dataclass(frozen=True)
class Figure:
    """A chart with its words. evidence: what it stands for, with its n; chart: makes the one declarative chart, None
    where `words` says why there is nothing to draw, or where many pages use one chart (`use`), each with rows of
    its own, by columns."""

    name: str
    title: str
    words: str
    evidence: str
    chart: Callable[[], "Chart"] | None = None
    use: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()

    def png(self) -> bytes:
        """The chart as an image; empty where there is nothing to draw."""
        from tasks.report import charts

        return charts.to_png(charts.spec_of(self.chart())) if self.chart else b""


def plot(
    name: str,
    title: str,
    words: str,
    evidence: str,
    chart: Callable[..., "Chart"],
    rows: "pd.DataFrame | None",
    /,
    *axes: Any,
    nothing: str = "",
    **options: Any,
) -> Figure:
    """A figure of rows by a kind of chart, its axes and options; without rows the words that say why there is none."""
    if rows is None or not len(rows):
        return Figure(name, title, nothing, "n = 0")
    return Figure(name, title, words, evidence, partial(chart, rows, *axes, **options))


@dataclass(frozen=True)
class Fact:
    """One number of a result: the measure that it is of, its value, and what it says. Equal keys print equally."""

    key: str
    value: Any
    words: str
    show: Callable[[Any], str] = as_text

    @property
    def text(self) -> str:
        """The value as it is written."""
        return self.show(self.value)


@dataclass(frozen=True)
class Section:
    """A part of a result. evidence: n, data version and model of all in it; lines: a list of sentences; nothing: why
    it is empty, and the command that fills it."""

    title: str
    words: str = ""
    evidence: str = ""
    lines: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    nothing: str = ""
    is_open: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it, for which `nothing` stands."""
        return bool(self.nothing) and not (self.lines or self.figures or self.has_rows)

    @property
    def has_rows(self) -> bool:
        """Whether any of its tables has."""
        return any(len(shown.rows) for shown in self.tables)

    @property
    def is_idle(self) -> bool:
        """Whether it is about tables of which none has rows, so that pages leave it out."""
        return bool(self.tables) and not (self.has_rows or self.lines or self.figures or self.nothing)


def alone(figure: Figure, evidence: str = "", fill: str = "", *, is_open: bool = False) -> Section:
    """A figure as a section of its own; one that shows nothing says why, and what fills it."""
    if figure.chart is None and not figure.use:
        return Section(figure.title, nothing=figure.words + fill)
    return Section(figure.title, evidence=evidence, figures=(figure,), is_open=is_open)


@dataclass(frozen=True)
class Result:
    """An answer. certainty: how sure; reasons: why; notices: what a reader must know first (simulated, older data);
    made_of: data, model and prices; again: the command that asks again; action: what to do, with its command."""

    title: str
    answer: str
    certainty: str = ""
    reasons: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    made_of: str = ""
    again: str = ""
    facts: tuple[Fact, ...] = ()
    notices: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    action: str = ""
    state: State = "unknown"
    method: str = ""

    @property
    def parts(self) -> tuple[Section, ...]:
        """All tables and figures in sections: those that stand alone each make one; idle ones are left out."""
        alone = [
            Section(part.title, part.words, figures=(replace(part, words=""),), is_open=True) for part in self.figures
        ]
        alone += [
            Section(part.title, part.words, tables=(replace(part, title="", words=""),), is_open=True)
            for part in self.tables
            if len(part.rows)
        ]
        return (*alone, *(part for part in self.sections if not part.is_idle))


def slug(title: str) -> str:
    """A title as the name of a place on a page."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "part"


def records(frame: "pd.DataFrame") -> list[dict[str, Any]]:
    """The rows of a frame, by column."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def as_markdown(result: Result, *, only: Sequence[str] = (), pictures: Sequence[str] = (), site: str = "") -> str:
    """The result as an artifact; nothing from a file is read as markup.

    only: titles of the sections that are shown, none: all; pictures: names of the figures that are drawn; site: address
    of the pages that names lead to, none: they lead nowhere."""
    parts = [f"# {plain(result.title)}", f"**{plain(result.answer)}**", plain(result.certainty)]
    parts += [f"**{prose(line)}**" for line in result.notices]
    parts.append("\n".join(f"- {plain(reason)}" for reason in result.reasons))
    parts.append("\n".join(f"- {plain(fact.text)} {plain(fact.words)}" for fact in result.facts))
    for part in result.parts:
        if not only or part.title in only:
            parts.append(section_markdown(part, pictures, site))
    parts += [prose(result.action), f"*{plain(result.made_of)}*" if result.made_of else ""]
    return "\n\n".join(part for part in parts if part) + "\n"


def section_markdown(part: Section, pictures: Sequence[str] = (), site: str = "") -> str:
    """One section, with the figures that `pictures` names drawn inside."""
    parts = [f"## {plain(part.title)}", prose(part.nothing if part.is_empty else part.words)]
    parts.append("\n".join(f"- {plain(line)}" for line in part.lines))
    for shown in part.tables:
        if len(shown.rows):
            title = f"### {plain(shown.title)}" if shown.title and shown.title != part.title else ""
            parts += [title, plain(shown.words), table_markdown(shown, site)]
    for drawn in part.figures:
        is_drawn, level = drawn.name in pictures, 0 if drawn.title == part.title else 3
        parts.append(figure_markdown(drawn, is_drawn=is_drawn, level=level))
    if part.evidence:
        parts.append(f"*{plain(part.evidence)}*")
    return "\n\n".join(text for text in parts if text)


def figure_markdown(figure: Figure, *, is_drawn: bool, level: int) -> str:
    """Title, words and image of a figure, and what it stands for. level: of its heading, 0: none.

    A figure that there is nothing to draw of keeps its title and words, and so does one whose image is too large."""
    parts = [f"{'#' * level} {plain(figure.title)}" if level else "", plain(figure.words)]
    png = figure.png() if is_drawn else b""
    if 0 < len(png) < MOST_PNG_BYTES:
        drawn = base64.b64encode(png).decode("ascii")  # an address that needs no request
        parts.append(f"![{plain(figure.title)}](data:image/png;base64,{drawn})")
    return "\n\n".join(part for part in (*parts, f"*{plain(figure.evidence)}*" if figure.evidence else "") if part)


def table_markdown(table: Table, site: str = "") -> str:
    """A table in markdown, at most MARKDOWN_ROWS of it; how many more there are is said. site: where links lead."""
    header = [plain(column.title) for column in table.columns]
    rule = ["---:" if column.is_number else "---" for column in table.columns]
    lines = [
        header,
        rule,
        *([_linked(shown, row, site) for shown in table.columns] for row in table.rows[:MARKDOWN_ROWS]),
    ]
    more = len(table.rows) - MARKDOWN_ROWS
    rest = f"\n\n{more:,} more are in the warehouse." if more > 0 else ""
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + rest


def _linked(column: Column, row: Mapping[str, Any], site: str) -> str:
    """A value in markdown, with the address that it leads to."""
    text, href = plain(column.text(row)), column.address(row) if site else None
    return text if href is None else f"[{text}]({markdown_address(site, href)})"


def markdown_address(site: str, href: str) -> str:
    """The address of a page in brackets of markdown, which a bracket in it would end."""
    return f"{site}/{href}".replace("(", "%28").replace(")", "%29")
