"""What the artifact of the what-if flow says, as markdown."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from flows.publish import table
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
    return "\n\n".join(parts)


def _section(one: "WrittenAnswer") -> str:
    body = table(HEADER, [tuple(row.values()) for row in change_rows(one.changes)])
    parts = [f"## {plain(one.scenario)}", f"{plain(one.edits)}, by model {plain(one.model_id)}", body]
    for about, words in PARTS.items():
        if lines := one.claims.get(about):
            parts.append("\n".join([f"### {words}", "", *(f"- {plain(line)}" for line in lines)]))
    return "\n\n".join(parts)
