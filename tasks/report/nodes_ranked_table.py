"""How well ways of ranking nodes agree with applications, read from the keys of an evaluation, the best on top.

Keys are `rank.<method>[.<machine type>|.mean]`."""

from collections.abc import Mapping
from typing import Any

from tasks.quantities import ratio
from tasks.report.nodes_evaluation_words import KNOWN_AFTERWARDS, METHODS
from tasks.report.nodes_rows import NOTHING, Cell, Row, Table

PART, NODES = "rank.", "rank.nodes."
SHOWN = "shared"  # the method that nodes are ranked by
TOGETHER, MEAN = "all together", "mean of machine types"
DECIMALS = 2  # what is equal in so many is level


def rank_table(figures: Mapping[str, Any]) -> Table:
    """A row a way of ranking, a column a machine type that nodes were ranked in, and all together.

    Marked is the best of each column; what is only known afterwards stands at the end and is never the best."""
    slices = _slices(figures)
    values = {name: {one: _value(figures, name, one) for one in slices} for name in METHODS}
    known = [name for name in METHODS if any(value is not None for value in values[name].values())]
    fair = [name for name in known if name != KNOWN_AFTERWARDS]
    best = {
        one: max((value for name in fair if (value := values[name][one]) is not None), default=None) for one in slices
    }

    def place(name: str) -> tuple[bool, float]:
        value = values[name][""]
        return name not in fair, 1.0 if value is None else -value

    rows = []
    for name in sorted(known, key=place):
        cells = (_cell(values[name][one], best[one] if name in fair else None) for one in slices)
        rows.append(Row(METHODS[name], tuple(cells)))
    return Table("ranked by", tuple(slices.values()), tuple(rows))


def rank_behind_lines(figures: Mapping[str, Any]) -> list[str]:
    """Where the shared component, by which nodes are ranked, follows applications less than another way: one line a
    machine type."""
    lines = []
    for one, words in _slices(figures).items():
        ours = _value(figures, SHOWN, one)
        plain = {name: _value(figures, name, one) for name in METHODS if name != KNOWN_AFTERWARDS}
        known = {name: value for name, value in plain.items() if value is not None}
        better = [name for name in known if ours is not None and round(known[name] - ours, DECIMALS) > 0]
        if better:
            better.sort(key=lambda name: -known[name])
            rivals = ", ".join(f"{METHODS[name]} {ratio(known[name])}" for name in better)
            lines.append(f"ranking beside applications, {words}: {ratio(ours)}; better: {rivals}")
    return lines


def _slices(figures: Mapping[str, Any]) -> dict[str, str]:
    """What follows the method in a key, and its words: machine types, all together, and their mean if there are two."""
    types = [key.removeprefix(NODES) for key in figures if key.startswith(NODES)]
    found = {f".{one}": one for one in types} | {"": TOGETHER}
    return found | ({".mean": MEAN} if len(types) > 1 else {})


def _value(figures: Mapping[str, Any], method: str, slice_: str) -> float | None:
    value = figures.get(f"{PART}{method}{slice_}")
    return None if value is None else float(value)


def _cell(value: float | None, best: float | None) -> Cell:
    if value is None:
        return NOTHING
    return Cell(ratio(value), is_marked=best is not None and ratio(value) == ratio(best))
