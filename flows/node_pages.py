"""What the artifacts about nodes say, as markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from flows.publish import joined, table
from flows.shown import counted
from tasks.markdown import plain
from tasks.nodes.answers import Preprocessed, Ranked
from tasks.nodes.evaluate.measures import THEIRS
from tasks.nodes.node_words import (
    agreement,
    agreement_without,
    best_words,
    called,
    called_all,
    counts_as,
    decision,
    interval,
    left_out,
    placed_by,
    shared_words,
    slow_time,
    standing_out,
)
from tasks.quantities import number, ratio
from tasks.warehouse.landing import Batch

MAX_ROWS = 50
PAPER = "the paper recorded 153 metrics of six benchmarks and kept 54"
SPREAD = ("low", "high", "deviation")  # of a figure over splits and fits, in keys after its own
NODES_OF_FIGURES = ("nodes.best", "nodes.best.pc1", "nodes.most_suspicious")  # figures that name nodes


def executions_page(source: str, batches: Sequence[Batch], refused: Sequence[str], n_emulated: int = 0) -> str:
    """What was read from each file, and which files were refused. n_emulated: nodes of the source that are emulated."""
    n_executions = sum(batch.tables["executions"].n_rows for batch in batches)
    n_refused = sum(batch.n_quarantined for batch in batches)
    rows = [
        (
            batch.origin.path,
            batch.origin.reader,
            batch.tables["executions"].n_rows,
            batch.tables["metrics"].n_rows if "metrics" in batch.tables else 0,
            batch.n_quarantined,
            batch.batch_id,
        )
        for batch in batches[:MAX_ROWS]
    ]
    header = ("file", "reader", "executions", "values", "rows in quarantine", "batch")
    return joined(
        [
            f"# Executions of benchmarks in source {plain(source)}",
            f"{counted(len(batches), 'file')}, {counted(n_executions, 'execution')} and {counted(n_refused, 'row')} in "
            "quarantine.",
            _emulated(n_emulated),
            table(header, rows) + rest(len(batches)) if rows else "",
            "\n".join(["## Files that could not be read", *(f"- {plain(line)}" for line in refused)])
            if refused
            else "",
        ]
    )


def _emulated(n_nodes: int) -> str:
    is_one = n_nodes == 1
    told = f"{counted(n_nodes, 'node')} of the source {'is' if is_one else 'are'} made of limits on a larger machine."
    return f"**Emulated:** {told}" if n_nodes else ""


def decisions_page(source: str, found: Preprocessed, rows: pd.DataFrame) -> str:
    """How many metrics count, and of each what became of it."""
    told = [
        (
            row["benchmark_type"],
            row["metric"],
            row["unit"],
            decision(row),
            counts_as(row),
            agreement(row["agrees"]),
            agreement_without(row),
        )
        for row in rows.head(MAX_ROWS).to_dict("records")
    ]
    header = ("benchmark", "metric", "unit", "kept or dropped", "counts as", "the paper's rule", "without stressed")
    return joined(
        [
            f"# The metrics of source {plain(source)}",
            f"{found['n_kept']:,} of {counted(found['n_recorded'], 'metric')} kept, from "
            f"{counted(found['n_executions'], 'execution')}; {PAPER}. The paper's rule of orientation contradicts what "
            f"is declared in {counted(found['n_disagree'], 'metric')}.",
            f"Model {plain(found['model_id'])}, reference: {plain(found['reference'])}.",
            table(header, told) + rest(len(rows)) if told else "",
        ]
    )


def ranking_page(source: str, found: Ranked, scores: pd.DataFrame, watched: pd.DataFrame) -> str:
    """The nodes in order, by aspect, and those with slow executions."""
    names = {str(row["node"]): called(str(row["node"]), row["is_emulated"]) for row in scores.to_dict("records")}
    best = best_words(found["best"], found["n_nodes"], names)
    has_shared = bool(scores["shared"].notna().any())
    plain_header = ("aspect", "place", "node", "score", "interval", "tied", "executions")
    header = (*plain_header, "shared component") if has_shared else plain_header
    rows = [
        _scored(row, names) + ((shared_words(row),) if has_shared else ())
        for row in scores.head(MAX_ROWS).to_dict("records")
    ]
    low = _low(watched, names)
    return joined(
        [
            f"# The nodes of source {plain(source)}",
            f"Best: {plain(best)}. Most suspicious: {plain(standing_out(watched.to_dict('records'), names))}.",
            plain(left_out(found["n_left_out"], source)),
            table(header, rows) + rest(len(scores)) if rows else "No node has a score.",
            f"Places: {placed_by(scores)}." if rows else "",
            "## Nodes by slow executions" if low else "",
            table(("node", "slow", "of", "most in", "there at", "p", "in time"), low) if low else "",
        ]
    )


def _scored(row: Mapping[Any, Any], names: Mapping[str, str]) -> tuple[object, ...]:
    place, told = int(row["rank"]), (ratio(row["score"]), interval(row), bool(row["is_tied"]))
    return (row["aspect"], place, names[row["node"]], *told, int(row["n_executions"]))


def _low(watched: pd.DataFrame, names: Mapping[str, str]) -> list[tuple[object, ...]]:
    rows = watched[watched["n_low"] > 0].head(MAX_ROWS).to_dict("records")
    return [
        (
            names.get(row["node"], row["node"]),
            int(row["n_low"]),
            int(row["n_executions"]),
            row["worst_type"],
            ratio(row["worst_ratio"]),
            number(row["p_value"]),
            slow_time(row),
        )
        for row in rows
    ]


def evaluation_page(what: str, figures: Mapping[str, Any]) -> str:
    """All figures of an evaluation, and why some cannot be had; emulated nodes are called so.

    Where a learned model was measured, first whether it is ahead of simple detectors, and what falls short."""
    emulated = str(figures.get("nodes.emulated", "")).split(", ")
    shown = {
        key: called_all(str(value), emulated)
        for key, value in figures.items()
        if key.removeprefix(THEIRS) in NODES_OF_FIGURES and value is not None
    }
    keys = [key for key in figures if key != "report" and not _is_beside(key, figures)]
    rows = [(key, shown.get(key) or _figure(figures, key) or figures.get(f"{key}.reason") or "") for key in keys]
    from tasks.report.nodes_evaluation import falls_short, summary_words, verdict_tables
    from tasks.report.result import table_markdown

    short = falls_short(figures)
    verdicts = [part for one in verdict_tables(figures) for part in (f"### {one.title}", table_markdown(one))]
    return joined(
        [
            f"# Answers about the nodes of {plain(what)}",
            plain(summary_words(figures)),
            *verdicts,
            "\n".join(["## What falls short", *(f"- {plain(line)}" for line in short)]) if short else "",
            table(("figure", "value"), rows),
        ]
    )


def rest(n_all: int) -> str:
    """How many rows a table leaves out."""
    more = n_all - MAX_ROWS
    return f"\n\n{more:,} more are in the warehouse." if more > 0 else ""


def _is_beside(key: str, figures: Mapping[str, Any]) -> bool:
    """Whether a key says more of another figure: why it is missing, or how it spreads."""
    of, _, last = key.rpartition(".")
    return last == "reason" or (last in SPREAD and of in figures)


def _figure(figures: Mapping[str, Any], key: str) -> str:
    """A figure with its interval, or its deviation; empty where it is missing."""
    value = figures[key]
    if value is None:
        return ""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    low, high, deviation = (figures.get(f"{key}.{name}") for name in SPREAD)
    if low is not None and high is not None:
        return f"{number(value)} ({number(low)} to {number(high)})"
    return f"{number(value)} ± {number(deviation)}" if deviation is not None else number(value)
