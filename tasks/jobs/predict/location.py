"""The expected runtime of a run, given what is known when it is submitted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.boosters import matrix, train_booster
from tasks.jobs.distribution import Floats
from tasks.jobs.predict.predictor_params import LocationParams

MEDIAN = "log_median_before"


@dataclass(frozen=True)
class Location:
    """log expected runtime = log median of the job's earlier runs + trees of the features.

    booster: lightgbm.Booster of the log of runtime over that median; fallback_log_s: stands for the median of a job
    that has not run before."""

    booster: Any
    fallback_log_s: float

    def base_log_s(self, features: pd.DataFrame) -> Floats:
        """Log of the median of the job's earlier runs in seconds: (n,)."""
        if MEDIAN not in features:
            return np.full(len(features), self.fallback_log_s)
        return np.asarray(features[MEDIAN].fillna(self.fallback_log_s), dtype=float)

    def expected_log_s(self, features: pd.DataFrame) -> Floats:
        """Log of the expected runtime in seconds: (n,)."""
        if features.empty:
            return np.zeros(0)
        factors = self.booster.predict(matrix(features), num_threads=1)
        return np.asarray(self.base_log_s(features) + np.asarray(factors, dtype=float))


def fit_location(features: pd.DataFrame, log_runtime_s: Floats, params: LocationParams) -> tuple[Location, Floats]:
    """The model, and for each row the expectation of a model that did not see its stretch of time: (n,), log seconds.

    features, log_runtime_s: in order of submission. What a model expects of its own training runs is too good: the
    spread around it would come out too narrow."""
    fallback = float(np.median(log_runtime_s))
    n = len(log_runtime_s)
    n_folds = min(params.n_folds, n)
    fold = stretches(n, n_folds)
    held_out = np.empty(n)
    for one in range(n_folds):
        seen, asked = fold != one, fold == one
        if not seen.any():  # a single row
            held_out[asked] = fallback
            continue
        held_out[asked] = _fitted(features[seen], log_runtime_s[seen], fallback, params).expected_log_s(features[asked])
    return _fitted(features, log_runtime_s, fallback, params), held_out


def stretches(n: int, n_folds: int) -> NDArray[np.int64]:
    """The number of the stretch of time that each of n rows in order of submission lies in: (n,)."""
    return np.arange(n) * min(n_folds, n) // max(n, 1)


def _fitted(features: pd.DataFrame, log_runtime_s: Floats, fallback: float, params: LocationParams) -> Location:
    target = log_runtime_s - Location(None, fallback).base_log_s(features)
    settings = {
        "objective": "huber",
        "alpha": params.huber_delta,
        "num_leaves": params.num_leaves,
        "learning_rate": params.learning_rate,
        "min_data_in_leaf": params.min_leaf_runs,
        "feature_fraction": params.feature_share,
        "bagging_fraction": params.row_share,
        "bagging_freq": 1,
    }
    return Location(train_booster(features, target, settings, params.n_rounds, params.seed), fallback)
