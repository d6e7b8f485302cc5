"""What a trained model says of nodes, as tables: its ranking beside the plain one, flagged executions, states."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from tasks.nodes.node_words import interval, is_missing, is_true
from tasks.quantities import MISSING, number, ratio, share
from tasks.report.nodes_learned_data import LearnedNodes
from tasks.report.nodes_rows import NOTHING, Cell, Row, Table, plain_cells
from tasks.report.nodes_watching import HEADS, state_values
from tasks.report.nodes_words import OVERALL, aspect_name, node_name, type_name
from tasks.report.page import moment

LEAST_NODES = 3  # to say how much two rankings agree
MOST_REASONS = 3
RANK_HEADS = ("place", "score", "plain place", "plain score", "executions")
FLAGGED_HEADS = ("started (UTC)", "probability", "score", "it shows in", "known of it")
FLAGGED_WORDS, STATE_WORDS = frozenset({3, 4}), frozenset({0, 1})  # columns, from 0


def one_number_table(learned: LearnedNodes, n_rows: int) -> Table:
    """The nodes by their one number: by fingerprints, and beside it the place and score of the plain ranking."""
    rows = learned.ranked[learned.ranked["aspect"] == OVERALL].head(n_rows)
    return Table("node", RANK_HEADS, tuple(_ranked(row) for row in rows.to_dict("records")))


def _ranked(row: Mapping[Any, Any]) -> Row:
    plain = {"score": row["plain_score"], "low": row["plain_low"], "high": row["plain_high"]}
    cells = (
        Cell(_place(row["rank"], row["is_tied"])),
        _score(row),
        Cell(_place(row["plain_rank"], row["plain_is_tied"])),
        _score(plain),
        Cell(f"{int(row['n_executions']):,}"),
    )
    return Row(node_name(row), cells, "" if is_missing(row["machine_type"]) else str(row["machine_type"]))


def aspects_table(learned: LearnedNodes, n_rows: int) -> Table:
    """A node a row, an aspect a column: the score by fingerprints, and the plain one below it."""
    ranked = learned.ranked
    aspects = [str(aspect) for aspect in ranked["aspect"].unique() if aspect != OVERALL]
    cells = {(row["node"], row["aspect"]): _beside(row) for row in ranked.to_dict("records")}
    first = ranked[ranked["aspect"] == OVERALL].head(n_rows)
    rows = tuple(
        Row(node_name(row), tuple(cells.get((row["node"], aspect), NOTHING) for aspect in aspects))
        for row in first.to_dict("records")
    )
    return Table("node", tuple(aspect_name(aspect) for aspect in aspects), rows)


def _beside(row: Mapping[Any, Any]) -> Cell:
    plain = "not ranked" if is_missing(row["plain_score"]) else ratio(float(row["plain_score"]))
    return Cell(ratio(float(row["score"])), (f"plain: {plain}",))


def agreement_words(learned: LearnedNodes) -> str:
    """How much both rankings agree; empty where fewer than three nodes have both."""
    both = learned.ranked[(learned.ranked["aspect"] == OVERALL) & learned.ranked["plain_score"].notna()]
    if len(both) < LEAST_NODES or both["score"].nunique() < 2 or both["plain_score"].nunique() < 2:
        return ""
    rho = float(both["score"].rank().corr(both["plain_score"].rank()))
    return f"Spearman's correlation of both scores is {ratio(rho)}, over {len(both):,} nodes."


def flagged_table(learned: LearnedNodes) -> Table:
    """The latest flagged executions, with the metrics that say so."""
    said: dict[str, list[str]] = {}
    for row in learned.reasons.to_dict("records"):
        said.setdefault(str(row["execution_id"]), []).append(_reason(row))
    rows = [
        Row(
            node_name(row),
            (
                Cell(moment(row["started_at"])),
                Cell(share(row["probability"])),
                Cell(ratio(row["score"])),
                Cell(_first_of(said.get(str(row["execution_id"]), []))),
                Cell(_known(row)),
            ),
            type_name(str(row["benchmark"]), str(row["template_hash"])),
        )
        for row in learned.flagged.to_dict("records")
    ]
    return Table("node and benchmark", FLAGGED_HEADS, tuple(rows), of_words=FLAGGED_WORDS)


def _reason(row: Mapping[Any, Any]) -> str:
    metric = str(row["metric"]).rpartition("/")[2]
    return f"{metric}, {number(abs(float(row['deviation'])))} deviations worse"


def _first_of(reasons: list[str]) -> str:
    if not reasons:
        return "no metric alone says so"
    more = len(reasons) - MOST_REASONS
    return "; ".join(reasons[:MOST_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _known(row: Mapping[Any, Any]) -> str:
    if is_true(row["is_contaminated"]):
        return "disturbed by others"
    if is_missing(row["is_stressed"]):
        return MISSING
    return "stressed on purpose" if row["is_stressed"] else "not stressed"


def known_words(learned: LearnedNodes) -> str:
    """How the flags fit what is known of these executions; empty where nobody says which were stressed."""
    known = learned.known
    if not known["n_stressed"]:
        return ""
    stressed, found, calm, wrong = (f"{known[name]:,}" for name in ("n_stressed", "n_found", "n_calm", "n_false"))
    return (
        f"Of {stressed} executions that were stressed on purpose {found} are flagged, of {calm} others {wrong}. The "
        "model learned from some of them; how well it tells those that it has not seen is what an evaluation measures."
    )


def states_table(learned: LearnedNodes, n_rows: int) -> Table:
    """The state of each node and aspect, those that need looking at first."""
    rows: pd.DataFrame = learned.states.head(n_rows)
    found = tuple(Row(node_name(row), plain_cells(state_values(row))) for row in rows.to_dict("records"))
    return Table(HEADS[0], HEADS[1:], found, of_words=STATE_WORDS)


def _place(place: Any, is_tied: Any) -> str:
    return MISSING if is_missing(place) else f"{int(place)}{' tied' if is_true(is_tied) else ''}"


def _score(row: Mapping[Any, Any]) -> Cell:
    if is_missing(row["score"]):
        return NOTHING
    told = interval(row)
    return Cell(ratio(float(row["score"])), (told,) if told else ())
