"""The page of workloads behind `whorl report workloads`, and figures of single runs that somebody asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.commands.workloads_options import one_workload_source
from flows.progress_bar import progress_bar
from flows.shown import as_command

if TYPE_CHECKING:
    from flows.invocation import Invocation


def report_workloads(
    invocation: "Invocation", source: str | None, runs: Sequence[str], counters: Sequence[str], out: Path | None
) -> dict[str, Any]:
    """Write the page of a source or, with runs, figures of these; returns source and path, and the images.

    counters: to draw over time; none: those that moved most. out: folder; by default that of the reports."""
    from tasks.report.workloads_page import render_workloads
    from tasks.report.workloads_run_figures import AskedRuns, write_run_figures

    settings = invocation.settings
    warehouse, params = settings.warehouse, settings.workloads.report
    chosen = one_workload_source(warehouse, source)
    with progress_bar(invocation):
        if not runs:
            return {"source": chosen, "path": str(render_workloads(warehouse, chosen, params))}
        again = _again(chosen, runs, counters, out)
        asked = AskedRuns(chosen, runs, counters, params.n_counters, again)
        page, *images = write_run_figures(warehouse, asked, out or warehouse.home / "reports")
    return {"source": chosen, "path": str(page), "figures": [str(image) for image in images]}


def _again(source: str, runs: Sequence[str], counters: Sequence[str], out: Path | None) -> str:
    named = [part for run in runs for part in ("--run", run)] + [
        part for one in counters for part in ("--counter", one)
    ]
    return as_command("whorl", "report", "workloads", "--source", source, *named, *(("--out", out) if out else ()))
