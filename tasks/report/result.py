"""A result described once: the sentence that answers, how sure, why, and the tables and figures that it rests on.

Terminal, JSON, Prefect artifact and page are renderings of the same description."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup
from matplotlib.figure import Figure as Drawing

from tasks.markdown import plain
from tasks.quantities import MISSING
from tasks.report.images import to_svg
from tasks.report.page import render, write_page
from tasks.report.style import NARROW_IN, WIDE_IN
from tasks.warehouse.versions import code_version


def as_text(value: Any) -> str:
    """Any value in a cell: a dash for a missing one, yes and no for a claim."""
    if value is None or value != value:
        return MISSING
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Column:
    """A column of a table: its key in the rows, its title, and how its values are written."""

    key: str
    title: str
    show: Callable[[Any], str] = as_text
    is_number: bool = False


@dataclass(frozen=True)
class Table:
    """Rows with their columns and the words that say what they are."""

    title: str
    words: str
    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, Any]]

    def cells(self) -> list[list[str]]:
        """The rows as they are written."""
        return [[column.show(row.get(column.key)) for column in self.columns] for row in self.rows]


@dataclass(frozen=True)
class Figure:
    """A figure with its words; draw: makes it at a width in inches. evidence: what it stands for, with its n."""

    name: str
    title: str
    words: str
    evidence: str
    draw: Callable[[float], Drawing]


@dataclass(frozen=True)
class Result:
    """An answer. certainty: how sure; reasons: why; made_of: data and prices; again: the command that asks again."""

    title: str
    answer: str
    certainty: str = ""
    reasons: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    made_of: str = ""
    again: str = ""


def as_markdown(result: Result) -> str:
    """The result as an artifact; nothing from a file is read as markup."""
    parts = [f"**{plain(result.answer)}**", plain(result.certainty)]
    parts.append("\n".join(f"- {plain(reason)}" for reason in result.reasons))
    for table in result.tables:
        header = [plain(column.title) for column in table.columns]
        rule = ["---:" if column.is_number else "---" for column in table.columns]
        lines = [header, rule, *([plain(cell) for cell in row] for row in table.cells())]
        rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts += [f"### {plain(table.title)}", plain(table.words), rows]
    parts.append(plain(result.made_of))
    return "\n\n".join(part for part in parts if part)


@dataclass(frozen=True)
class _Drawn:
    """A figure as a template shows it, for a screen and for a phone."""

    title: str
    words: str
    evidence: str
    wide: Markup
    narrow: Markup


def write_result(folder: Path, name: str, result: Result) -> Path:
    """Write <folder>/<name>.html, whole or not at all, and return its path."""
    figures = [
        _Drawn(
            one.title,
            one.words,
            one.evidence,
            *(
                to_svg(one.draw(width), f"{one.name}-{size}", f"{one.title}; {one.evidence}")
                for size, width in (("wide", WIDE_IN), ("narrow", NARROW_IN))
            ),
        )
        for one in result.figures
    ]
    values = {"result": result, "figures": figures, "code_version": f"whorl {code_version()}"}
    return write_page(folder, name, render("result.html", values))
