"""What explains why runs of one job take longer or shorter: shares of the variance inside jobs, by cause."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

FOLDS = 5
MIN_RUNS = 2  # of a group: the mean of one run leaves nothing to explain


@dataclass(frozen=True)
class CauseShare:
    """One cause. alone: share of the variance that its features explain by themselves; unique: what is lost of the
    share of all causes together when this one is left out. Both are out of sample and can be below 0."""

    cause: str
    alone: float
    unique: float


@dataclass(frozen=True)
class VarianceShares:
    """causes: in the order they were given. together: share that all of them explain, out of sample.

    n_runs, n_groups: what the shares were measured on; n_folds: parts that the groups were cut into."""

    causes: list[CauseShare]
    together: float
    n_runs: int
    n_groups: int
    n_folds: int


def explain_variance(
    runtime_s: Any, group_keys: Any, causes: Mapping[str, pd.DataFrame], *, n_folds: int = FOLDS
) -> VarianceShares | None:
    """Share of the variance of log runtime within groups that each cause explains in groups it was not fitted on.

    runtime_s, group_keys: (n_runs,), runtimes above 0. causes: cause to its features, (n_runs, n_features) each;
    a missing value counts as the mean of its group. With y and X reduced by the means of their groups, b is fitted
    by least squares on all groups but those of one fold, and the share is

        R² = 1 - sum (y - X b)² / sum y²,

    summed over the folds: columns that explain nothing cannot raise it. One slope serves all groups, so this is less
    than a fit of each group could explain. Causes that differ within no group are left
    out. None if there are fewer than two groups of two runs, no variance or no cause. Source: Zhu et al. 2023, 3.2."""
    groups, n_in_group = _numbered(group_keys)
    is_used = n_in_group[groups] >= MIN_RUNS
    groups, n_groups = _renumbered(groups[is_used])
    if n_groups < 2:  # one to fit on, one to look at
        return None
    log_runtimes = _without_group_means(np.log(np.asarray(runtime_s, dtype=float)[is_used])[:, None], groups)[:, 0]
    features = {name: _features(frame[is_used], groups) for name, frame in causes.items()}
    features = {name: columns for name, columns in features.items() if columns.shape[1]}
    if not features or not _varies(log_runtimes):
        return None
    folds, n_used = _folds(groups, n_groups, n_folds)

    def share_of(names: list[str]) -> float:
        if not names:
            return 0.0
        return _held_out_share(log_runtimes, np.hstack([features[name] for name in names]), folds, n_used)

    together = share_of(list(features))
    shares = [
        CauseShare(name, share_of([name]), together - share_of([other for other in features if other != name]))
        for name in features
    ]
    return VarianceShares(shares, together, len(log_runtimes), n_groups, n_used)


def _numbered(group_keys: Any) -> tuple[Any, Any]:
    """The number of each run's group, in the order of their keys, and the runs of each group."""
    _, groups = np.unique(np.asarray(group_keys, dtype=str), return_inverse=True)
    return groups, np.bincount(groups)


def _renumbered(groups: Any) -> tuple[Any, int]:
    found, numbers = np.unique(groups, return_inverse=True)
    return numbers, len(found)


def _without_group_means(columns: Any, groups: Any) -> Any:
    """columns: (n_runs, n_columns). What is missing is at the mean of its group, which is 0 in the result."""
    is_there = ~np.isnan(columns)
    reduced = np.zeros(columns.shape)
    for position in range(columns.shape[1]):
        there, column = is_there[:, position], columns[:, position]
        n_there = np.bincount(groups[there], minlength=groups.max() + 1)
        sums = np.bincount(groups[there], weights=column[there], minlength=len(n_there))
        means = sums / np.maximum(n_there, 1)
        reduced[there, position] = column[there] - means[groups[there]]
    return reduced


def _features(frame: pd.DataFrame, groups: Any) -> Any:
    """Reduced by group means and scaled to a deviation of 1; columns that differ within no group are left out."""
    reduced = _without_group_means(frame.to_numpy(dtype=float, na_value=np.nan), groups)
    kept = [position for position in range(reduced.shape[1]) if _varies(reduced[:, position])]
    return reduced[:, kept] / reduced[:, kept].std(axis=0)  # (n_runs, n_kept)


def _varies(reduced: Any) -> bool:
    rounding = 1e-12
    return bool(np.abs(reduced).max(initial=0.0) > rounding)


def _folds(groups: Any, n_groups: int, n_folds: int) -> tuple[Any, int]:
    """The fold of each run: groups are dealt out in turn, the largest first, so that folds are alike in size."""
    n_used = min(n_folds, n_groups)
    by_size = np.argsort(-np.bincount(groups), kind="stable")
    fold_of_group = np.empty(n_groups, dtype=int)
    fold_of_group[by_size] = np.arange(n_groups) % n_used
    return fold_of_group[groups], n_used


def _held_out_share(log_runtimes: Any, features: Any, folds: Any, n_folds: int) -> float:
    """R² = 1 - sum (y - X b)² / sum y², b from the other folds."""
    left = 0.0
    for fold in range(n_folds):
        is_out = folds == fold
        b = np.linalg.lstsq(features[~is_out], log_runtimes[~is_out], rcond=None)[0]  # (n_features,)
        left += float(np.square(log_runtimes[is_out] - features[is_out] @ b).sum())
    return 1 - left / float(np.square(log_runtimes).sum())
