"""The page of an evaluation of workloads: known and unknown ones, thresholds, and how soon a run is known."""

from pathlib import Path

from tasks.quantities import MISSING
from tasks.report.jobs_page import drawn
from tasks.report.page import render, write_page
from tasks.report.workloads_evaluated import EvaluatedWorkloads, distance_rows, figures_of_workloads
from tasks.report.workloads_known_table import known_table, missing_splits
from tasks.report.workloads_units import short_number
from tasks.report.workloads_words import other_figures
from tasks.warehouse.versions import code_version


def render_workloads_evaluation(found: EvaluatedWorkloads, folder: Path) -> Path:
    """Write <folder>/workloads-evaluation.html and return its path."""
    return write_page(folder, "workloads-evaluation", evaluation_text(found))


def evaluation_text(found: EvaluatedWorkloads) -> str:
    """The HTML of the page; the same evaluation gives the same text."""
    names = {name: None for one in found.unknown_called for name in one.shares}
    return render(
        "workloads_evaluation.html",
        {
            "found": found,
            "known": known_table(found.figures),
            "missing": missing_splits(found.figures),
            "known_names": sorted(names),
            "figures": [drawn(figure) for figure in figures_of_workloads(found)],
            "distances": distance_rows(found.distances),
            "thresholds": found.thresholds,
            "short": _short,
            "other_figures": other_figures(found.figures),
            "code_version": f"whorl {code_version()}",
        },
    )


def _short(value: float | None) -> str:
    return MISSING if value is None else short_number(value)
