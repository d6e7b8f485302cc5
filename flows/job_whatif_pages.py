"""What the artifact of the what-if flow says, as markdown."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flows.publish import joined, table
from tasks.markdown import plain
from tasks.quantities import MISSING, number, share

if TYPE_CHECKING:
    from tasks.report.jobs import AnsweredWhatIf

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


def whatif_page(source: str, answers: Sequence["AnsweredWhatIf"], refused: Mapping[str, str]) -> str:
    """All answers of a run: how they were measured, then each by itself, then what could not be asked."""
    title = f"# What if: source {plain(source)}"
    pairs = [(one.scenario, *pair_rows(one.pairs)) for one in answers]
    parts = [title, "## On runs that were done again with the change", table(PAIRS, pairs) if pairs else "None."]
    parts += [_section(one) for one in answers]
    if refused:
        lines = [f"- {plain(name)}: {plain(line)}" for name, line in refused.items()]
        parts.append("\n".join(["## What this log cannot answer", *lines]))
    return joined(parts)


def _section(one: "AnsweredWhatIf") -> str:
    from tasks.report.jobs import change_rows

    body = table(HEADER, [tuple(row.values()) for row in change_rows(one.changes)])
    parts = [f"## {plain(one.scenario)}", f"{plain(one.edits)}, by model {plain(one.model_id)}", body, _moves(one)]
    for about, words in PARTS.items():
        if lines := one.claims.get(about):
            parts.append("\n".join([f"### {words}", "", *(f"- {plain(line)}" for line in lines)]))
    return joined(parts)


def _moves(one: "AnsweredWhatIf") -> str:
    """From which shape to which the held-out runs move, as a figure; "" where shapes are not predicted."""
    if not one.moves.any():
        return ""
    from tasks.report.jobs_reasons import MigrationMap, migration_figure
    from tasks.report.result import figure_markdown

    return figure_markdown(migration_figure(MigrationMap(one.moves, one.scenario)), level=3)


def pair_rows(pairs: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Pairs, share of right directions with its interval and that of the mean change, and the three errors."""
    if not pairs or not pairs["n_pairs"]:
        return (f"none: {(pairs or {}).get('reason') or 'not measured'}", *[MISSING] * 5)
    right = f"{share(pairs['right_share'])} ({share(pairs['low'])} to {share(pairs['high'])})"
    errors = (number(pairs[f"mae_log_{name}"]) for name in ("model", "no_change", "mean_change"))
    return (f"{pairs['n_pairs']:,}", right, share(pairs["right_share_mean_change"]), *errors)
