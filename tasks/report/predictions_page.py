"""The page about what comes next in one source: shapes, predictions, reasons and what-ifs, from the warehouse only."""

import logging
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.jobs.params import ReportParams
from tasks.jobs.shape_params import Kind
from tasks.report.jobs_page import DrawnFigure, drawn
from tasks.report.page import render, write_page
from tasks.report.predictions_data import AnsweredWhatIf, PredictionsData, fetch_predictions_data
from tasks.report.predictions_shapes import KindOfShapes, figures_of_shapes
from tasks.report.predictions_words import change_rows, check_rows, ends, factor, label_rows, predictor_rows, whole
from tasks.report.style import plain_label
from tasks.report.whatif_figures import migration_figure
from tasks.report.whatif_migration import MigrationMap
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import code_version

logger = logging.getLogger(__name__)

MADE_BY = ("characterise", "train", "predict", "explain", "whatif")
SENTENCE_CHARS = 600
DEFAULTS = ReportParams()


@dataclass(frozen=True)
class DrawnShapes:
    """The shapes of one normalisation as the page shows them."""

    kind: str
    found: KindOfShapes
    figures: list[DrawnFigure]


@dataclass(frozen=True)
class ShownWhatIf:
    """One scenario as the page shows it; migration is None where no run has a predicted shape."""

    found: AnsweredWhatIf
    changes: list[dict[str, str]]
    n_runs: int
    n_jobs: int
    migration: DrawnFigure | None


def render_predictions(warehouse: Warehouse, source: str, params: ReportParams = DEFAULTS) -> Path:
    """Write <home>/reports/jobs-<source>-predictions.html and return its path; a part without rows says how to make it.

    Raises NotFound if the source has no runs, BadInput if it mixes simulated with measured ones."""
    data = fetch_predictions_data(warehouse, source, params)
    path = write_page(warehouse.home / "reports", f"jobs-{source}-predictions", predictions_text(data, params.n_rows))
    logger.info("wrote %s", path)
    return path


def predictions_text(data: PredictionsData, n_rows: int) -> str:
    """The HTML of the page; the same data give the same text."""
    return render(
        "predictions.html",
        {
            "data": data,
            "n_rows": n_rows,
            "shapes": [_shapes(kind, found) for kind, found in data.shapes.items()],
            "predictors": predictor_rows(data.figures),
            "labels": label_rows(data.figures),
            "checks": check_rows(data.explained.checks),
            "families": _families(data),
            "what_ifs": [_what_if(place, found) for place, found in enumerate(data.what_ifs)],
            "commands": {verb: shlex.join(["whorl", "jobs", verb, "--source", data.source]) for verb in MADE_BY},
            "again": shlex.join(["whorl", "report", "jobs", "--source", data.source]),
            "whole": whole,
            "factor": factor,
            "ends": ends,
            "sentence": lambda text: plain_label(str(text), SENTENCE_CHARS),
            "code_version": f"whorl {code_version()}",
        },
    )


def _shapes(kind: Kind, found: KindOfShapes) -> DrawnShapes:
    return DrawnShapes(kind, found, [drawn(figure) for figure in figures_of_shapes(kind, found.found)])


def _families(data: PredictionsData) -> list[dict[str, Any]]:
    """One row a family of features, by its share in the expected runtimes, with its shares in the variation."""
    families = data.explained.families
    of_runtime = families[families["question"] == "runtime"]
    shares = {(row["question"], row["family"]): row["share"] for row in families.to_dict("records")}
    return [
        {
            **{str(name): value for name, value in row.items()},
            **{kind: shares.get((kind, row["family"])) for kind in ("ratio", "delta")},
        }
        for row in of_runtime.sort_values("rank").to_dict("records")
    ]


def _what_if(place: int, found: AnsweredWhatIf) -> ShownWhatIf:
    migration = None
    if found.moves.any():
        migration = drawn(migration_figure(MigrationMap(found.moves, found.scenario), f"migration-{place}"))
    n_runs, n_jobs = int(found.changes["n_runs"].max()), int(found.changes["n_jobs"].max())
    return ShownWhatIf(found, change_rows(found.changes), n_runs, n_jobs, migration)
