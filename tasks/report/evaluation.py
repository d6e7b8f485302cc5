"""Figures of an evaluation as tables and sentences, for every word: what is measured is declared key by key, plain
baselines stand beside, and what is better than ours is named."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from tasks.quantities import MISSING
from tasks.report.result import NOTHING, Cell, Column, Row, Table, cell_table, sentence

Show = Callable[[Any], str]
Figures = Mapping[str, Any]
Measures = Mapping[str, tuple[str, Show]]  # by key: name with its unit, how values are written
Name = TypeVar("Name", bound=Hashable)
REASON = ".reason"  # beside the key of a figure that cannot be had
DECIMALS = 2  # what is equal in so many is level


def cell_of(figures: Figures, key: str, show: Show) -> Cell:
    """A figure, with its interval below it."""
    value = figures.get(key)
    if value is None:
        return NOTHING
    low, high = (show(figures.get(f"{key}.{end}")) for end in ("low", "high"))
    return Cell(show(float(value)), () if low == MISSING else (f"{low} to {high}",), value=float(value))


def matrix(
    figures: Figures,
    first: str,
    rows: Mapping[Name, str | tuple[str, str]],
    columns: Measures,
    key: Callable[[Name, str], str],
    *,
    title: str = "",
    words: str = "",
    sort_by: str | None = None,
    is_least: bool = False,
    is_marked: bool = False,
    aside: Name | None = None,
) -> Table:
    """A row a name (and what stands below it) that has any figure, a column a measure; key: of a cell.

    sort_by: the measure whose best stands on top; is_least: less is better; is_marked: the best of each column stands
    out; aside: a row that stands last and is never the best."""
    cells = {name: [cell_of(figures, key(name, one), show) for one, (_, show) in columns.items()] for name in rows}
    cells = {name: found for name, found in cells.items() if any(cell != NOTHING for cell in found)}
    sign = 1.0 if is_least else -1.0
    order = list(columns)

    def place(name: Name) -> tuple[bool, bool, float]:
        value = cells[name][order.index(str(sort_by))].value
        return name == aside, value is None, sign * (value or 0.0)

    names = sorted(cells, key=place) if sort_by is not None else list(cells)
    best = [
        min((sign * cell.value, cell.text) for cell in column if cell.value is not None)[1]
        if any(cell.value is not None for cell in column)
        else None
        for column in zip(*(cells[name] for name in names if name != aside), strict=True)
    ]
    shown = []
    for name in names:
        head, below = pair if isinstance(pair := rows[name], tuple) else (pair, "")
        marked = (
            Cell(one.text, one.notes, is_marked and name != aside and one.text == top, one.value)
            for one, top in zip(cells[name], best or [None] * len(order), strict=True)
        )
        shown.append(Row(head, tuple(marked), below))
    return cell_table(first, [head for head, _ in columns.values()], shown, title, words)


def listed(figures: Figures, measures: Measures) -> list[dict[str, str]]:
    """A row a figure that was asked for: words, and value or why there is none."""

    def told(key: str, show: Show) -> str:
        value = figures[key]
        return show(float(value)) if value is not None else sentence(figures.get(f"{key}{REASON}") or "not measured")

    return [{"words": words, "value": told(key, show)} for key, (words, show) in measures.items() if key in figures]


def list_table(rows: list[dict[str, str]]) -> Table:
    """Rows of `listed`."""
    return Table("", "", (Column("words", "figure"), Column("value", "value")), rows)


def reasons(figures: Figures, *parts: str) -> list[str]:
    """Why figures of these parts cannot be had, each reason once."""
    told = [value for key, value in figures.items() if key.endswith(REASON) and key.startswith(parts) and value]
    return [sentence(reason) for reason in dict.fromkeys(told)]


def better_line(what: str, ours: Any, others: Mapping[str, Any], show: Show) -> list[str]:
    """One line that names which others are better, the best first; none where nobody is. others: by name."""
    known = {name: value for name, value in others.items() if value is not None}
    better = sorted((name for name in known if ours is not None and gap(known[name], ours) > 0), key=known.__getitem__)
    rivals = ", ".join(f"{name} {show(known[name])}" for name in reversed(better))
    return [f"{what}: {show(ours)}; better: {rivals}"] if rivals else []


def gap(ours: float, theirs: float) -> float:
    """The difference in so many decimals as are shown."""
    return round(ours - theirs, DECIMALS) or 0.0
