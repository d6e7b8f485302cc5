"""How well shapes are predicted as labels, beside the ceiling, the halves and the job's history."""

import logging
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.distribution import Floats
from tasks.jobs.predict import references
from tasks.jobs.predict.classifier_lightgbm import LightGbm
from tasks.jobs.predict.classifier_params import ClassifierParams, Method
from tasks.jobs.predict.classifier_report import (
    ClassifierReport,
    by_occurrences,
    by_source,
    importances,
    report_classifier,
)
from tasks.jobs.predict.classifiers import Fitted, fit_classifier
from tasks.jobs.predict.evaluation_params import EvaluateParams
from tasks.jobs.predict.evidence import N_FOLDS, evidence_columns, evidence_of, fit_powers, group_folds
from tasks.jobs.predict.preparation import Prepared
from tasks.jobs.predict.search import is_validation, sweep
from tasks.jobs.predict.selection import Selection, select_features
from tasks.jobs.predict.targets import (
    count_runs,
    label_groups,
    label_instances,
    labels_by_part,
    posterior_instances,
)
from tasks.jobs.shape_params import Kind

logger = logging.getLogger(__name__)
RIVALS: tuple[Method, ...] = ("forest", "ensemble")


@dataclass(frozen=True)
class LabelEvaluation:
    """Of one normalisation. report: of the classifier on the test runs; rivals: accuracy by method; occurrences and
    sources: accuracy beside its references in slices; importances: feature, importance, kind; probabilities: (n, k)
    of all runs."""

    report: ClassifierReport
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
    frame = prepared.features[training]
    jobs = keys[training].to_numpy()
    selection = select_features(frame.iloc[rows], labels[rows], jobs[rows], asked.selection)
    frame, kept = frame.iloc[rows], list(selection.kept)
    likely, weights = posterior_instances(keys[training].iloc[rows], by_group["D2"]), _even_over_jobs(jobs[rows])
    settings = asked.classifier
    if params.with_search:
        rehearsed = labels_by_part(
            runs[training].iloc[rows], is_validation(jobs[rows], asked.search), shapes, asked.labels, posterior
        )
        settings = sweep(frame[kept], rehearsed, jobs[rows], k, settings, asked.search).params
    data = _TrainingRows(frame[kept], labels[rows], jobs[rows], weights, likely)
    fitted = _leaning_on_evidence(_fitted(data, k, settings), data, prepared.features.iloc[used], kind, k, settings)
    probabilities = fitted.predict_proba(prepared.features)
    actual = label_instances(keys[test], by_group["D3"])
    report = report_classifier(probabilities[test], actual, keys[test].to_numpy())
    tables = {"model": report.by_group, **_references(prepared, kind, by_group, params)}
    n_before = by_group["before"]["n_runs"]
    rivals, gini = _rivals(prepared, data, actual, params, k)
    return LabelEvaluation(
        report=report,
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


@dataclass(frozen=True)
class _TrainingRows:
    frame: pd.DataFrame
    labels: NDArray[np.intp]
    jobs: NDArray[np.object_]
    weights: Floats
    likely: Floats

    def of(self, chosen: NDArray[np.bool_]) -> "_TrainingRows":
        return _TrainingRows(
            self.frame[chosen], self.labels[chosen], self.jobs[chosen], self.weights[chosen], self.likely[chosen]
        )


def _fitted(data: _TrainingRows, k: int, settings: ClassifierParams) -> Fitted:
    return fit_classifier(
        data.frame, data.labels, k, settings, groups=data.jobs, weights=data.weights, posteriors=data.likely
    )


def _leaning_on_evidence(
    fitted: Fitted, data: _TrainingRows, features: pd.DataFrame, kind: Kind, k: int, settings: ClassifierParams
) -> Fitted:
    """The classifier multiplied by the evidence of the job's own runs, weighed on jobs that it had not seen.

    features: all of them, of the rows of data. Without a second fold, or evidence, the classifier as it is."""
    evidence = evidence_columns(features, kind, k)
    fold = group_folds(data.jobs, settings.seed)
    if not isinstance(fitted, LightGbm) or not evidence or len(np.unique(fold)) < N_FOLDS:
        return fitted
    unseen = np.empty((len(fold), k))
    for one in range(N_FOLDS):
        asked = fold == one
        unseen[asked] = _fitted(data.of(~asked), k, settings).predict_proba(data.frame[asked])
    powers = fit_powers([unseen, *evidence_of(features, evidence)], data.likely, data.weights)
    logger.info("%s: powers of trees, all earlier runs and the last ones: %s", kind, np.round(powers, 3))
    return replace(fitted, evidence=evidence, evidence_powers=tuple(map(float, powers)))


def _rivals(
    prepared: Prepared, data: _TrainingRows, actual: NDArray[np.intp], params: EvaluateParams, k: int
) -> tuple[dict[str, float | None], pd.DataFrame]:
    """Accuracy of the other classifiers on the same rows, and the Gini importances of the forest."""
    found: dict[str, float | None] = {}
    gini = pd.DataFrame(columns=["feature", "importance", "kind"])
    if not params.with_rivals:
        return found, gini
    test = prepared.is_part("D3")
    data = data.of(np.arange(len(data.jobs)) >= len(data.jobs) - params.max_rival_runs)
    asked, keys = prepared.features.loc[test, list(data.frame)], prepared.runs["group_key"][test].to_numpy()
    for method in RIVALS:
        settings = params.predict.classifier.model_copy(update={"method": method})
        fitted = _fitted(data, k, settings)
        found[method] = report_classifier(fitted.predict_proba(asked), actual, keys).accuracy
        gini = importances(fitted) if method == "forest" else gini
    return found, gini


def _even_over_jobs(jobs: NDArray[np.object_]) -> Floats:
    """Weights, (n,) with mean 1, so that each job counts the same, however often it ran."""
    _, number, sizes = np.unique(jobs, return_inverse=True, return_counts=True)
    weights = 1 / sizes[number]
    return np.asarray(weights / weights.mean())


def _latest(is_there: NDArray[np.bool_], most: int) -> NDArray[np.intp]:
    """The places of the last `most` of them."""
    return np.flatnonzero(is_there)[-most:]
