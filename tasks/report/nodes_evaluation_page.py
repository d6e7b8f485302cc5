"""The page of an evaluation of benchmark results: stressed executions found, nodes ranked, reruns measured."""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from tasks.report.figure_of import figure_of
from tasks.report.jobs_figures import FigureOfPage
from tasks.report.jobs_page import drawn
from tasks.report.nodes_evaluated import REPEATED, detection_rows, figure_rows, reasons, repeated_rows
from tasks.report.nodes_evaluation_words import MEASURES
from tasks.report.nodes_figures import ranking_figure
from tasks.report.nodes_injected import injected_evidence, injected_tables
from tasks.report.nodes_learned_evaluated import NOTHING_SHORT, learned_values
from tasks.report.nodes_page import decision_rows
from tasks.report.nodes_precision import PrecisionRecall, draw_precision
from tasks.report.nodes_ranked_table import rank_table
from tasks.report.nodes_ranking import RankedNodes
from tasks.report.nodes_verdict import dose_tables
from tasks.report.page import render, write_page
from tasks.warehouse.versions import code_version

if TYPE_CHECKING:
    from tasks.nodes.evaluate.protocol import Evaluation

MOST_NODES = 12
MOST_DECISIONS = 500
BY_TIME = "chronological"


def render_nodes_evaluation(
    found: "Evaluation", name: str, folder: Path, emulated: frozenset[str] = frozenset()
) -> Path:
    """Write <folder>/nodes-evaluation.html and return its path. name: of the data, for the heading.

    emulated: nodes that are not machines of their own, and are called so."""
    return write_page(folder, "nodes-evaluation", evaluation_text(found, name, emulated))


def evaluation_text(found: "Evaluation", name: str, emulated: frozenset[str] = frozenset()) -> str:
    """The HTML of the page; the same evaluation gives the same text."""
    figures = found.figures
    metrics = found.tables.get("metrics", pd.DataFrame())
    return render(
        "nodes_evaluated.html",
        {
            "name": name,
            "n": int(figures["n"]),
            "n_nodes": int(figures["n_nodes"]),
            "n_emulated": len(emulated),
            "detection": detection_rows(figures),
            "measures": [words for words, _ in MEASURES.values()],
            "no_detection": reasons(figures, ["detect."])[:3],
            "by_dose_tables": dose_tables(figures),
            "learned": learned_values(figures),
            "nothing_short": NOTHING_SHORT,
            "injected": injected_tables(figures),
            "injected_evidence": injected_evidence(figures),
            "precision": drawn(precision_figure(found)),
            "ranking": drawn(ranking_figure(_ranked(found, emulated))),
            "ranked_by": rank_table(figures),
            "no_ranking": reasons(figures, ["rank."])[:3],
            "repeated": repeated_rows(figures),
            "repeated_heads": [words for words, _ in REPEATED.values()],
            "decisions": decision_rows(metrics.rename(columns={"type": "benchmark_type"}).head(MOST_DECISIONS)),
            "n_metrics": len(metrics),
            "figures": figure_rows(figures),
            "made_of": f"seed {figures['seed']}, data {str(figures['data_sha256'])[:12]}",
            "code_version": f"whorl {code_version()}",
        },
    )


def precision_figure(found: "Evaluation") -> FigureOfPage:
    """Precision over recall of each detector, on later executions."""
    return figure_of(
        "precision",
        "How surely stressed executions are found",
        "The lower the threshold, the more of the stressed executions are flagged (recall), and the more others as "
        "well, which costs precision. Dotted is what guessing would reach.",
        "" if (curves := _curves(found)) is None else curves.evidence,
        draw_precision,
        curves,
        nothing="No execution that was tested is labelled as stressed.",
    )


def _curves(found: "Evaluation") -> PrecisionRecall | None:
    curves = found.tables.get("precision_recall")
    if curves is None or curves.empty:
        return None
    own = curves[(curves["protocol"] == BY_TIME) & (curves["round"] == 0)]
    if own.empty:
        return None
    measured = found.tables["detection"]
    any_dose = measured[(measured["protocol"] == BY_TIME) & (measured["round"] == 0) & (measured["dose"] == "any")]
    n, n_stressed = int(any_dose["n"].max()), int(any_dose["n_stressed"].max())
    areas = {str(name): float(area) for name, area in zip(any_dose["detector"], any_dose["auprc"], strict=True)}
    return PrecisionRecall(own, areas, n_stressed / n if n else 0.0, n)


def _ranked(found: "Evaluation", emulated: frozenset[str]) -> RankedNodes | None:
    table = found.tables.get("ranking")
    if table is None or table.empty:
        return None
    best = table.loc[table["aspect"] == "all", "node"].head(MOST_NODES)
    shown = table[table["node"].isin(best)].rename(columns={"place": "rank"})
    n_executions = shown.get("n_executions", 0)  # of many nodes nobody counts them
    is_emulated = shown["node"].isin(emulated)
    return RankedNodes(shown.assign(is_tied=shown["n_tied"] > 1, is_emulated=is_emulated, n_executions=n_executions))
