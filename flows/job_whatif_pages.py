"""What the artifact of the what-if flow says, as markdown."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from flows.pictures import picture_part
from flows.publish import joined, table
from flows.whatif_words import change_rows, pair_rows
from tasks.markdown import plain

if TYPE_CHECKING:
    from tasks.jobs.control.answer_rows import WrittenAnswer

PARTS = {
    "move_ratio": "Moves between shapes (ratio to the historic median)",
    "move_delta": "Moves between shapes (seconds from the historic median)",
    "can": "What the figures support",
    "cannot": "What they do not",
}
HEADER = ("measure", "before", "after", "change", "interval")
PAIRS = (
    "scenario",
    "pairs",
    "right direction",
    "as other jobs",
    "error of the log ratio",
    "of no change",
    "of the mean",
)


def whatif_page(source: str, answers: Sequence["WrittenAnswer"], refused: Mapping[str, str]) -> str:
    """All answers of a run: how they were measured, then each by itself, then what could not be asked."""
    title = f"# What if: source {plain(source)}"
    pairs = [(one.scenario, *pair_rows(one.pairs)) for one in answers]
    parts = [title, "## On runs that were done again with the change", table(PAIRS, pairs) if pairs else "None."]
    parts += [_section(one) for one in answers]
    if refused:
        lines = [f"- {plain(name)}: {plain(line)}" for name, line in refused.items()]
        parts.append("\n".join(["## What this log cannot answer", *lines]))
    return joined(parts)


def _section(one: "WrittenAnswer") -> str:
    body = table(HEADER, [tuple(row.values()) for row in change_rows(one.changes)])
    parts = [f"## {plain(one.scenario)}", f"{plain(one.edits)}, by model {plain(one.model_id)}", body, _moves(one)]
    for about, words in PARTS.items():
        if lines := one.claims.get(about):
            parts.append("\n".join([f"### {words}", "", *(f"- {plain(line)}" for line in lines)]))
    return joined(parts)


def _moves(one: "WrittenAnswer") -> str:
    """From which shape to which the held-out runs move, as a figure; "" where shapes are not predicted."""
    moves = one.moves[one.moves["kind"] == "ratio"]
    if not moves["n_runs"].any():
        return ""
    from tasks.report.whatif_figures import migration_figure  # matplotlib: a second that other flows need not pay
    from tasks.report.whatif_migration import MigrationMap

    k = int(moves[["from_shape", "to_shape"]].to_numpy().max()) + 1
    counts = np.zeros((k, k), dtype=np.int64)
    counts[moves["from_shape"], moves["to_shape"]] = moves["n_runs"]
    return picture_part(migration_figure(MigrationMap(counts, one.scenario)), level=3)
