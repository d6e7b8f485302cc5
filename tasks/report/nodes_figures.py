"""The figures of nodes with their words: for the page of a source, and for artifacts."""

import pandas as pd

from tasks.nodes.node_words import placed_by
from tasks.report.figure_of import figure_of
from tasks.report.jobs_figures import FigureOfPage
from tasks.report.nodes_plane import PlaneOfNodes, draw_plane
from tasks.report.nodes_ranking import RankedNodes, draw_ranking
from tasks.report.nodes_repeatability import Reruns, draw_reruns


def ranking_figure(ranked: RankedNodes | None, name: str = "ranking") -> FigureOfPage:
    """Scores with intervals."""
    words = (
        "A dot is a node's score, the bar behind it the interval in which it would lie if the same benchmarks ran "
        "again; nodes marked as tied share their place, since their executions do not tell them apart."
    )
    if ranked is not None and len(ranked.scores) and ranked.scores.get("shared", pd.Series(dtype=float)).notna().any():
        words += f" Places: {placed_by(ranked.scores)}."
    return figure_of(
        name,
        "How good each node is",
        words,
        ranked.evidence if ranked else "",
        draw_ranking,
        ranked,
        nothing="No node has been ranked yet.",
        is_empty=ranked is not None and ranked.scores.empty,
    )


def reruns_figure(found: Reruns | None, name: str = "reruns") -> FigureOfPage:
    """How much a rerun differs."""
    words = (
        "Each dot is a node: how far its executions of one benchmark lie apart, as a share of their median, by the "
        "metrics that count in scores. Named is the node that varies most."
    )
    return figure_of(
        name,
        "How repeatable each benchmark is",
        words,
        found.evidence if found else "",
        draw_reruns,
        found,
        nothing="No benchmark ran often enough on any node to say how much a rerun differs.",
        is_empty=found is not None and not found.rows["cv"].notna().any(),
    )


def plane_figure(found: PlaneOfNodes | None, name: str = "plane") -> FigureOfPage:
    """Figure 4 of the paper: fingerprints in two dimensions by benchmark, with their norms."""
    words = (
        "Each dot is an execution. On the left its fingerprint's direction on the first two principal components: "
        "executions of one benchmark should lie together and apart from all others. On the right its norm, which is "
        "what nodes are scored by, as a multiple of the median of its benchmark. Orange ones were flagged as degraded."
    )
    return figure_of(
        name,
        "Fingerprints by benchmark, and their norms",
        words,
        found.evidence if found else "",
        draw_plane,
        found,
        nothing="No execution has a fingerprint by a trained model yet.",
        is_empty=found is not None and found.points.dropna(subset=["x", "y", "ratio"]).empty,
    )
