"""How well ways of ranking nodes agree with applications, read from the keys of an evaluation, the best on top.

Keys are `rank.<method>[.<machine type>|.mean][.<variant>]`, with `.low` and `.high` beside those of several fits."""

from collections.abc import Mapping
from typing import Any

from tasks.quantities import ratio
from tasks.report.nodes_evaluation_words import KNOWN_AFTERWARDS, LEARNED, METHODS, OF_NORMS, detector_name
from tasks.report.nodes_rows import NOTHING, Cell, Row, Table

PART, NODES = "rank.", "rank.nodes."
SHOWN = "shared"  # the method that nodes are ranked by
TOGETHER, MEAN = "all together", "mean of machine types"
DECIMALS = 2  # what is equal in so many is level

Way = tuple[str, str]  # method and variant; no variant: plain
WAYS: tuple[Way, ...] = (
    *((method, "") for method in METHODS),
    *(("spearman", name) for name in LEARNED),
)


def rank_table(figures: Mapping[str, Any]) -> Table:
    """A row a way of ranking, a column a machine type that nodes were ranked in, and all together.

    Marked is the best of each column; what is only known afterwards stands at the end and is never the best."""
    slices = _slices(figures)
    values = {way: {one: _value(figures, way, one) for one in slices} for way in WAYS}
    known = [way for way in WAYS if any(value is not None for value in values[way].values())]
    fair = [way for way in known if way[0] != KNOWN_AFTERWARDS]
    best = {
        one: max((value for way in fair if (value := values[way][one]) is not None), default=None) for one in slices
    }

    def place(way: Way) -> tuple[bool, float]:
        value = values[way][""]
        return way not in fair, 1.0 if value is None else -value

    rows = []
    for way in sorted(known, key=place):
        cells = (_cell(figures, way, one, best[one] if way in fair else None) for one in slices)
        rows.append(Row(_words(way), tuple(cells)))
    return Table("ranked by", tuple(slices.values()), tuple(rows))


def rank_behind_lines(figures: Mapping[str, Any]) -> list[str]:
    """Where the shared component, by which nodes are ranked, follows applications less than another way: one line a
    machine type."""
    lines = []
    for one, words in _slices(figures).items():
        ours = _value(figures, (SHOWN, ""), one)
        plain = {name: _value(figures, (name, ""), one) for name in METHODS if name != KNOWN_AFTERWARDS}
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


def _key(way: Way, slice_: str) -> str:
    method, name = way
    return f"{PART}{method}{slice_}{f'.{name}' if name else ''}"


def _value(figures: Mapping[str, Any], way: Way, slice_: str) -> float | None:
    value = figures.get(_key(way, slice_))
    return None if value is None else float(value)


def _cell(figures: Mapping[str, Any], way: Way, slice_: str, best: float | None) -> Cell:
    value = _value(figures, way, slice_)
    if value is None:
        return NOTHING
    low, high = (figures.get(f"{_key(way, slice_)}.{end}") for end in ("low", "high"))
    notes = () if low is None or high is None else (f"{ratio(low)} to {ratio(high)}",)
    return Cell(ratio(value), notes, is_marked=best is not None and ratio(value) == ratio(best))


def _words(way: Way) -> str:
    method, name = way
    return f"{OF_NORMS}, {detector_name(name)}" if name else METHODS[method]
