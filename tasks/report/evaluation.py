"""Figures of an evaluation, `<part>.<measure>[.<slice>]`: one that cannot be had is None, its reason beside it; and
the tables and sentences of them, for every word: what is measured is declared key by key, plain baselines stand beside,
and what is better than ours is named."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from tasks.quantities import MISSING
from tasks.report.result import NOTHING, Cell, Column, Table, cell_table, one_line, sentence

Figures = dict[str, Any]
Given = Mapping[str, Any]  # figures that are only read
Show = Callable[[Any], str]
Measures = Mapping[str, tuple[str, Show]]  # by key: name with its unit, how values are written
Name = TypeVar("Name", bound=Hashable)
REASON = ".reason"  # ends the key that says why a figure cannot be had
DECIMALS = 2  # what is equal in so many is level


@dataclass(frozen=True)
class Evaluation:
    """figures: number, text, truth or None by key, and `<key>.reason` beside a None. tables: by name."""

    figures: Figures
    tables: dict[str, pd.DataFrame]


def put(figures: Figures, key: str, value: float | int | None, reason: str = "") -> None:
    """A figure; None, or a value that is not finite, with its reason as `<key>.reason`."""
    if value is None or not np.isfinite(value):
        figures[key], figures[key + REASON] = None, reason or "not a number"
    else:
        figures[key] = value if isinstance(value, int) else float(value)


def put_mean(figures: Figures, key: str, values: Sequence[float | None], reason: str = "") -> None:
    """The mean over splits of what is known, and `<key>.deviation` (of the sample) where more than one is."""
    known = [value for value in values if value is not None and np.isfinite(value)]
    put(figures, key, float(np.mean(known)) if known else None, reason)
    if len(known) > 1:
        figures[f"{key}.deviation"] = float(np.std(known, ddof=1))


def rows_of(figures: Figures) -> pd.DataFrame:
    """The figures that are numbers, or missing ones with the reason beside them: key, value, reason."""
    keys = [key for key in figures if not key.endswith(REASON)]
    numbers = [key for key in keys if figures[key] is None or isinstance(figures[key], int | float)]
    values = pd.array([None if figures[key] is None else float(figures[key]) for key in numbers], "Float64")
    return pd.DataFrame({"key": numbers, "value": values, "reason": [figures.get(key + REASON) for key in numbers]})


def write_tables(tables: Mapping[str, pd.DataFrame], folder: Path) -> list[Path]:
    """One Parquet file a table that has rows; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {folder / f"{name}.parquet": table for name, table in tables.items() if len(table)}
    for path, table in written.items():
        table.to_parquet(path, index=False)
    return list(written)


def cell_of(figures: Given, key: str, show: Show) -> Cell:
    """A figure, with its interval below it."""
    value = figures.get(key)
    if value is None:
        return NOTHING
    low, high = (show(figures.get(f"{key}.{end}")) for end in ("low", "high"))
    return Cell(show(float(value)), () if low == MISSING else (f"{low} to {high}",), value=float(value))


def matrix(
    figures: Given,
    first: str,
    rows: Mapping[Name, str | tuple[str, str]],
    columns: Measures,
    key: Callable[[Name, str], str],
    words: str = "",
) -> Table:
    """A row a name (and what stands below it) and a column a measure, of those that have any figure; key: of a
    cell."""
    cells = {
        name: [cell_of(figures, key(name, measure), show) for measure, (_, show) in columns.items()] for name in rows
    }
    heads = [head for head, _ in columns.values()]
    kept = [at for at in range(len(heads)) if any(row[at] != NOTHING for row in cells.values())]
    shown = [
        (Cell(one_line(head), (below,) if below else ()), *(cells[name][at] for at in kept))
        for name, heading in rows.items()
        for head, below in [heading if isinstance(heading, tuple) else (heading, "")]
        if any(cell != NOTHING for cell in cells[name])
    ]
    return cell_table(first, [heads[at] for at in kept], shown, words=words)


def list_table(figures: Given, measures: Measures) -> Table:
    """A row a figure that was asked for: words, and value or why there is none."""
    rows = [
        {"words": words, "value": sentence(figures.get(f"{key}{REASON}") or "not measured")}
        | ({"value": show(float(figures[key]))} if figures[key] is not None else {})
        for key, (words, show) in measures.items()
        if key in figures
    ]
    return Table("", "", (Column("words", "figure"), Column("value", "value")), rows)


def reasons(figures: Given, part: str, most: int = 3) -> str:
    """Why figures of a part cannot be had, each reason once."""
    stated = [value for key, value in figures.items() if key.endswith(REASON) and key.startswith(part) and value]
    return "; ".join(sentence(reason) for reason in list(dict.fromkeys(stated))[:most])


def missing_lines(figures: Given, *parts: str) -> list[str]:
    """What could not be measured of these parts, and why: one line a reason, with its first key."""
    by_reason: dict[str, list[str]] = {}
    for key, reason in figures.items():
        if key.endswith(REASON) and key.startswith(parts) and reason:
            by_reason.setdefault(sentence(reason), []).append(key.removesuffix(REASON))
    return [
        f"not measured: {keys[0]}{f' and {len(keys) - 1:,} more' if keys[1:] else ''}: {reason}"
        for reason, keys in by_reason.items()
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
