"""Figures of repeatability: `repeatability.<measure>[.<benchmark type>]`, over the metrics that count in a score."""

from collections.abc import Collection

import numpy as np
import pandas as pd

from tasks.nodes.evaluate.figures import Figures, put
from tasks.nodes.repeatability import Repeatability
from tasks.nodes.type_tables import NodeTables

MEASURES = ("cv", "rerun_median", "rerun_p90", "runs_for_5", "runs_for_10")


def repeatability_figures(
    found: Repeatability, tables: NodeTables, counted: Collection[tuple[str, str]], min_runs: int
) -> Figures:
    """Medians over nodes and metrics: cv, rerun_median, rerun_p90, runs_for_5, runs_for_10, and runs_to_tell_apart over
    pairs of nodes of one type; all types together, and each alone.

    counted: the types and metrics that count in a score."""
    reason = f"no node ran a benchmark {min_runs} times without stress"
    figures: Figures = {}
    metrics, pairs = _counted(found.metrics, counted), _counted(found.pairs, counted)
    for name in ("", *(table.name for table in tables.tables)):
        slice_ = f".{name}" if name else ""
        own = metrics[metrics["type"] == name] if name and len(metrics) else metrics
        for measure in MEASURES:
            put(figures, f"repeatability.{measure}{slice_}", _median(own, measure), reason)
        apart = pairs[pairs["type"] == name] if name and len(pairs) else pairs
        put(figures, f"repeatability.runs_to_tell_apart{slice_}", _median(apart, "n_runs"), _why_not_apart(apart))
    return figures


def _counted(table: pd.DataFrame, counted: Collection[tuple[str, str]]) -> pd.DataFrame:
    if not len(table):
        return table
    return table[[key in counted for key in zip(table["type"], table["metric"], strict=True)]]


def _median(table: pd.DataFrame, column: str) -> float | None:
    known = table[column].dropna().to_numpy(dtype=np.float64) if len(table) else np.empty(0)
    return float(np.median(known)) if len(known) else None


def _why_not_apart(pairs: pd.DataFrame) -> str:
    return "half of the pairs of nodes or more do not differ" if len(pairs) else "no two nodes ran it often enough"
