"""Whether the detector tells stressed executions better than simpler ones: tables, the answer first."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from tasks.report.nodes_detected import DECIMALS, Comparison, Told, comparisons, gap_of, in_order, of_protocol, told_of
from tasks.report.nodes_evaluation_words import LEARNED, MEASURES, PROTOCOLS, VERDICTS, detector_name, dose_name
from tasks.report.nodes_rows import NOTHING, Cell, Row, Table

JUDGED_BY = ("f1_outlier", "auprc")
LEVEL = "level"


def verdict_tables(figures: Mapping[str, Any]) -> list[Table]:
    """By each measure of JUDGED_BY how far the detector is ahead of the best simpler one, by split and dose.

    Marked is where it is behind. Nothing without a detector."""
    return [table for measure in JUDGED_BY if (table := _verdict_table(figures, measure)).rows]


def _verdict_table(figures: Mapping[str, Any], measure: str) -> Table:
    found = _strongest(comparisons(figures, measure))
    doses = in_order(one.dose for one in found)
    by_place = {(one.protocol, one.dose): one for one in found}
    rows = []
    for protocol, words in PROTOCOLS.items():
        cells = [by_place.get((protocol, dose)) for dose in doses]
        if any(cells):
            rows.append(Row(words, tuple(_ahead(one, measure) if one else NOTHING for one in cells)))
    heads = tuple(dose_name(dose) for dose in doses)
    return Table("tested on", heads, tuple(rows), title=MEASURES[measure][0])


def _strongest(found: Sequence[Comparison]) -> list[Comparison]:
    """Of each protocol and dose the comparison with the best simple detector."""
    groups = groupby(found, key=lambda one: (one.protocol, one.dose))
    return [max(group, key=lambda one: one.theirs.value) for _, group in groups]


def _ahead(one: Comparison, measure: str) -> Cell:
    show = MEASURES[measure][1]
    notes = (f"{show(one.ours.value)} against {show(one.theirs.value)}", detector_name(one.rival))
    unsure = one.gap > 0 and one.ours.low is not None and not one.is_sure
    return Cell(gap_words(one.gap), (*notes, "within its spread") if unsure else notes, is_marked=one.gap < 0)


def gap_words(gap: float) -> str:
    """How far ahead: +0.12, −0.03 or level."""
    return f"{gap:+.{DECIMALS}f}" if gap else LEVEL


def summary_words(figures: Mapping[str, Any]) -> str:
    """In how many places the detector is ahead of every simpler one; empty where it was not measured."""
    found = _strongest(comparisons(figures, JUDGED_BY[0]))
    if not found:
        return ""
    words, n = MEASURES[JUDGED_BY[0]][0], len(found)
    ahead, behind = sum(one.gap > 0 for one in found), sum(one.gap < 0 for one in found)
    return (
        f"By {words} the detector is ahead of every simpler one in {ahead} of {n} places (each a way of "
        f"splitting and a dose), level with the best of them in {n - ahead - behind}, behind in {behind}."
    )


def behind_lines(figures: Mapping[str, Any]) -> list[str]:
    """Where the detector is behind, and which simpler ones are better there: one line a place."""
    lines = []
    for measure in JUDGED_BY:
        words, show = MEASURES[measure]
        for (protocol, dose), group in groupby(comparisons(figures, measure), key=lambda one: (one.protocol, one.dose)):
            better = sorted((one for one in group if one.gap < 0), key=lambda one: -one.theirs.value)
            if better:
                rivals = ", ".join(f"{detector_name(one.rival)} {show(one.theirs.value)}" for one in better)
                ours = show(better[0].ours.value)
                lines.append(f"{words}, {PROTOCOLS[protocol]}, {dose_name(dose)}: {ours}; better: {rivals}")
    return lines


def dose_tables(figures: Mapping[str, Any], measure: str = JUDGED_BY[0]) -> list[Table]:
    """A table a way of splitting: detectors with the best on top, by dose; beside each simpler one how far the detector
    is ahead of it. Marked is the best of each dose."""
    told = told_of(figures, measure)
    tables = []
    for protocol, words in PROTOCOLS.items():
        values = of_protocol(told, protocol)
        doses = in_order(dose for dose, _ in values)
        if len(doses) > 1:
            heads = tuple(dose_name(dose) for dose in doses)
            tables.append(Table("told by", heads, _dose_rows(values, doses, measure), title=words))
    return tables


def _dose_rows(values: Mapping[tuple[str, str], Told], doses: Sequence[str], measure: str) -> tuple[Row, ...]:
    show = MEASURES[measure][1]
    best = {dose: max(told.value for (of, _), told in values.items() if of == dose) for dose in doses}
    names = dict.fromkeys(name for _, name in values)

    def place(name: str) -> float:
        known = [told.value for dose in doses if (told := values.get((dose, name)))]
        return -known[0] if known else 0.0

    def cell(name: str, dose: str) -> Cell:
        told, ours = values.get((dose, name)), values.get((dose, VERDICTS))
        if told is None:
            return NOTHING
        notes: tuple[str, ...] = (f"{show(told.low)} to {show(told.high)}",) if told.low is not None else ()
        if ours is not None and name not in {VERDICTS, *LEARNED}:
            notes = (f"detector {gap_words(gap_of(ours, told))}",)
        return Cell(show(told.value), notes, is_marked=show(told.value) == show(best[dose]))

    return tuple(
        Row(detector_name(name), tuple(cell(name, dose) for dose in doses)) for name in sorted(names, key=place)
    )
