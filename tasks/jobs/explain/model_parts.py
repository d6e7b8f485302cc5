"""SHAP values of a trained model: of the expected runtime, of each shape, and of the odds of the variable shapes."""

import math

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from tasks.jobs.explain.contributions import Contributions, contributions
from tasks.jobs.explain.odds import towards
from tasks.jobs.predict.classifier_lightgbm import LightGbm
from tasks.jobs.predict.evidence import LEAST, evidence_of
from tasks.jobs.predict.trained import Trained


def runtime_parts(trained: Trained, features: pd.DataFrame) -> Contributions:
    """What each feature adds to the log of expected runtime over the median of the job's earlier runs: one score.

    features: of Trained.features, (n, p)."""
    return contributions(trained.model.location.booster, features[list(trained.model.columns)], 1)


def shape_parts(classifier: LightGbm, features: pd.DataFrame) -> Contributions:
    """What each feature adds to the log-probability of each shape, up to a constant: k scores.

    Their softmax is what the classifier predicts. The trees' scores are divided by its temperature, and a shape that no
    training run had has base -inf. Where earlier runs are evidence, log-probabilities are added by their powers: that
    of a shape counts from the same for all shapes, and the least that the trees' word counts for stands in the base.
    features: a frame with its columns, and those of the evidence, among others."""
    k, present = len(classifier.present), np.array(classifier.present)
    frame = pd.DataFrame(classifier.prepare(features), columns=classifier.booster.feature_name())
    raw = contributions(classifier.booster, frame, k)
    added = np.stack([raw.to_score(shape) for shape in range(k)], axis=2) / classifier.temperature  # (n, p, k)
    added = np.where(present, added, 0.0)
    base = np.where(present, raw.base / classifier.temperature, -np.inf)
    of_trees = Contributions(added, base, classifier.columns)
    return _with_evidence(of_trees, classifier, features) if classifier.evidence else of_trees


def _with_evidence(trees: Contributions, classifier: LightGbm, features: pd.DataFrame) -> Contributions:
    """The trees' contributions to the power of the trees, and those of the evidence: see predict/evidence.py."""
    power, k = classifier.evidence_powers[0], trees.k
    scores = trees.raw  # (n, k)
    floor = math.log(LEAST) + logsumexp(scores, axis=1, keepdims=True)
    names = [*trees.features, *(name for each in classifier.evidence for name in each if name not in trees.features)]
    added = np.zeros((len(scores), len(names), k))
    added[:, : len(trees.features)] = power * np.stack([trees.to_score(shape) for shape in range(k)], axis=2)
    base = power * np.maximum(scores, floor) - added.sum(axis=1)
    told = evidence_of(features, classifier.evidence)
    for strength, columns, likely in zip(classifier.evidence_powers[1:], classifier.evidence, told, strict=True):
        for shape, name in enumerate(columns):
            added[:, names.index(name), shape] += strength * np.log(np.maximum(likely[:, shape], LEAST) * k)
    return Contributions(added, base, tuple(names))


def variable_shapes(k: int) -> tuple[int, ...]:
    """The more variable half of k shapes, which are numbered by rising 25th-75th gap; of an odd number the smaller."""
    return tuple(range(k - k // 2, k))


def variable_parts(classifier: LightGbm, features: pd.DataFrame) -> Contributions | None:
    """What each feature adds to the log-odds of the variable shapes, one score; None where it knows no two sides."""
    parts = shape_parts(classifier, features)
    shapes, known = variable_shapes(parts.k), parts.knows
    is_variable = np.isin(np.arange(parts.k), shapes)
    if not (known & is_variable).any() or not (known & ~is_variable).any():
        return None
    return towards(parts, shapes)
