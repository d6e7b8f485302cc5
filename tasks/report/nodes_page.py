"""The page about the nodes of one source: one self-contained HTML file, from warehouse tables only."""

import logging
import shlex
from math import isfinite
from pathlib import Path
from typing import Any

import pandas as pd

from tasks.nodes.node_words import (
    agreement,
    agreement_without,
    best_words,
    counts_as,
    decision,
    interval,
    is_true,
    left_out,
    placed_by,
    shared_words,
    slow_time,
    standing_out,
)
from tasks.quantities import digits, number, share
from tasks.report.jobs_page import Total, drawn
from tasks.report.nodes_data import NodesData, fetch_nodes_data
from tasks.report.nodes_evaluated import figure_rows
from tasks.report.nodes_figures import ranking_figure, reruns_figure
from tasks.report.nodes_learned import learned_values
from tasks.report.nodes_params import NodesReportParams
from tasks.report.nodes_words import OVERALL, aspect_name, node_name, sentence, type_name
from tasks.report.page import render, write_page
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import code_version

logger = logging.getLogger(__name__)

VERBS = ("preprocess", "rank", "record", "train", "fingerprint", "watch")
DEFAULTS = NodesReportParams()
PAPER_RECORDED, PAPER_KEPT = 153, 54  # Perona, IV-B
MOST_DECISIONS = 1000
REPEAT_HEADS = ("executions", "spread", "a rerun differs by", "in one of ten by", "runs to see 5 %", "runs to see 10 %")


def render_nodes(warehouse: Warehouse, source: str, params: NodesReportParams = DEFAULTS) -> Path:
    """Write <home>/reports/nodes-<source>.html and return its path; a part without rows says how to make it.

    Raises NotFound if the source has no executions, BadInput if it mixes simulated with measured ones."""
    data = fetch_nodes_data(warehouse, source, params)
    path = write_page(warehouse.home / "reports", f"nodes-{source}", nodes_text(data, params))
    logger.info("wrote %s", path)
    return path


def nodes_text(data: NodesData, params: NodesReportParams = DEFAULTS) -> str:
    """The HTML of the page; the same data give the same text."""
    return render(
        "nodes_source.html",
        {
            "data": data,
            "n_rows": params.n_rows,
            "n_executions": int(data.nodes["n_executions"].sum()),
            "n_emulated": int(data.nodes["is_emulated"].sum()),
            "totals": _totals(data),
            "is_outdated": data.is_outdated,
            "left_out": left_out(data.n_left_out, data.source),
            "ranking": drawn(ranking_figure(data.ranking)),
            "repeatability": drawn(reruns_figure(data.reruns)),
            "learned": learned_values(data.learned, data.data_version, params.n_rows),
            **_scores(data, params),
            "watched": [row | {"slow_time": slow_time(row)} for row in _named(data.watched.head(params.n_rows))],
            "standing_out": _standing_out(data),
            "repeats": _repeats(data.repeatability[data.repeatability["is_counted"]].head(params.n_rows)),
            "repeat_heads": REPEAT_HEADS,
            "pairs": _pairs(data.pairs),
            "n_repeats": len(data.repeatability),
            "decisions": decision_rows(data.decisions.head(MOST_DECISIONS)),
            "counts": _counts(data.decisions),
            "types": [
                {**row, "name": type_name(str(row["benchmark"]), str(row["template_hash"]))}
                for row in data.types.to_dict("records")
            ],
            "nodes": _named(data.nodes.head(params.n_rows)),
            "other_figures": figure_rows(data.evaluation),
            "commands": {verb: shlex.join(["whorl", "nodes", verb, "--source", data.source]) for verb in VERBS},
            "again": shlex.join(["whorl", "report", "nodes", "--source", data.source]),
            "code_version": f"whorl {code_version()}",
        },
    )


def _scores(data: NodesData, params: NodesReportParams) -> dict[str, Any]:
    """The table of scores: nodes by their one number, aspects beside each other."""
    scores = data.scores
    aspects = [str(aspect) for aspect in scores["aspect"].unique()]
    first = scores[scores["aspect"] == OVERALL]
    shown = first.head(params.n_rows)
    cells = {
        (row["node"], aspect_name(row["aspect"])): {"score": row["score"], "interval": interval(row)}
        for row in scores.to_dict("records")
    }
    return {
        "aspects": [aspect_name(aspect) for aspect in aspects],
        "scored": [row | {"shared_words": shared_words(row)} for row in _named(shown)],
        "has_shared": bool(first["shared"].notna().any()),
        "placed_by": placed_by(scores),
        "best": _best(first),
        "n_scored": len(first),
        "n_ranked": int(first["n_executions"].sum()),
        "cells": cells,
        "model_id": str(scores["model_id"].iloc[0]) if len(scores) else "",
    }


def _best(nodes: pd.DataFrame) -> str:
    """Which node is best, or that no difference can be told. nodes: by their one number."""
    names = {str(row["node"]): node_name(row) for row in nodes.to_dict("records")}
    return sentence(best_words([str(node) for node in nodes["node"][nodes["rank"] == 1]], len(nodes), names))


def _named(rows: pd.DataFrame) -> list[dict[Any, Any]]:
    return [
        {
            **row,
            "name": node_name(row),
            "machine_type": row["machine_type"] if isinstance(row.get("machine_type"), str) else "",
        }
        for row in rows.to_dict("records")
    ]


def _standing_out(data: NodesData) -> str:
    rows = data.watched.to_dict("records")
    return sentence(standing_out(rows, {str(row["node"]): node_name(row) for row in rows}))


def _repeats(rows: pd.DataFrame) -> list[dict[Any, Any]]:
    return [
        {
            **row,
            "name": node_name(row),
            "values": [
                number(row["n_runs"]),
                share(row["cv"]),
                share(row["rerun_median"]),
                share(row["rerun_p90"]),
                _runs(row["runs_for_5"]),
                _runs(row["runs_for_10"]),
            ],
        }
        for row in rows.to_dict("records")
    ]


def _pairs(rows: pd.DataFrame) -> list[dict[str, str]]:
    """Of each metric that counts, how many executions of each tell two nodes apart."""
    return [
        {
            "name": f"{row['benchmark_type'].partition('@')[0]} {row['metric']}",
            "words": f"{_runs(row['n_runs'])} executions of each" if isfinite(row["n_runs"]) else "no number",
        }
        for row in rows.to_dict("records")
    ]


def _runs(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:,.0f}"


def decision_rows(rows: pd.DataFrame) -> list[dict[Any, Any]]:
    """What became of each metric, in words; rows: as in nodes.decisions."""
    return [
        {
            **row,
            "unit_words": row["unit"] + (f" (written {row['unit_written']})" if row["unit_written"] else ""),
            "decision": sentence(decision(row) + (f"; {row['note']}" if row["note"] else "")),
            "direction": counts_as(row),
            "rule": agreement(row["agrees"]),
            "without": agreement_without(row),
        }
        for row in rows.to_dict("records")
    ]


def _counts(decisions: pd.DataFrame) -> str:
    """How many metrics there are beside the paper's, and how the paper's rule of orientation does."""
    if decisions.empty:
        return ""
    told = decisions[decisions["agrees"].notna()]
    silent = int((told["agrees"] == False).sum())  # noqa: E712  (a column of truths and missing ones)
    both = decisions[decisions["rule_with_stressed"].notna() & decisions["rule_without_stressed"].notna()]
    turned = int((both["rule_with_stressed"] != both["rule_without_stressed"]).sum())
    return (
        f"{len(decisions):,} metrics were recorded and {int(decisions['is_kept'].sum()):,} are kept (a metric of two "
        f"benchmarks counts twice); the paper recorded {PAPER_RECORDED} and kept {PAPER_KEPT}. The paper's rule of "
        f"orientation contradicts what is declared in {silent:,} of {len(told):,} metrics of which both are known, and "
        f"says something else without the stressed executions in {turned:,} of {len(both):,}."
    )


def _totals(data: NodesData) -> list[Total]:
    n_executions = int(data.nodes["n_executions"].sum())
    n_stressed = int(data.nodes["n_stressed"].sum())
    stressed = f", {n_stressed:,} of them stressed on purpose" if n_stressed else ""
    n_nodes = len(data.nodes)
    totals = [
        Total(f"{n_executions:,}", f"executions of {len(data.types):,} benchmarks{stressed}"),
        Total(f"{n_nodes:,}", f"node{'' if n_nodes == 1 else 's'}"),
    ]
    first = data.scores[(data.scores["aspect"] == OVERALL) & (data.scores["rank"] == 1)]
    if len(first):
        best = ", ".join(node_name(row) for row in first.head(3).to_dict("records"))
        totals.append(Total(digits(float(first["score"].iloc[0]), 3), f"best score: {best}"))
    if len(data.watched) and is_true(data.watched["stands_out"].iloc[0]):
        row = data.watched.iloc[0].to_dict()
        totals.append(Total(share(row["low_share"]), f"of the executions of {node_name(row)} slow, {slow_time(row)}"))
    if data.learned:
        told = f"of {data.learned.n_judged:,} executions look degraded"
        totals.append(Total(f"{data.learned.n_flagged:,}", told))
    if len(data.decisions):
        kept = int(data.decisions["is_kept"].sum())
        totals.append(Total(f"{kept:,}", f"of {len(data.decisions):,} metrics kept"))
    return totals
