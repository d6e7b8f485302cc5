"""A classifier of shapes that leans on the job's own runs: fitted evenly over jobs, weighed on jobs it had not seen."""

import logging
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.pmf import Floats
from tasks.jobs.predict.classifier_lightgbm import LightGbm
from tasks.jobs.predict.classifier_params import ClassifierParams
from tasks.jobs.predict.classifiers import Fitted, fit_classifier
from tasks.jobs.predict.evidence import N_FOLDS, evidence_columns, evidence_of, fit_powers, group_folds, multiplied
from tasks.jobs.predict.period_so_far import SoFar
from tasks.jobs.shape_params import Kind
from tasks.jobs.shapes import Labels

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LabelledRows:
    """Rows of the training period that have a label: features (n, p), labels (n,), jobs (n,), weights (n,), and likely
    (n, k), the probability of each label."""

    frame: pd.DataFrame
    labels: Labels
    jobs: NDArray[np.object_]
    weights: Floats
    likely: Floats

    def of(self, chosen: NDArray[np.bool_]) -> "LabelledRows":
        """The chosen ones, (n,)."""
        return LabelledRows(
            self.frame[chosen], self.labels[chosen], self.jobs[chosen], self.weights[chosen], self.likely[chosen]
        )


def fit_rows(data: LabelledRows, k: int, settings: ClassifierParams) -> Fitted:
    """A classifier of k shapes that learns labels as sure as they are."""
    return fit_classifier(
        data.frame, data.labels, k, settings, groups=data.jobs, weights=data.weights, posteriors=data.likely
    )


def lean_on_evidence(
    fitted: Fitted, data: LabelledRows, features: pd.DataFrame, kind: Kind, k: int, settings: ClassifierParams
) -> tuple[Fitted, Floats | None]:
    """The classifier multiplied by the evidence of the job's own runs, weighed on jobs that it had not seen, and what
    it tells of the rows of data without having seen their jobs, (n, k).

    features: all of them, of the rows of data. Without a second fold, or evidence, the classifier as it is."""
    evidence = evidence_columns(features, kind, k)
    fold = group_folds(data.jobs, settings.seed)
    if not isinstance(fitted, LightGbm) or not evidence or len(np.unique(fold)) < N_FOLDS:
        return fitted, None
    unseen = np.empty((len(fold), k))
    for one in range(N_FOLDS):
        asked = fold == one
        unseen[asked] = fit_rows(data.of(~asked), k, settings).predict_proba(data.frame[asked])
    factors = [unseen, *evidence_of(features, evidence)]
    powers = fit_powers(factors, data.likely, data.weights)
    logger.info("%s: powers of trees, all earlier runs and the last ones: %s", kind, np.round(powers, 3))
    leaning = replace(fitted, evidence=evidence, evidence_powers=tuple(map(float, powers)))
    return leaning, multiplied(factors, powers)


def with_period(
    probabilities: Floats,
    unseen: Floats | None,
    so_far: SoFar,
    used: NDArray[np.intp],
    data: LabelledRows,
    kind: Kind,
) -> Floats:
    """The classifier's word multiplied by that of the period so far: (n, k). used: places of the rows of data.

    unseen: what the powers are fitted on; without it the classifier's word as it is."""
    if unseen is None:
        return probabilities
    powers = fit_powers([unseen, so_far.probabilities[used]], data.likely, data.weights)
    logger.info("%s: powers of the classifier and of the period so far: %s", kind, np.round(powers, 3))
    return multiplied([probabilities, so_far.probabilities], powers)


def even_over_jobs(jobs: NDArray[np.object_]) -> Floats:
    """Weights, (n,) with mean 1, so that each job counts the same, however often it ran."""
    _, number, sizes = np.unique(jobs, return_inverse=True, return_counts=True)
    weights = 1 / sizes[number]
    return np.asarray(weights / weights.mean())
