"""A quantile regression forest: the training runs that share a leaf with a submission say how long it may take.

The trees are LightGBM's random forest of the log of runtime; the distribution of a submission weighs each training run
by how often, over the trees, it lies in the same leaf (Meinshausen 2006, section 2). Runtimes are held as atoms, a few
hundred quantiles of the training runs, so that a prediction is one product of sparse matrices."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from tasks.boosters import booster_from, matrix, train_booster
from tasks.jobs.distribution import Floats

N_ATOMS = 400
BLOCK = 1_000  # submissions worked on together: their weights, 3 MB, stay in the cache of a core
ROUNDING = 1e-12  # of sums of weights
LEAVES_OF_TREE = re.compile(r"^num_leaves=(\d+)$", re.MULTILINE)
TREES, LEAVES, ATOMS = "forest.txt", "forest-leaves.parquet", "forest-atoms.parquet"
SETTINGS = {
    "objective": "regression",
    "boosting": "rf",
    "num_leaves": 1023,
    "min_data_in_leaf": 10,
    "feature_fraction_bynode": 0.8,
    "bagging_fraction": 0.632,
    "bagging_freq": 1,
}


@dataclass(frozen=True)
class Forest:
    """booster: lightgbm.Booster; leaves: (n_training, n_trees) the leaf of each training run; atoms: (n_atoms,)
    ascending values; atom: (n_training,) the atom of each training run."""

    booster: Any
    leaves: NDArray[np.int32]
    atoms: Floats
    atom: NDArray[np.int32]

    def mean(self, features: pd.DataFrame) -> Floats:
        """The mean that the trees expect: (n,). features: (n, p), in the order of training."""
        if features.empty:
            return np.zeros(0)
        return np.asarray(self.booster.predict(matrix(features), num_threads=1), dtype=float)

    def leaves_of(self, features: pd.DataFrame) -> NDArray[np.int32]:
        """The leaf of each tree that each row falls into: (n, n_trees)."""
        n_trees = self.leaves.shape[1]
        if features.empty:
            return np.zeros((0, n_trees), dtype=np.int32)
        found = self.booster.predict(matrix(features), pred_leaf=True, num_threads=1)
        return np.asarray(found, dtype=np.int32).reshape(len(features), n_trees)

    def quantiles(self, features: pd.DataFrame, n_levels: int) -> Floats:
        """Quantiles of each row's distribution over the atoms, at levels (k + 1/2) / n_levels: (n, n_levels)."""
        masses, n_trees = self._masses, self.leaves.shape[1]
        leaves = self.leaves_of(features) + self._offsets

        def of_block(rows: slice) -> Floats:
            part = leaves[rows]
            ends = np.arange(len(part) + 1) * n_trees
            is_in = sparse.csr_matrix(
                (np.full(part.size, 1 / n_trees), part.ravel(), ends), (len(part), masses.shape[0])
            )
            return weighted_quantiles(self.atoms, (is_in @ masses).toarray(), n_levels)

        return in_blocks(len(features), n_levels, of_block)

    def save(self, folder: Path) -> None:
        """Write everything into an existing folder."""
        (folder / TREES).write_text(self.booster.model_to_string(), encoding="utf-8")
        names = [f"tree_{tree}" for tree in range(self.leaves.shape[1])]
        pd.DataFrame(self.leaves, columns=names).assign(atom=self.atom).to_parquet(folder / LEAVES, index=False)
        pd.DataFrame({"value": self.atoms}).to_parquet(folder / ATOMS, index=False)

    @classmethod
    def load(cls, folder: Path, n_features: int) -> Self:
        """What save wrote. Raises BadInput, OSError, ValueError or KeyError for anything else."""
        booster = booster_from((folder / TREES).read_text(encoding="utf-8"), n_features)
        table, atoms = pd.read_parquet(folder / LEAVES), pd.read_parquet(folder / ATOMS)["value"].to_numpy(dtype=float)
        atom = table.pop("atom").to_numpy(dtype=np.int32)
        forest = cls(booster, table.to_numpy(dtype=np.int32), atoms, atom)
        is_of_trees = table.shape[1] == booster.num_trees() and _are_below(forest.leaves, forest._sizes)
        if not (is_of_trees and _are_below(atom, np.asarray(len(atoms)))):
            raise ValueError(f"{LEAVES} does not go with {TREES} and {ATOMS}")
        return forest

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        """The number of leaves of each tree: (n_trees,)."""
        return np.array(LEAVES_OF_TREE.findall(self.booster.model_to_string()), dtype=np.int64)

    @cached_property
    def _offsets(self) -> NDArray[np.int64]:
        """The number of the first leaf of each tree, counted over all trees: (n_trees,)."""
        return np.cumsum(self._sizes) - self._sizes

    @cached_property
    def _masses(self) -> sparse.csr_matrix:
        """The distribution of the training runs of each leaf over the atoms: (n_leaves, n_atoms), rows sum to 1."""
        leaves = (self.leaves + self._offsets).ravel()
        atoms = np.repeat(self.atom, self.leaves.shape[1])
        shape = (int(self._sizes.sum()), len(self.atoms))
        counts = sparse.csr_matrix((np.ones(len(leaves)), (leaves, atoms)), shape)
        runs = np.asarray(counts.sum(axis=1)).ravel()
        return sparse.csr_matrix(sparse.diags(1 / np.maximum(runs, 1.0)) @ counts)


def fit_forest(features: pd.DataFrame, values: Floats, *, n_trees: int, seed: int) -> Forest:
    """A forest of values, (n,), such as logs of runtimes; features: (n, p). Raises BadInput without a row."""
    booster = train_booster(features, values, SETTINGS, n_trees, seed)
    atoms = np.unique(np.quantile(values, (np.arange(N_ATOMS) + 0.5) / N_ATOMS, method="nearest"))
    middles = (atoms[:-1] + atoms[1:]) / 2
    atom = np.searchsorted(middles, values).astype(np.int32)
    empty = Forest(booster, np.zeros((0, n_trees), dtype=np.int32), atoms, atom)
    return Forest(booster, empty.leaves_of(features), atoms, atom)


def weighted_quantiles(values: Floats, weights: Floats, n_levels: int) -> Floats:
    """For each row the least value up to which the weights sum to (k + 1/2) / n_levels, k = 0 …: (n, n_levels).

    values: (m,) for all rows or (n, m), ascending; weights: (n, m), rows sum to 1."""
    places = weighted_places(weights, n_levels)
    return np.asarray(values[places] if values.ndim == 1 else np.take_along_axis(values, places, axis=1))


def weighted_places(weights: Floats, n_levels: int) -> NDArray[np.int64]:
    """The first place of each row up to which its weights sum to (k + 1/2) / n_levels, k = 0 …: (n, n_levels)."""
    n, m = weights.shape
    upto = np.cumsum(weights, axis=1)
    levels_upto = (upto * n_levels + (0.5 + ROUNDING * n_levels)).astype(np.int64)  # levels that are reached there
    np.minimum(levels_upto, n_levels, out=levels_upto)
    levels_upto[:, -1] = n_levels  # whatever rounding says
    n_levels_at = np.diff(levels_upto, axis=1, prepend=0)
    return np.repeat(np.tile(np.arange(m), n), n_levels_at.ravel()).reshape(n, n_levels)


def in_blocks(n: int, n_levels: int, answer: Callable[[slice], Floats]) -> Floats:
    """answer(rows), (n_rows, n_levels), of n rows, BLOCK of them at a time: (n, n_levels)."""
    quantiles = np.empty((n, n_levels))
    for first in range(0, n, BLOCK):
        quantiles[first : first + BLOCK] = answer(slice(first, first + BLOCK))
    return quantiles


def _are_below(numbers: NDArray[np.int32], ends: NDArray[np.int64]) -> bool:
    return bool(((numbers >= 0) & (numbers < ends)).all())
