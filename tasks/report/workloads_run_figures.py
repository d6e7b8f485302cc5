"""Figures 2 and 4 of the paper for runs that somebody asked for: a page with all of them, and each as an image."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from tasks.errors import NotFound
from tasks.report.figures_folder import write_images
from tasks.report.jobs_figures import FigureOfPage
from tasks.report.jobs_page import drawn
from tasks.report.page import render, write_page
from tasks.report.workloads_alignment import align
from tasks.report.workloads_fetched_series import fetch_series
from tasks.report.workloads_figures import alignment_figure, phases_figure, series_figure
from tasks.report.workloads_phases import phases_of_runs
from tasks.report.workloads_typical import fetch_cut_runs
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import code_version, data_version

MOST_PAIRS = 6


@dataclass(frozen=True)
class AskedRuns:
    """Which runs of a source, which counters over time (none: those that moved most), how many of them.

    again: the command that makes the page again."""

    source: str
    run_ids: Sequence[str]
    counters: Sequence[str]
    n_counters: int
    again: str


def write_run_figures(warehouse: Warehouse, asked: AskedRuns, folder: Path) -> list[Path]:
    """Write <folder>/workloads-<source>-runs.html and an image a figure; the page comes first.

    Raises NotFound for a run that is not there or has not been cut into phases, or a counter that a run lacks."""
    figures, version = run_figures(warehouse, asked)
    values = {
        "source": asked.source,
        "run_ids": asked.run_ids,
        "figures": [drawn(figure) for figure in figures],
        "data_version": version,
        "again": asked.again,
        "code_version": f"whorl {code_version()}",
    }
    page = write_page(folder, f"workloads-{asked.source}-runs", render("workloads_runs.html", values))
    return [page, *write_images(folder, figures)]


def run_figures(warehouse: Warehouse, asked: AskedRuns) -> tuple[list[FigureOfPage], str]:
    """Each run over time, all of them side by side, and each two at their best offset; and the data version."""
    with reading(warehouse) as connection:
        cut = fetch_cut_runs(connection, asked.source, list(asked.run_ids))
        there = {run.run_id for run in cut.runs}
        missing = [run_id for run_id in asked.run_ids if run_id not in there]
        if missing:
            raise NotFound(
                f"run {missing[0]!r} of source {asked.source!r}: not there, or not cut into phases yet; "
                f"run 'whorl workloads fingerprint --source {asked.source}' first"
            )
        series = [
            fetch_series(connection, asked.source, run, cut.rows, asked.counters or asked.n_counters)
            for run in cut.runs
        ]
        version = data_version(connection, "workloads", asked.source)
    for run, one in zip(cut.runs, series, strict=True):
        lacking = set(asked.counters) - {counter.name for counter in one.counters}
        if lacking:
            raise NotFound(f"run {run.run_id!r} has no counter {sorted(lacking)[0]!r}; see workloads.counters")
    figures = [series_figure(one, f"series-{place + 1}") for place, one in enumerate(series)]
    figures.append(phases_figure(phases_of_runs(cut.runs)))
    for place, pair in enumerate(list(combinations(cut.runs, 2))[:MOST_PAIRS]):
        figures.append(alignment_figure(align(*pair), f"alignment-{place + 1}"))
    return figures, version
