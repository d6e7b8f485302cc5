"""How soon degradation that was put into a history is told, read from the keys of an evaluation, the best on top.

Keys are `inject.<kind>.<measure>.<detector>`, with `.low` and `.high` beside those of several repeats."""

from collections.abc import Mapping
from typing import Any

from tasks.quantities import number, ratio, share
from tasks.report.nodes_evaluation_words import WITHOUT_LABELS, Show, detector_name
from tasks.report.nodes_fitted import cell_of
from tasks.report.nodes_rows import NOTHING, Cell, Row, Table

PART, UNALTERED = "inject", "unaltered"
KINDS = {
    "replaced": (
        "Later results replaced by those of another machine type",
        "From a drawn time on half of a node's results of a benchmark are those of another machine type instead.",
    ),
    "shifted": (
        "Later results made worse",
        "From a drawn time on half of a node's results are worse by one factor, drawn for the node.",
    ),
    UNALTERED: (
        "Flags and alarms where nothing was altered",
        "The history as it is, by the same thresholds: what a detector says of nodes of which nobody knows any fault.",
    ),
}
SPOILED: dict[str, tuple[str, Show]] = {
    "auprc": ("area under precision over recall", ratio),
    "recall": ("spoiled ones flagged", share),
    "missed": ("nodes never flagged", share),
    "delay_executions": ("executions until flagged", number),
    "delay_hours": ("hours until flagged", number),
    "alarm_missed": ("nodes without an alarm", share),
    "alarm_delay_executions": ("executions until an alarm", number),
    "alarm_delay_hours": ("hours until an alarm", number),
    "false_alarms_before_per_1000": ("flags before, in 1,000", number),
    "false_alarms_other_per_1000": ("flags on other nodes, in 1,000", number),
}
CALM: dict[str, tuple[str, Show]] = {
    "false_alarms_per_1000": ("flags in 1,000", number),
    "alarms": ("alarms", number),
    "alarms_per_node_month": ("alarms a node and month", number),
}
DECIMALS = 2


def injected_tables(figures: Mapping[str, Any]) -> list[Table]:
    """A table a kind of degradation that has figures, a row a detector."""
    tables = []
    for kind, (title, words) in KINDS.items():
        measures = CALM if kind == UNALTERED else SPOILED
        each = {name: _cells(figures, kind, name, measures) for name in _best_first(figures, kind)}
        rows = [Row(detector_name(name), cells) for name, cells in each.items() if any(one != NOTHING for one in cells)]
        if rows:
            heads = tuple(head for head, _ in measures.values())
            tables.append(Table("told by", heads, tuple(rows), title=title, words=words))
    return tables


def injected_evidence(figures: Mapping[str, Any]) -> str:
    """What was judged: executions, benchmarks, long-lived nodes, and for how long; what is not known is left out."""
    counts = {
        "executions": "executions",
        "types": "benchmarks",
        "nodes": "long-lived nodes",
        "node_months": "months of a node",
    }
    told = {words: figures.get(f"{PART}.{key}") for key, words in counts.items()}
    return ", ".join(f"{number(float(count))} {words}" for words, count in told.items() if count is not None)


def injected_behind_lines(figures: Mapping[str, Any]) -> list[str]:
    """Where the detector tells spoiled executions less surely than a simpler one: one line a kind."""
    lines = []
    for kind, (title, _) in KINDS.items():
        told = {name: figures.get(f"{PART}.{kind}.auprc.{name}") for name in _best_first(figures, kind)}
        ours = told.pop(WITHOUT_LABELS, None)
        if ours is None:
            continue
        better = [
            f"{detector_name(name)} {ratio(value)}"
            for name, value in told.items()
            if value is not None and round(value - ours, DECIMALS) > 0
        ]
        if better:
            lines.append(f"{SPOILED['auprc'][0]}, {title.lower()}: {ratio(ours)}; better: {', '.join(better)}")
    return lines


def _best_first(figures: Mapping[str, Any], kind: str) -> list[str]:
    """Detectors that were asked: those that tell most surely, or on the unaltered history flag least."""
    measure, sign = ("false_alarms_per_1000", 1.0) if kind == UNALTERED else ("auprc", -1.0)
    before = f"{PART}.{kind}.{measure}."
    names = [key.removeprefix(before) for key in figures if key.startswith(before)]
    asked = [name for name in names if "." not in name]

    def place(name: str) -> float:
        value = figures[before + name]
        return float("inf") if value is None else sign * float(value)

    return sorted(asked, key=place)


def _cells(
    figures: Mapping[str, Any], kind: str, name: str, measures: Mapping[str, tuple[str, Show]]
) -> tuple[Cell, ...]:
    return tuple(cell_of(figures, f"{PART}.{kind}.{key}.{name}", show) for key, (_, show) in measures.items())
