"""Workloads as markdown with figures inside: what Prefect shows under the runs of flows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tasks.markdown import plain
from tasks.quantities import number, ratio, share
from tasks.report.images import data_uri, to_png
from tasks.report.jobs_figures import FigureOfPage
from tasks.report.style import WIDE_IN
from tasks.report.workloads_data import WorkloadsData, fetch_workloads_data
from tasks.report.workloads_evaluated import EvaluatedWorkloads, distance_rows, figures_of_workloads
from tasks.report.workloads_figures import adf_figure, alignment_figure, confusion_figure, phases_figure, series_figure
from tasks.report.workloads_known_table import known_table
from tasks.report.workloads_params import WorkloadsReportParams
from tasks.report.workloads_words import called, other_figures, reasons_of
from tasks.warehouse.place import Warehouse

MAX_PNG_BYTES = 100_000  # Prefect's page grows slow above
MOST_RUNS = 6  # side by side: an image of more is too large
DEFAULTS = WorkloadsReportParams()


def workloads_artifact(warehouse: Warehouse, source: str, params: WorkloadsReportParams = DEFAULTS) -> str:
    """The markdown for one source: latest identifications, one run over time, phases, what was taken for what.

    Raises NotFound if the source has no runs, BadInput if it mixes simulated with measured ones."""
    return workloads_markdown(fetch_workloads_data(warehouse, source, params), params)


def workloads_markdown(data: WorkloadsData, params: WorkloadsReportParams = DEFAULTS) -> str:
    """The same from data that were fetched."""
    n_runs, n_workloads = int(data.groups["n_runs"].sum()), int(data.groups["workload"].nunique())
    parts = [f"# Workloads: {plain(data.source)}", f"{n_runs:,} runs of {n_workloads:,} workloads."]
    if data.is_simulated:
        parts.append("**Simulated:** these runs were drawn, not measured.")
    if len(data.identifications):
        shown = data.identifications.head(params.n_rows).to_dict("records")
        rows = [
            [str(row["run_id"]), called(row), share(row["confidence"]), "; ".join(reasons_of(row))] for row in shown
        ]
        parts += ["## Latest identifications", table(["run", "called", "sure", "because"], rows)]
    phases = data.phases and replace(data.phases, runs=data.phases.runs[:MOST_RUNS])
    figures = [series_figure(data.series), phases_figure(phases), alignment_figure(data.alignment)]
    if data.measured.confusion is not None:
        figures.append(confusion_figure(data.measured.confusion))
    if len(data.adf.lengths):
        figures.append(adf_figure(data.adf))
    parts += [figure_part(figure, f"data version {data.data_version}") for figure in figures]
    return "\n\n".join(parts) + "\n"


def evaluation_artifact(found: EvaluatedWorkloads) -> str:
    """The markdown of an evaluation: Tables II to IV, and the figures of its page."""
    parts = [f"# How well workloads are told apart: {plain(found.name)}"]
    means = ("precision", "recall", "macro_f1")
    known = [
        [row["split"], row["method"], share(row["accuracy"]), *(ratio(row[key]) for key in means)]
        for row in known_table(found.figures)
    ]
    if known:
        heads = ["tested on", "told by", "accuracy", "precision", "recall", "F1"]
        parts += ["## Known workloads", table(heads, known)]
    if found.unknown_called:
        names = sorted({name for one in found.unknown_called for name in one.shares})
        rows = [[one.workload, *(share(one.shares.get(name, 0.0)) for name in names)] for one in found.unknown_called]
        parts += ["## What never-seen workloads are taken for", table(["unknown workload", *names], rows)]
    if distances := _distances(found):
        heads = ["workload", "DTW mean", "deviation", "to others", "ED mean", "deviation", "to others"]
        parts += ["## Distances within workloads and to others", table(heads, distances)]
    if others := other_figures(found.figures):
        parts += ["## Further figures", table(["figure", "value"], [[row["words"], row["value"]] for row in others])]
    parts += [figure_part(figure, found.made_of) for figure in figures_of_workloads(found)]
    return "\n\n".join(parts) + "\n"


def _distances(found: EvaluatedWorkloads) -> list[list[str]]:
    keys = ("mean", "deviation", "others_mean")
    return [
        [row["workload"], *(number(row.get(kind, {}).get(key)) for kind in ("dtw", "ed") for key in keys)]
        for row in distance_rows(found.distances)
    ]


def figure_part(figure: FigureOfPage, made_of: str) -> str:
    """Title, words and image of a figure; one that there is nothing to draw of keeps its title and words."""
    parts = [f"## {plain(figure.title)}", plain(figure.words)]
    png = to_png(figure.draw(WIDE_IN)) if figure.draw else b""
    if 0 < len(png) < MAX_PNG_BYTES:
        parts.append(f"![{plain(figure.title)}]({data_uri(png)})")
    return "\n\n".join([*parts, f"*{plain(figure.evidence)} · {plain(made_of)}*"])


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A markdown table; nothing in it is read as markup."""
    lines = ["| " + " | ".join(plain(head) for head in heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(plain(str(cell)) for cell in row) + " |" for row in rows])
