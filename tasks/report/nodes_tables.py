"""Nodes as every result of `nodes` shows them: names, aspects, the ranking, states, and what became of each metric."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from tasks.nodes import node_words
from tasks.quantities import share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.result import Figure, Table, count, extra, item_href, moment, one_line, plot, records, sentence, table

OVERALL = "all"  # the aspect of the one number of a node, from all aspects
RANKING_WORDS = (
    "A dot is a node's score, the bar behind it the interval in which it would lie if the same benchmarks ran "
    "again; nodes marked as tied share their place, since their executions do not tell them apart."
)


def aspect_name(aspect: str) -> str:
    """An aspect, or what stands for all of them."""
    return "all aspects" if aspect == OVERALL else aspect.replace("_", " ")


def node_name(row: Mapping[Any, Any]) -> str:
    """The node of a row, and whether it is emulated."""
    return node_words.called(one_line(row["node"]), row.get("is_emulated"))


def named(rows: pd.DataFrame, item: str = "") -> list[dict[str, Any]]:
    """The rows with the names of their nodes, and where these lead. item: address of the pages of single nodes."""
    return [
        row | {"name": node_name(row), "name.href": item_href(item, row["node"]) if item else None}
        for row in records(rows)
    ]


def ranking_figure(scores: pd.DataFrame) -> Figure:
    """Scores with intervals. scores: aspect, node, is_emulated, score, low, high, is_tied, n_executions."""
    title, nothing = "How good each node is", "No node has been ranked yet."
    if scores.empty:
        return Figure("ranking", title, nothing, "n = 0")
    rows = scores[["score", "low", "high"]].astype(float)
    rows = rows.assign(
        low=rows["low"].fillna(rows["score"]), high=rows["high"].fillna(rows["score"]),
        aspect=scores["aspect"].astype(str).map(aspect_name),
        node=[row["name"] + (" (tied)" if node_words.is_true(row["is_tied"]) else "") for row in named(scores)],
    )  # fmt: skip
    overall = scores[scores["aspect"] == OVERALL]
    evidence = f"n = {int(overall['n_executions'].sum()):,} executions on {len(overall):,} nodes"
    score = Axis("score", "score, 1: as the reference", "log")
    return plot("ranking", title, RANKING_WORDS, evidence, charts.intervals, rows, score, "node", panel="aspect")


def states_table(states: pd.DataFrame, item: str = "") -> Table:
    """The state of each node and aspect, those that need looking at first. item: address of the pages of nodes."""
    return table(
        named(states, item), ("name", "node", "key"), ("aspect", "aspect", "name"), ("state", "state", "name"),
        ("since", "since (UTC)", moment), ("n_executions", "executions", count),
        ("n_recent_flagged", "flagged lately", count), *extra(("n_left_out", "left out", count)),
        ("cost_share", "share of its time", share), name="states",
    )  # fmt: skip


def decisions_table(rows: pd.DataFrame) -> Table:
    """What became of each metric; rows: as in nodes.decisions."""
    shown = [
        row | {"unit_words": row["unit"] + (f" (written {row['unit_written']})" if row["unit_written"] else "")}
        | {"decision": sentence(node_words.decision(row) + (f"; {row['note']}" if row["note"] else ""))}
        | {"direction": node_words.counts_as(row), "rule": node_words.agreement(row["agrees"])}
        | {"without": node_words.agreement_without(row)}
        for row in records(rows)
    ]  # fmt: skip
    return table(
        shown, ("metric", "metric", "key"), ("benchmark_type", "benchmark", "key"),
        *extra(("unit_words", "unit"), ("n_values", "values", count), ("dispersion", "varies by", share)),
        ("decision", "kept or dropped"), ("direction", "counts as", "name"),
        *extra(("orientation_from", "said by", "name"), ("rule", "the paper's rule", "name"),
               ("without", "without stressed", "name")), name="metrics",
    )  # fmt: skip
