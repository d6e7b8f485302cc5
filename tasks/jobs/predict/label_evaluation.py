"""How well shapes are predicted as labels, beside the ceiling, the halves and the job's history."""

import logging
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.jobs.distribution import Floats
from tasks.jobs.predict import references
from tasks.jobs.predict.classifier_params import ClassifierParams, Method
from tasks.jobs.predict.classifier_report import (
    ClassifierReport,
    by_occurrences,
    by_source,
    importances,
    report_classifier,
)
from tasks.jobs.predict.classifiers import Fitted
from tasks.jobs.predict.evaluation_params import EvaluateParams
from tasks.jobs.predict.leaning import LabelledRows, even_over_jobs, fit_rows, lean_on_evidence, with_period
from tasks.jobs.predict.period_so_far import AtStart, at_start, known_so_far
from tasks.jobs.predict.preparation import Prepared
from tasks.jobs.predict.search import is_validation, sweep
from tasks.jobs.predict.selection import Selection, select_features
from tasks.jobs.predict.targets import count_runs, label_groups, label_instances, labels_by_part, posterior_instances
from tasks.jobs.shape_params import Kind
from tasks.jobs.shapes import (
    Labels,
    ShapeSet,
)

logger = logging.getLogger(__name__)
RIVALS: tuple[Method, ...] = ("forest", "ensemble")


@dataclass(frozen=True)
class LabelEvaluation:
    """Of one normalisation, on the test runs. report: of the classifier; start: of it, where no run of the period is
    known yet; so_far: with the runs of the period as far as they are known; rivals: accuracy by method; occurrences
    and sources: accuracy beside its references in slices; importances: feature, importance, kind; probabilities:
    (n, k) of all runs, by the classifier."""

    report: ClassifierReport
    start: AtStart
    so_far: ClassifierReport
    references: dict[str, references.Reference]
    rivals: dict[str, float | None]
    occurrences: pd.DataFrame
    sources: pd.DataFrame
    importances: pd.DataFrame
    gini: pd.DataFrame
    selection: Selection
    fitted: Fitted
    probabilities: Floats


def evaluate_labels(prepared: Prepared, kind: Kind, params: EvaluateParams) -> LabelEvaluation:
    """Learn the labels of D2 and score those of D3. Raises BadInput if no job has enough runs in D2 for a label.

    The label of a run is the most probable shape of all runs of its job in its own period. Source: Zhu et al., 5.2."""
    asked = params.predict
    posterior = asked.characterise.posterior
    runs, shapes, k = prepared.runs, prepared.shapes[kind], len(prepared.shapes[kind].centres)
    training, test = prepared.is_part("D2"), prepared.is_part("D3")
    parts = {"D2": training, "D3": test, "before": ~test}
    by_group = {name: label_groups(runs[rows], shapes, asked.labels, posterior) for name, rows in parts.items()}
    labels, keys = label_instances(runs["group_key"][training], by_group["D2"]), runs["group_key"]
    rows = _latest(labels >= 0, params.max_training_runs)
    used = np.flatnonzero(training)[rows]
    frame = prepared.job_features[training]
    jobs = keys[training].to_numpy()
    selection = select_features(frame.iloc[rows], labels[rows], jobs[rows], asked.selection)
    frame, kept = frame.iloc[rows], list(selection.kept)
    likely, weights = posterior_instances(keys[training].iloc[rows], by_group["D2"]), even_over_jobs(jobs[rows])
    data = LabelledRows(frame[kept], labels[rows], jobs[rows], weights, likely)
    settings = _searched(data, runs.iloc[used], shapes, params) if params.with_search else asked.classifier
    fitted, unseen = lean_on_evidence(
        fit_rows(data, k, settings), data, prepared.job_features.iloc[used], kind, k, settings
    )
    probabilities = fitted.predict_proba(prepared.job_features)
    known = known_so_far(runs, shapes, posterior)
    told = with_period(probabilities, unseen, known, used, data, kind)
    actual = label_instances(keys[test], by_group["D3"])
    report, so_far = (report_classifier(p[test], actual, keys[test].to_numpy()) for p in (probabilities, told))
    tables = {"model": report.by_group, "so_far": so_far.by_group, **_references(prepared, kind, by_group, params)}
    n_before = by_group["before"]["n_runs"]
    rivals, gini = _rivals(prepared, data, actual, params, k)
    return LabelEvaluation(
        report=report,
        start=_start(probabilities[test], actual, known.n_known[test], keys[test], tables["ceiling"]),
        so_far=so_far,
        references={name: references.summarise(table) for name, table in tables.items()},
        rivals=rivals,
        occurrences=by_occurrences(tables, n_before),
        sources=by_source(tables, by_group["D3"]["median_source"]),
        importances=importances(fitted),
        gini=gini,
        selection=selection,
        fitted=fitted,
        probabilities=probabilities,
    )


def _searched(data: LabelledRows, runs: pd.DataFrame, shapes: ShapeSet, params: EvaluateParams) -> ClassifierParams:
    """The settings that were best on the last part of the training rows; as asked for where a part has no label.

    runs: of the rows of data."""
    asked = params.predict
    is_later = is_validation(data.jobs, asked.search)
    rehearsed = labels_by_part(runs, is_later, shapes, asked.labels, asked.characterise.posterior)
    try:
        found = sweep(data.frame, rehearsed, data.jobs, len(shapes.centres), asked.classifier, asked.search)
    except BadInput as error:
        logger.warning("%s: no search, settings as they are: %s", shapes.bins.kind, error)
        return asked.classifier
    logger.info("%s: %d trials: %s", shapes.bins.kind, len(found.table), found.params.model_dump_json())
    return found.params


def _start(
    probabilities: Floats, actual: Labels, n_known: NDArray[np.int64], keys: pd.Series, ceiling: pd.DataFrame
) -> AtStart:
    """Of test runs: (n, k), (n,), (n,), (n,)."""
    is_labelled = actual >= 0
    is_right = (probabilities.argmax(axis=1) == actual)[is_labelled]
    return at_start(is_right, n_known[is_labelled] == 0, keys[is_labelled], ceiling)


def _references(
    prepared: Prepared, kind: Kind, by_group: dict[str, pd.DataFrame], params: EvaluateParams
) -> dict[str, pd.DataFrame]:
    labels, posterior = params.predict.labels, params.predict.characterise.posterior
    shapes, tested = prepared.shapes[kind], by_group["D3"]
    keys = pd.Index(tested.index)
    _, all_counts = count_runs(prepared.runs, shapes, keys)
    _, test_counts = count_runs(prepared.runs[prepared.is_part("D3")], shapes, keys)
    return {
        "ceiling": references.ceiling(tested, all_counts, shapes, labels, posterior),
        "split_half": references.split_half(tested, test_counts, shapes, labels, posterior),
        "history_baseline": references.history_baseline(tested, by_group["before"], labels),
    }


def _rivals(
    prepared: Prepared, data: LabelledRows, actual: NDArray[np.intp], params: EvaluateParams, k: int
) -> tuple[dict[str, float | None], pd.DataFrame]:
    """Accuracy of the other classifiers on the same rows, and the Gini importances of the forest."""
    found: dict[str, float | None] = {}
    gini = pd.DataFrame(columns=["feature", "importance", "kind"])
    if not params.with_rivals:
        return found, gini
    test = prepared.is_part("D3")
    data = data.of(np.arange(len(data.jobs)) >= len(data.jobs) - params.max_rival_runs)
    asked, keys = prepared.job_features.loc[test, list(data.frame)], prepared.runs["group_key"][test].to_numpy()
    for method in RIVALS:
        settings = params.predict.classifier.model_copy(update={"method": method})
        fitted = fit_rows(data, k, settings)
        found[method] = report_classifier(fitted.predict_proba(asked), actual, keys).accuracy
        gini = importances(fitted) if method == "forest" else gini
    return found, gini


def _latest(is_there: NDArray[np.bool_], most: int) -> NDArray[np.intp]:
    """The places of the last `most` of them."""
    return np.flatnonzero(is_there)[-most:]
