"""Gradient boosted trees over the features of runs: which known workload each is most like (CWD, RQ1).

Few runs and thousands of features: small leaves, shrinkage, a small share of the features for each tree, thresholds at
random as in extremely randomised trees, and several boosters averaged."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.boosters import ONE_THREAD, booster_from, lightgbm_alone
from tasks.errors import BadInput
from tasks.workloads.identify.features import Views
from tasks.workloads.identify.params import TreeParams
from tasks.workloads.telemetry import FloatArray

MAX_BIN = 63  # thresholds of a feature; there are seldom more runs of a workload


@dataclass(frozen=True)
class Trees:
    """classes: names of the workloads, sorted. columns: of each booster, the features that it reads. texts: boosters as
    LightGBM writes them, none where there is one class or no feature that varies; boosters: the same, ready to ask."""

    classes: tuple[str, ...]
    columns: Views
    texts: tuple[str, ...]
    boosters: tuple[Any, ...] = field(repr=False, compare=False)

    def probabilities(self, values: FloatArray) -> FloatArray:
        """(n_runs, n_classes), rows sum to 1. values: (n_runs, n_features), as in training."""
        if not self.boosters:
            return np.full((len(values), len(self.classes)), 1 / len(self.classes))
        if not len(values):
            return np.zeros((0, len(self.classes)))
        found = [
            one.predict(np.ascontiguousarray(values[:, own]), num_threads=1).reshape(len(values), -1)
            for one, own in zip(self.boosters, self.columns, strict=True)
        ]
        mean = np.mean(found, axis=0)
        return np.asarray(mean / mean.sum(axis=1, keepdims=True))


def fit_trees(
    features: FloatArray, labels: Sequence[str], params: TreeParams, seed: int, views: Views | None = None
) -> Trees:
    """Learn to tell workloads apart. features: (n_runs, n_features), finite; labels: of each run.

    views: columns that are learned from apart, all weighing the same; together where none are given. The result
    depends on the order of the rows. Raises BadInput without a run."""
    if not len(labels):
        raise BadInput("training runs", "none", "at least one labelled run", "record or ingest some")
    classes = tuple(sorted(set(labels)))
    is_varying = features.min(axis=0) < features.max(axis=0)
    varying = [own[is_varying[own]] for own in views or (np.arange(features.shape[1]),)]
    told = [own for own in varying if len(own)]
    if len(classes) == 1 or not told:
        return Trees(classes, (), (), ())
    numbers = np.array([classes.index(label) for label in labels])
    columns, texts = [], []
    for own in told:
        chosen = np.ascontiguousarray(features[:, own])
        columns += [own] * params.seeds
        texts += [_fit(chosen, numbers, len(classes), params, seed + at) for at in range(params.seeds)]
    return trees_from(classes, tuple(columns), texts)


def trees_from(classes: tuple[str, ...], columns: Views, texts: Sequence[str]) -> Trees:
    """Trees out of their texts, each with its columns.

    Raises BadInput if one is no model of so many features and classes."""
    boosters = tuple(booster_from(text, len(own)) for text, own in zip(texts, columns, strict=True))
    for booster in boosters:
        if booster.num_model_per_iteration() != len(classes):
            problem = f"trees for {booster.num_model_per_iteration()} workloads beside the names of {len(classes)}"
            raise BadInput("model", problem, "files of the same model", "train the model again")
    return Trees(classes, columns, tuple(texts), boosters)


def _fit(features: FloatArray, numbers: NDArray[np.int64], n_classes: int, params: TreeParams, seed: int) -> str:
    lightgbm = lightgbm_alone()
    settings: dict[str, Any] = {
        **ONE_THREAD,
        "force_row_wise": False,
        "force_col_wise": True,  # far more features than runs
        "objective": "multiclass",
        "num_class": n_classes,
        "learning_rate": params.learning_rate,
        "num_leaves": params.leaves,
        "min_data_in_leaf": params.min_leaf,
        "min_sum_hessian_in_leaf": 1e-6,
        "feature_fraction": params.feature_fraction,
        "bagging_fraction": params.bagging_fraction,
        "bagging_freq": 1,
        "lambda_l2": params.l2,
        "extra_trees": params.extra_trees,
        "max_bin": MAX_BIN,
        "min_data_in_bin": 1,
        "feature_pre_filter": False,
        "seed": seed,
    }
    counts = np.bincount(numbers, minlength=n_classes)
    weight = len(numbers) / (n_classes * counts[numbers]) if params.is_balanced else None
    data = lightgbm.Dataset(features, numbers, weight=weight, free_raw_data=True)
    return str(lightgbm.train(settings, data, params.rounds).model_to_string())
