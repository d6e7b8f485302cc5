"""Figures of unknown workloads: `unknown.<measure>`, means over the pairs of workloads that were held out."""

import pandas as pd

from tasks.workloads.evaluate.figures import Figures, put, put_summary
from tasks.workloads.evaluate.paper_unknown import TableIII
from tasks.workloads.evaluate.scores import summary_of

KEYS = {
    "auroc": "unknown.auroc",
    "auroc_trees": "unknown.auroc.trees",
    "auroc_nearest": "unknown.auroc.nearest",
    "said_known": "unknown.said_known",
    "said_unknown": "unknown.known_said_unknown",
}


def unknown_figures(table: pd.DataFrame, recall: float, n_choices: int, reason: str = "") -> Figures:
    """Means over pairs; n_choices: how many there are to choose from."""
    figures: Figures = {"unknown.pairs": len(table), "unknown.pairs_to_choose": n_choices}
    told = reason or "no known run is left to test"
    keys = {**KEYS, "false_known": f"unknown.false_known_at_{100 * recall:g}"}
    for column, key in keys.items():
        put_summary(figures, key, summary_of(table[column].tolist() if len(table) else []), told)
    put(figures, "unknown.auroc.least", float(table["auroc"].min()) if len(table) else None, told)
    return figures


def paper_figures(found: TableIII) -> Figures:
    """Table III: `paper.share.<unknown>.<known>`, and how often the unknown ones were said to be unknown."""
    figures: Figures = {}
    if found.reason:
        put(figures, "paper.share", None, found.reason)
        put(figures, "paper.said_unknown", None, found.reason)
        return figures
    for row in found.table.to_dict("records"):
        put(figures, f"paper.share.{row['unknown']}.{row['known']}", row["share"])
        put(figures, f"paper.nearest_share.{row['unknown']}.{row['known']}", row["nearest_share"])
        put(figures, f"paper.said_unknown.{row['unknown']}", row["said_unknown"])
    each = found.table.drop_duplicates("unknown")
    put(figures, "paper.said_unknown", float(each["said_unknown"].mean()))
    return figures
