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
    words: str = "",
) -> Table:
    """A row a name (and what stands below it) and a column a measure, of those that have any figure; key: of a
    cell."""
    cells = {name: [cell_of(figures, key(name, one), show) for one, (_, show) in columns.items()] for name in rows}
    heads = [head for head, _ in columns.values()]
    kept = [at for at in range(len(heads)) if any(row[at] != NOTHING for row in cells.values())]
    shown = [
        Row(head, tuple(cells[name][at] for at in kept), below)
        for name, told in rows.items()
        for head, below in [told if isinstance(told, tuple) else (told, "")]
        if any(cell != NOTHING for cell in cells[name])
    ]
    return cell_table(first, [heads[at] for at in kept], shown, words=words)


def list_table(figures: Figures, measures: Measures) -> Table:
    """A row a figure that was asked for: words, and value or why there is none."""
    rows = [
        {"words": words, "value": sentence(figures.get(f"{key}{REASON}") or "not measured")}
        | ({"value": show(float(figures[key]))} if figures[key] is not None else {})
        for key, (words, show) in measures.items()
        if key in figures
    ]
    return Table("", "", (Column("words", "figure"), Column("value", "value")), rows)


def reasons(figures: Figures, part: str, most: int = 3) -> str:
    """Why figures of a part cannot be had, each reason once."""
    told = [value for key, value in figures.items() if key.endswith(REASON) and key.startswith(part) and value]
    return "; ".join(sentence(reason) for reason in list(dict.fromkeys(told))[:most])


def missing_lines(figures: Figures, *parts: str) -> list[str]:
    """What could not be measured of these parts, and why: one line a reason, with its first key."""
    found: dict[str, list[str]] = {}
    for key, reason in figures.items():
        if key.endswith(REASON) and key.startswith(parts) and reason:
            found.setdefault(sentence(reason), []).append(key.removesuffix(REASON))
    return [
        f"not measured: {keys[0]}{f' and {len(keys) - 1:,} more' if keys[1:] else ''}: {reason}"
        for reason, keys in found.items()
    ]


def better_line(what: str, ours: Any, others: Mapping[str, Any], show: Show) -> list[str]:
    """One line that names which others are better, the best first; none where nobody is. others: by name."""
    known = {name: value for name, value in others.items() if value is not None}
    better = sorted((name for name in known if ours is not None and gap(known[name], ours) > 0), key=known.__getitem__)
    rivals = ", ".join(f"{name} {show(known[name])}" for name in reversed(better))
    return [f"{what}: {show(ours)}; better: {rivals}"] if rivals else []


def gap(ours: float, theirs: float) -> float:
    """The difference in so many decimals as are shown."""
    return round(ours - theirs, DECIMALS) or 0.0
