"""Which shape a run's job will have: boosted trees on the features of the job, times what its own runs say.

    p ∝ trees^a · all earlier runs^b · last runs^c

Trees learn from as many labels as there are jobs, which is few; the posterior of a job's own earlier runs needs no
learning but takes every run for independent, and the job for unchanging. Three powers weigh them, fitted on
probabilities of trees that did not see the job. Source of the classifier: Zhu et al. 2023, section 5.2. Its voting
ensemble and its search of parameters were right less often than these trees on the logs at hand, and are not made."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from tasks.boosters import booster_from, matrix, train_booster
from tasks.jobs.normalisation import Floats
from tasks.jobs.params import Kind
from tasks.jobs.shapes import Labels

SETTINGS = {
    "objective": "multiclass",
    "metric": "multi_logloss",
    "learning_rate": 0.05,
    "num_leaves": 6,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 10.0,
}
MIN_LEAF = 50  # rows of a leaf; of few rows a tenth
LEAST_POSTERIOR = 0.02  # a label less likely is not learnt from
LEAST = 1e-4  # what a shape counts as that the evidence excludes
RIDGE = 1e-3
N_FOLDS = 5
PREFIXES = ("shape", "recent_shape")
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LabelledRows:
    """Rows of the training period: features (n, p), jobs (n,), and likely (n, k), the probability of each label."""

    features: pd.DataFrame
    jobs: NDArray[np.object_]
    likely: Floats

    @property
    def weights(self) -> Floats:
        """(n,) with mean 1, so that each job counts the same, however often it ran."""
        _, number, sizes = np.unique(self.jobs, return_inverse=True, return_counts=True)
        weights = 1 / sizes[number]
        return np.asarray(weights / weights.mean())


@dataclass(frozen=True)
class Frequencies:
    """The share of each shape among the training rows, whatever the features: where there is nothing to learn."""

    shares: Floats

    def predict_proba(self, frame: pd.DataFrame) -> Floats:
        """(n, k), rows sum to 1."""
        return np.tile(self.shares, (len(frame), 1))


@dataclass(frozen=True)
class LightGbm:
    """booster: lightgbm.Booster of k classes; columns: (p,) features in its order; present: (k,) had training rows.

    fills: (p,) the median of a feature that no training row lacks (LightGBM would take a missing one for 0), nan for
    one whose missing values were learnt from. evidence: columns of k probabilities each, by which the trees' own
    probabilities are multiplied, to the powers of evidence_powers (trees first, then each of them)."""

    booster: Any
    columns: tuple[str, ...]
    present: tuple[bool, ...]
    fills: tuple[float, ...]
    evidence: tuple[tuple[str, ...], ...] = ()
    evidence_powers: tuple[float, ...] = ()

    def predict_proba(self, frame: pd.DataFrame) -> Floats:
        """(n, k), rows sum to 1; 0 for a shape that no training row has, without evidence for it."""
        x, k = self.prepare(frame), len(self.present)
        if not len(x):
            return np.empty((0, k))
        p = np.asarray(self.booster.predict(x, num_threads=1), dtype=float).reshape(len(frame), k)
        p = p * np.array(self.present)
        p = p / p.sum(axis=1, keepdims=True)
        if not self.evidence:
            return np.asarray(p)
        return multiplied([p, *evidence_of(frame, self.evidence)], np.array(self.evidence_powers))

    def prepare(self, frame: pd.DataFrame) -> Floats:
        """What the booster is given: (n, p), columns found by name."""
        x = matrix(frame[list(self.columns)])
        return np.where(np.isnan(x), np.array(self.fills), x)

    def importances(self) -> pd.DataFrame:
        """feature, importance: the fall in loss over all splits (gain), 1 in sum, by falling importance."""
        gain = self.booster.feature_importance("gain")
        table = pd.DataFrame({"feature": self.columns, "importance": gain / (gain.sum() or 1.0)})
        return table.sort_values("importance", ascending=False, kind="stable", ignore_index=True)

    def to_texts(self) -> tuple[str, str]:
        """The trees as LightGBM's text, and the rest as JSON; from_texts gives a model with the same predictions."""
        fills = [None if np.isnan(fill) else fill for fill in self.fills]
        rest = {"columns": self.columns, "present": self.present, "fills": fills}
        rest |= {"evidence": self.evidence, "evidence_powers": self.evidence_powers}
        return self.booster.model_to_string(), json.dumps(rest)

    @classmethod
    def from_texts(cls, trees: str, rest: str) -> "LightGbm":
        """What to_texts wrote. Raises BadInput, ValueError, KeyError or TypeError for anything else."""
        content = json.loads(rest)
        columns, present = tuple(map(str, content["columns"])), tuple(map(bool, content["present"]))
        fills = tuple(np.nan if fill is None else float(fill) for fill in content["fills"])
        booster = booster_from(trees, len(columns))
        if len(fills) != len(columns) or booster.num_model_per_iteration() != len(present):
            raise ValueError("classifier: trees and columns do not agree")
        evidence = tuple(tuple(map(str, names)) for names in content["evidence"])
        return cls(booster, columns, present, fills, evidence, tuple(map(float, content["evidence_powers"])))


Classifier = LightGbm | Frequencies


def fit_classifier(data: LabelledRows, columns: Sequence[str], kind: Kind, *, n_rounds: int, seed: int) -> Classifier:
    """A classifier of the shapes of one kind.

    columns: the features that the trees get; the others may hold evidence. With one shape only, or no feature that
    varies, the answer is Frequencies; with fewer jobs than folds, or without evidence, the trees stand alone. The same
    rows and seed give the same model."""

    def fitted(rows: NDArray[np.bool_] | slice) -> Classifier:
        return _fit(data.features.loc[rows, list(columns)], data.likely[rows], data.weights[rows], n_rounds, seed)

    trees, k = fitted(slice(None)), data.likely.shape[1]
    # of all earlier runs, and the last ones, as far as the features have them
    named = [tuple(f"{prefix}_{kind}_{shape}" for shape in range(k)) for prefix in PREFIXES]
    evidence = tuple(names for names in named if set(names) <= set(data.features))
    codes, keys = pd.factorize(data.jobs)  # the rows of a job are in one fold
    fold = (np.random.default_rng(seed).permutation(len(keys)) % N_FOLDS)[codes]
    if isinstance(trees, Frequencies) or not evidence or len(np.unique(fold)) < N_FOLDS:
        return trees
    unseen = np.empty((len(fold), k))
    for held_out in range(N_FOLDS):
        unseen[fold == held_out] = fitted(fold != held_out).predict_proba(data.features[fold == held_out])
    powers = fit_powers([unseen, *evidence_of(data.features, evidence)], data.likely, data.weights)
    logger.info("%s: powers of trees, all earlier runs and the last ones: %s", kind, np.round(powers, 3))
    return LightGbm(trees.booster, trees.columns, trees.present, trees.fills, evidence, tuple(map(float, powers)))


def soften(frame: pd.DataFrame, likely: ArrayLike, weights: Floats) -> tuple[pd.DataFrame, Labels, Floats]:
    """Each row once for every shape that its job may have: rows, labels and weights, (m, p), (m,), (m,) with m >= n.

    likely: (n, k), of which those below LEAST_POSTERIOR count as 0; weights: (n,). A label from ten runs is often a
    coin toss between two shapes; learnt as certain, it is what a classifier learns by heart."""
    p = np.array(likely, dtype=float)
    p[p < LEAST_POSTERIOR] = 0.0
    p /= p.sum(axis=1, keepdims=True)
    rows, shapes = np.nonzero(p)
    return frame.iloc[rows], shapes, p[rows, shapes] * weights[rows]


def evidence_of(frame: pd.DataFrame, evidence: Sequence[Sequence[str]]) -> list[Floats]:
    """Probabilities of the shapes by each kind of evidence, (n, k) each; all alike for a job without earlier runs."""
    return [frame[list(names)].fillna(1 / len(names)).to_numpy(dtype=float) for names in evidence]


def multiplied(factors: Sequence[Floats], powers: Floats) -> Floats:
    """The product of the factors, (n, k) each, to their powers, scaled to rows of sum 1."""
    logs = np.tensordot(powers, np.log(np.maximum(np.stack(factors), LEAST)), axes=1)
    logs = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(logs / logs.sum(axis=1, keepdims=True))


def fit_powers(factors: Sequence[Floats], likely: Floats, weights: Floats) -> Floats:
    """The powers of 0 or more that make the labels most likely: (n_factors,).

    likely: (n, k) probability of each label; weights: (n,). A small ridge keeps them near 0 where all are alike."""
    from scipy.optimize import minimize

    def loss(powers: Floats) -> float:
        logs = np.log(np.maximum(multiplied(factors, powers), LEAST))
        return float(-(weights[:, None] * likely * logs).sum() / weights.sum() + RIDGE * (powers**2).sum())

    start = np.full(len(factors), 1 / len(factors))
    return np.asarray(minimize(loss, start, bounds=[(0.0, 3.0)] * len(factors), method="L-BFGS-B").x)


def _fit(frame: pd.DataFrame, likely: Floats, weights: Floats, n_rounds: int, seed: int) -> Classifier:
    rows, labels, sure = soften(frame, likely, weights)
    k, x = likely.shape[1], matrix(rows)
    is_varying = any(len(np.unique(column)) > 1 for column in x.T)
    if len(np.unique(labels)) == 1 or not is_varying:
        counts = np.bincount(labels, sure, minlength=k)
        return Frequencies(counts / counts.sum())
    settings = SETTINGS | {"num_class": k, "min_data_in_leaf": min(MIN_LEAF, max(len(x) // 10, 1))}
    booster = train_booster(rows, labels.astype(float), settings, n_rounds, seed, weights=sure)
    fills = tuple(float(np.median(column)) for column in x.T)  # NaN where one is missing
    present = tuple(bool(n) for n in np.bincount(labels, minlength=k))
    return LightGbm(booster, tuple(map(str, frame)), present, fills)
