"""The spread of runtimes around the expected one: a forest whose leaves hold the distributions of their runs.

The prediction for a run is the mean of the distributions in the leaves that it falls into (quantile regression
forest, Meinshausen 2006), over bins."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from tasks.boosters import matrix, train_booster
from tasks.jobs.distribution import Floats
from tasks.jobs.predict.predictor_params import SpreadParams
from tasks.jobs.predict.residual_grid import ResidualGrid, make_grid


@dataclass(frozen=True)
class Spread:
    """forest: lightgbm.Booster; first_leaf: (n_trees,) number of each tree's first leaf; leaf_masses: (n_leaves,
    n_bins), rows sum to 1; overall: (n_bins,), of all runs; both unsmoothed."""

    forest: Any
    first_leaf: NDArray[np.int64]
    leaf_masses: Floats
    overall: Floats
    grid: ResidualGrid

    def masses(self, features: pd.DataFrame, params: SpreadParams) -> Floats:
        """Probability of each bin of runtime over expected runtime: (n, n_bins), rows sum to 1."""
        n, n_trees = len(features), len(self.first_leaf)
        leaves = self._leaves(features)
        mixed = sparse.csr_matrix(
            (np.full(leaves.size, 1 / n_trees), leaves.ravel(), np.arange(n + 1) * n_trees),
            shape=(n, len(self.leaf_masses)),
        )
        found = (1 - params.overall_share) * (mixed @ self.leaf_masses) + params.overall_share * self.overall
        smoothed = self.grid.smoothed(found, params.smoothing_bins)
        return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))

    def _leaves(self, features: pd.DataFrame) -> NDArray[np.int64]:
        if features.empty:
            return np.zeros((0, len(self.first_leaf)), dtype=np.int64)
        found = self.forest.predict(matrix(features), pred_leaf=True, num_threads=1)
        return np.asarray(found, dtype=np.int64).reshape(len(features), -1) + self.first_leaf


def fit_spread(features: pd.DataFrame, log_residuals: Floats, params: SpreadParams) -> Spread:
    """A forest of log_residuals, (n,), the logs of runtime over expected runtime; features: (n, p)."""
    settings = {
        "objective": "regression",
        "boosting": "rf",
        "learning_rate": 1.0,
        "num_leaves": params.num_leaves,
        "min_data_in_leaf": params.min_leaf_runs,
        "feature_fraction_bynode": params.feature_share,
        "bagging_fraction": params.row_share,
        "bagging_freq": 1,
    }
    grid = make_grid(params)
    forest = train_booster(features, log_residuals, settings, params.n_trees, params.seed)
    n_leaves = np.array([tree["num_leaves"] for tree in forest.dump_model()["tree_info"]], dtype=np.int64)
    first_leaf = np.concatenate([[0], np.cumsum(n_leaves)[:-1]]).astype(np.int64)
    empty = Spread(forest, first_leaf, np.zeros((int(n_leaves.sum()), grid.n_bins)), np.zeros(grid.n_bins), grid)
    leaves, bins = empty._leaves(features), grid.index(log_residuals)
    cells = leaves * grid.n_bins + bins[:, None]
    counts = np.bincount(cells.ravel(), minlength=empty.leaf_masses.size).reshape(empty.leaf_masses.shape)
    overall = (np.bincount(bins, minlength=grid.n_bins) + 1 / grid.n_bins) / (len(bins) + 1)
    sizes = counts.sum(axis=1, keepdims=True)
    return Spread(forest, first_leaf, np.where(sizes > 0, counts / np.maximum(sizes, 1), overall), overall, grid)
