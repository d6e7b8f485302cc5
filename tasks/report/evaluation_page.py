"""The page of an evaluation: shapes, right labels, predicted distributions and their rivals, one job followed."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from tasks.jobs.evaluate import Evaluation
from tasks.jobs.labels.evaluation import LabelEvaluation
from tasks.jobs.predict.feature_words import feature_of
from tasks.jobs.predict.runtime_evaluation import table_of
from tasks.jobs.shape_params import Kind
from tasks.report.explain_figures import importance_figure
from tasks.report.explain_importance import Importances
from tasks.report.jobs_figures import FigureOfPage
from tasks.report.jobs_page import drawn
from tasks.report.page import render, write_page
from tasks.report.prediction_by_history import AccuracyBand, AccuracyByHistory
from tasks.report.prediction_calibration import CalibrationCheck
from tasks.report.prediction_confusion import Confusion
from tasks.report.prediction_distances import DistanceComparison
from tasks.report.prediction_fan import Fan, fan_of
from tasks.report.prediction_figures import (
    accuracy_figure,
    calibration_figure,
    confusion_figure,
    distances_figure,
    fan_figure,
    quantiles_figure,
)
from tasks.report.prediction_quantiles import QuantileComparison
from tasks.report.predictions_words import PREDICTORS
from tasks.report.shapes_cov_faults import find_cov_faults
from tasks.report.shapes_figures import cov_figure, shapes_figure
from tasks.report.shapes_panels import ShapePanels

SHOWN = ("model", "history", "forest", "global")
LINES = PREDICTORS | {
    "soft_ratio": "shapes mixed by probability, × median",
    "leaning_ratio": "the same, leaning on own runs",
}


def render_evaluation(found: Evaluation, name: str, folder: Path) -> Path:
    """Write <folder>/jobs-evaluation.html and return its path; name: of the log, for the heading."""
    table = table_of(found.runtimes).set_index("predictor")
    rows = [{"name": words, **table.loc[key].to_dict()} for key, words in LINES.items() if key in table.index]
    figures = [drawn(figure) for figure in figures_of_evaluation(found)]
    values = {"name": name, "figures": figures, "found": found.figures, "rows": rows}
    return write_page(folder, "jobs-evaluation", render("evaluation.html", values))


def figures_of_evaluation(found: Evaluation) -> Iterator[FigureOfPage]:
    """The figures in the order of the page."""
    yield fan_figure(_fan(found))
    yield calibration_figure(CalibrationCheck(found.runtimes.scored["model"].pit))
    yield quantiles_figure(QuantileComparison({name: found.runtimes.scored[name].pooled for name in SHOWN}))
    yield distances_figure(DistanceComparison({name: found.runtimes.scored[name].ks_group for name in SHOWN}))
    for kind, shapes in found.prepared.shapes.items():
        table = found.prepared.tables.get(kind)
        yield shapes_figure(None if table is None else ShapePanels(shapes, table), kind)
    for kind, labels in found.labels.items():
        yield from _label_figures(kind, labels)
    yield cov_figure(find_cov_faults(found.prepared.runs))


def _label_figures(kind: Kind, labels: LabelEvaluation) -> Iterator[FigureOfPage]:
    bands = [
        AccuracyBand(row["slice"], row["n_runs"], row["model"], row["ceiling"], row["history_baseline"])
        for row in labels.occurrences.to_dict("records")
    ]
    yield accuracy_figure(AccuracyByHistory(bands), kind)
    yield confusion_figure(Confusion(labels.report.confusion), kind)
    if kind == "ratio" and len(labels.importances):
        words = [feature_of(name).words for name in labels.importances["feature"]]
        table = labels.importances.assign(words=words)[["words", "importance"]]
        yield importance_figure(Importances(table, "gain", labels.report.n))


def _fan(found: Evaluation) -> Fan | None:
    """The job that took most time in the test period, of those with enough runs there."""
    runs, rows = found.prepared.runs, found.runtimes.rows
    tested = runs.iloc[rows]
    sizes, sums = tested.groupby("group_key").size(), tested.groupby("group_key")["runtime_s"].sum()
    enough = sums[sizes >= min(20, int(sizes.max()))]
    if enough.empty:
        return None
    job = str(enough.idxmax())
    at = np.flatnonzero((tested["group_key"] == job).to_numpy())
    before: pd.DataFrame = runs[(runs["group_key"] == job) & (runs["submitted_at"] < tested["submitted_at"].min())]
    return fan_of(job, tested.iloc[at], found.runtimes.predicted.rows(at), before[["submitted_at", "runtime_s"]])
