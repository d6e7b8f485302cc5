"""Gradient-boosted quantiles: one LightGBM model for each of some levels, on the features that the forest has too.

A part of the predictor's pool and, by itself with more levels, the baseline that an expert writes in an hour. Where one
feature says nearly all, boosting follows it closer than the leaves of a forest do."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.boosters import booster_from, matrix, train_booster
from tasks.jobs.distribution import Floats
from tasks.jobs.predict.pool import LEVELS

BOOSTED = "boosted.json"
SETTINGS = {
    "objective": "quantile",
    "num_leaves": 31,
    "learning_rate": 0.06,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.7,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
}


@dataclass(frozen=True)
class Boosted:
    """levels: (n_models,) ascending, at least two; boosters: lightgbm.Booster of each."""

    levels: Floats
    boosters: tuple[Any, ...]

    def quantiles(self, features: pd.DataFrame) -> Floats:
        """Quantiles at LEVELS: (n, n_levels). features: (n, p), in the order of training.

        Those of the models are sorted (Chernozhukov et al. 2010) and interpolated; the ends go on as the last two."""
        if features.empty:
            return np.zeros((0, len(LEVELS)))
        rows = matrix(features)
        told = np.sort(np.column_stack([one.predict(rows, num_threads=1) for one in self.boosters]), axis=1)
        place = np.clip(np.searchsorted(self.levels, LEVELS), 1, len(self.levels) - 1)
        share = (LEVELS - self.levels[place - 1]) / (self.levels[place] - self.levels[place - 1])
        return np.sort(told[:, place - 1] + share * (told[:, place] - told[:, place - 1]), axis=1)

    def save(self, folder: Path) -> None:
        """Write everything into an existing folder."""
        models = dict(zip(self.levels.tolist(), (one.model_to_string() for one in self.boosters), strict=True))
        (folder / BOOSTED).write_text(json.dumps(models), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, n_features: int) -> Self:
        """What save wrote. Raises BadInput, OSError, ValueError or AttributeError for anything else."""
        models = json.loads((folder / BOOSTED).read_text(encoding="utf-8"))
        levels = np.array([float(level) for level in models])
        if len(levels) < 2 or not (np.diff(levels, prepend=0.0, append=1.0) > 0).all():
            raise ValueError(f"levels {list(models)}; expected some that ascend between 0 and 1")
        return cls(levels, tuple(booster_from(text, n_features) for text in models.values()))


def fit_boosted(
    features: pd.DataFrame, values: Floats, levels: NDArray[np.float64], *, n_trees: int, seed: int
) -> Boosted:
    """Boosted quantiles of values, (n,), such as logs of runtimes; features: (n, p). Raises BadInput without a row."""
    boosters = (train_booster(features, values, SETTINGS | {"alpha": level}, n_trees, seed) for level in levels)
    return Boosted(np.asarray(levels), tuple(boosters))
