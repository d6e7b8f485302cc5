"""The page about the jobs of one source: one self-contained HTML file, from warehouse tables only."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from tasks.jobs.params import (
    ReportParams,
    SummaryParams,
)
from tasks.quantities import duration, number, ratio, share
from tasks.report.images import to_svg
from tasks.report.jobs_data import JobsData, fetch_jobs_data
from tasks.report.jobs_figures import FigureOfPage, figures_of
from tasks.report.page import moment, render, write_page
from tasks.report.style import NARROW_IN, WIDE_IN
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import code_version

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DrawnFigure:
    """A figure of the page with its words, drawn for a screen and for a phone; None where there is nothing to draw."""

    title: str
    words: str
    evidence: str
    wide: Markup | None
    narrow: Markup | None


@dataclass(frozen=True)
class Total:
    """One number of the head of the page."""

    value: str
    words: str


def render_report(warehouse: Warehouse, source: str, params: ReportParams) -> Path:
    """Write <home>/reports/jobs-<source>.html and return its path.

    Raises NotFound if the source has no summary yet, BadInput if it mixes simulated with measured runs."""
    data = fetch_jobs_data(warehouse, source, params)
    path = write_page(warehouse.home / "reports", f"jobs-{source}", page_text(data, params))
    logger.info("wrote %s", path)
    return path


def page_text(data: JobsData, params: ReportParams) -> str:
    """The HTML of the page; the same data give the same text."""
    return render(
        "jobs.html",
        {
            "data": data,
            "asked": SummaryParams.model_validate(data.summary["parameters"]),
            "n_rows": params.n_rows,
            "period": _period(data.summary),
            "totals": _totals(data.summary),
            "figures": [drawn(figure) for figure in figures_of(data)],
            "code_version": f"whorl {code_version()}",
        },
    )


def drawn(figure: FigureOfPage) -> DrawnFigure:
    """The figure for a screen and for a phone."""
    pictures: list[Markup | None] = [None, None]
    if figure.draw is not None:
        alt = f"{figure.title}; {figure.evidence}"
        sizes = (("wide", WIDE_IN), ("narrow", NARROW_IN))
        pictures = [to_svg(figure.draw(width), f"{figure.name}-{size}", alt) for size, width in sizes]
    return DrawnFigure(figure.title, figure.words, figure.evidence, *pictures)


def _period(summary: dict[str, Any]) -> str:
    return f"{moment(summary['first_at'])} to {moment(summary['last_at'])}"


def _totals(summary: dict[str, Any]) -> list[Total]:
    asked = SummaryParams.model_validate(summary["parameters"])
    return [
        Total(
            f"{summary['n_finished']:,}",
            f"finished runs, {summary['n_failed']:,} failed, {summary['n_ongoing']:,} go on",
        ),
        Total(f"{summary['n_supported_groups']:,}", f"jobs with {asked.min_support} or more of them"),
        Total(ratio(summary["median_cov"]), "median COV of these jobs"),
        Total(
            share(summary["outlier_share_ratio"]),
            f"of their runs took {number(asked.outlier_ratio)} × the median or more",
        ),
        Total(
            share(summary["outlier_share_delta"]), f"took over {duration(asked.outlier_delta_s)} more than the median"
        ),
        Total(
            share(summary["slow_share"]), f"of new runs took {number(asked.slow_ratio)} × the historic median or more"
        ),
        Total(duration(summary["excess_s"]), "lost to variation: time beyond the median"),
    ]
