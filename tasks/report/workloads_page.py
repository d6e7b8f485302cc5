"""The page about the workloads of one source: one self-contained HTML file, from warehouse tables only."""

import logging
import shlex
from pathlib import Path

from tasks.quantities import duration, share
from tasks.report.jobs_page import Total, drawn
from tasks.report.page import render, write_page
from tasks.report.workloads_data import WorkloadsData, fetch_workloads_data
from tasks.report.workloads_figures import adf_figure, alignment_figure, confusion_figure, phases_figure, series_figure
from tasks.report.workloads_known_table import known_table
from tasks.report.workloads_params import WorkloadsReportParams
from tasks.report.workloads_words import called, other_figures, reasons_of, sentence
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import code_version

logger = logging.getLogger(__name__)

VERBS = ("fingerprint", "identify", "watch")
DEFAULTS = WorkloadsReportParams()
TYPICAL = "Of each workload the run is shown whose levels are nearest to the medians over its workload."


def render_workloads(warehouse: Warehouse, source: str, params: WorkloadsReportParams = DEFAULTS) -> Path:
    """Write <home>/reports/workloads-<source>.html and return its path; a part without rows says how to make it.

    Raises NotFound if the source has no runs, BadInput if it mixes simulated with measured ones."""
    data = fetch_workloads_data(warehouse, source, params)
    path = write_page(warehouse.home / "reports", f"workloads-{source}", workloads_text(data, params))
    logger.info("wrote %s", path)
    return path


def workloads_text(data: WorkloadsData, params: WorkloadsReportParams = DEFAULTS) -> str:
    """The HTML of the page; the same data give the same text."""
    measured = data.measured
    return render(
        "workloads.html",
        {
            "data": data,
            "n_rows": params.n_rows,
            "n_runs": int(data.groups["n_runs"].sum()),
            "n_cut": int(data.groups["n_cut"].sum()),
            "n_machines": int(data.groups["n_machines"].max()),
            "totals": _totals(data),
            "series": drawn(series_figure(data.series)),
            "phases": drawn(phases_figure(data.phases, more=TYPICAL)),
            "alignment": drawn(alignment_figure(data.alignment)),
            "confusion": drawn(confusion_figure(measured.confusion)),
            "adf": drawn(adf_figure(data.adf)),
            "known": known_table(measured.evaluation),
            "other_figures": other_figures({**measured.evaluation, **measured.figures}),
            "measured_words": _measured_words(data),
            "called": called,
            "reasons_of": reasons_of,
            "sentence": sentence,
            "commands": {verb: shlex.join(["whorl", "workloads", verb, "--source", data.source]) for verb in VERBS},
            "again": shlex.join(["whorl", "report", "workloads", "--source", data.source]),
            "code_version": f"whorl {code_version()}",
        },
    )


def _measured_words(data: WorkloadsData) -> str:
    """What measured the figures, and on which data."""
    measured, parts = data.measured, []
    if measured.evaluation:
        is_old = measured.evaluated_version != data.data_version
        old = ", not of the files of now" if is_old else ""
        parts.append(f"evaluation of data version {measured.evaluated_version}{old}")
    if measured.model_id:
        parts.append(f"model {measured.model_id}")
    return " · ".join(parts)


def _totals(data: WorkloadsData) -> list[Total]:
    groups, found = data.groups, data.identifications
    n_workloads = int(groups["workload"].nunique())
    n_unlabelled = int(groups.loc[groups["workload"].isna(), "n_runs"].sum())
    totals = [
        Total(
            f"{int(groups['n_runs'].sum()):,}",
            f"runs of {n_workloads} workload{'' if n_workloads == 1 else 's'}"
            + (f", {n_unlabelled:,} without a label" if n_unlabelled else ""),
        ),
        Total(duration(float(groups["total_s"].sum())), "of telemetry"),
    ]
    if len(data.adf.lengths):
        totals.append(Total(f"{len(data.adf.lengths):,}", f"phases of counters, ADF in {share(data.adf.share)}"))
    if len(found):
        totals.append(Total(f"{len(found):,}", f"runs identified, {int((~found['is_known']).sum()):,} of them unknown"))
    right, n_held_out = (data.measured.figures.get(f"held_out.{key}") for key in ("accuracy", "n"))
    if right is not None and n_held_out:
        totals.append(Total(share(right), f"of {n_held_out:,.0f} held-out runs called right by the model"))
    totals.append(Total(f"{len(data.alarms):,}", "alarms"))
    return totals
