"""The parts of the page of a source that show what a trained model says, as values for its template."""

from typing import Any

from tasks.report.jobs_page import drawn
from tasks.report.nodes_figures import plane_figure
from tasks.report.nodes_learned_data import LearnedNodes
from tasks.report.nodes_learned_tables import (
    agreement_words,
    aspects_table,
    flagged_table,
    known_words,
    one_number_table,
    states_table,
)
from tasks.report.nodes_watching import cost_words, counted_states, excluded_nodes
from tasks.report.nodes_words import OVERALL
from tasks.report.page import moment


def learned_values(learned: LearnedNodes | None, data_version: str, n_rows: int) -> dict[str, Any] | None:
    """What nodes_learned.html shows; None before the first fingerprinting. data_version: of the source now."""
    if learned is None:
        return None
    states = learned.states
    return {
        "made_of": f"model {learned.model_id}, data version {learned.data_version}",
        "data_version": learned.data_version,
        "is_outdated": learned.data_version != data_version,
        "n_executions": learned.n_executions,
        "n_fingerprints": learned.n_fingerprints,
        "n_flagged": learned.n_flagged,
        "plane": drawn(plane_figure(learned.plane)),
        "one_number": one_number_table(learned, n_rows),
        "n_ranked": int((learned.ranked["aspect"] == OVERALL).sum()),
        "by_aspect": aspects_table(learned, n_rows),
        "agreement": agreement_words(learned),
        "flagged": flagged_table(learned),
        "known": known_words(learned),
        "states": states_table(learned, n_rows),
        "n_states": len(states),
        "counted": counted_states(states),
        "excluded": excluded_nodes(states),
        "cost": cost_words(states),
        "watched": _watched(learned),
    }


def _watched(learned: LearnedNodes) -> str:
    """By which model and when nodes were watched, and whether another was asked since."""
    if learned.states.empty:
        return ""
    row = learned.states.iloc[0]
    since = "" if row["model_id"] == learned.model_id else f"; model {learned.model_id} has been asked since"
    return f"nodes and aspects, watched {moment(row['watched_at'])} (UTC) by model {row['model_id']}{since}"
