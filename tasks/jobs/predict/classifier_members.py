"""The classifiers that are fitted for comparison and dropped: a random forest, and the members of the ensemble."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.jobs.pmf import Floats
from tasks.jobs.predict.classifier_lightgbm import fit_lightgbm
from tasks.jobs.predict.classifier_params import ClassifierParams
from tasks.jobs.predict.classifiers import Fitted
from tasks.jobs.predict.filling import Filling, learn_filling
from tasks.jobs.shapes import Labels

ENSEMBLE = ("forest", "lightgbm", "gradient_boosting", "naive_bayes", "xgboost")  # section 5.2
INDICATOR_SHARE = 0.01  # of missing values from which a filled column gets one that says so
BOOSTING_DEPTH = 3
LARGEST = 1e30  # that trees are given; they count in 32 bits
BOOSTING_ROW_SHARE = 0.5


@dataclass(frozen=True)
class Member:
    """A scikit-learn model of the shapes with training rows. shapes: (m,) its classes; k: of all shapes.

    filling: what the features go through first; without one the model takes missing values itself."""

    model: Any
    columns: tuple[str, ...]
    shapes: Labels
    k: int
    filling: Filling | None = None

    @property
    def classes(self) -> Labels:
        return np.arange(self.k)

    def predict_proba(self, frame: pd.DataFrame) -> Floats:
        probabilities = np.zeros((len(frame), self.k))
        if not frame.empty:
            x = _finite(frame[list(self.columns)]) if self.filling is None else self.filling.apply(frame)
            with threadpool_limits(1):
                probabilities[:, self.shapes] = self.model.predict_proba(x)
        return probabilities


def fit_member(
    name: str, frame: pd.DataFrame, labels: Labels, k: int, params: ClassifierParams, weights: Floats | None
) -> Fitted:
    """One of ENSEMBLE; for xgboost, where it is not installed, scikit-learn's HistGradientBoosting."""
    if name == "lightgbm":
        return fit_lightgbm(frame, labels, k, params, weights=weights)
    makers = {
        "forest": _forest,
        "gradient_boosting": _gradient_boosting,
        "naive_bayes": _naive_bayes,
        "xgboost": _xgboost if has_xgboost() else _hist_gradient_boosting,
    }
    model = makers[name](params)
    # a feature that is always missing stops scikit-learn's histograms
    frame = frame.loc[:, np.isfinite(frame.to_numpy(dtype=float)).any(axis=0)]
    columns, filling = tuple(str(column) for column in frame), None
    if name in ("gradient_boosting", "naive_bayes"):
        filling = learn_filling(frame, indicator_share=INDICATOR_SHARE)
    x = _finite(frame) if filling is None else filling.apply(frame)
    if name == "gradient_boosting" and len(x) > params.boosting_max_rows:
        rows = np.sort(np.random.default_rng(params.seed).permutation(len(x))[: params.boosting_max_rows])
        x, labels, weights = x[rows], labels[rows], None if weights is None else weights[rows]
    shapes, codes = np.unique(labels, return_inverse=True)  # xgboost wants 0 … m - 1
    with threadpool_limits(1):
        model.fit(x, codes, sample_weight=weights)
    return Member(model, columns, shapes, k, filling)


def has_xgboost() -> bool:
    """Is the optional xgboost installed?"""
    return find_spec("xgboost") is not None


def _finite(frame: pd.DataFrame) -> Floats:
    x = np.array(frame, dtype=float)
    x[~np.isfinite(x)] = np.nan
    return np.asarray(np.clip(x, -LARGEST, LARGEST))


def _forest(params: ClassifierParams) -> Any:
    from sklearn.ensemble import RandomForestClassifier  # type: ignore[import-untyped, unused-ignore]

    return RandomForestClassifier(
        params.forest_trees,
        min_samples_leaf=params.forest_min_leaf,
        max_features=params.forest_feature_share,
        n_jobs=1,
        random_state=params.seed,
    )


def _gradient_boosting(params: ClassifierParams) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier  # type: ignore[import-untyped, unused-ignore]

    return GradientBoostingClassifier(
        n_estimators=params.boosting_trees,
        max_depth=BOOSTING_DEPTH,
        max_features="sqrt",
        subsample=BOOSTING_ROW_SHARE,
        random_state=params.seed,
    )


def _naive_bayes(_: ClassifierParams) -> Any:
    from sklearn.naive_bayes import GaussianNB  # type: ignore[import-untyped, unused-ignore]

    return GaussianNB()


def _hist_gradient_boosting(params: ClassifierParams) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier  # type: ignore[import-untyped, unused-ignore]

    return HistGradientBoostingClassifier(
        max_iter=params.boosting_trees, max_leaf_nodes=params.n_leaves, early_stopping=False, random_state=params.seed
    )


def _xgboost(params: ClassifierParams) -> Any:
    from xgboost import XGBClassifier  # type: ignore[import-not-found, unused-ignore]

    return XGBClassifier(
        n_estimators=params.boosting_trees,
        max_depth=BOOSTING_DEPTH,
        subsample=BOOSTING_ROW_SHARE,
        random_state=params.seed,
        n_jobs=1,
    )
