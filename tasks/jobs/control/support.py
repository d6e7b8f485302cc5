"""Where a change leaves what the model was trained on, and what else differs where the log has such values.

Outside the training data an answer is a guess of the nearest training rows. And in a log little deviation of the load
can mean that all machines are full: a model that learnt from it foretells slower runs if the deviation is set to 0,
though nobody asked for full machines."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.control.edits import changed_columns
from tasks.jobs.distribution import Floats

Leaves = Callable[[pd.DataFrame], NDArray[Any]]  # (n, p) features -> (n, n_trees) number of the leaf of each tree
MAX_ROWS = 2000  # training rows that changed rows are compared with; of more, a sample
MAX_UNLIKE_SHARE = 0.01  # of the unchanged rows would count as unlike all that the model was trained on
NEAR_SHARE = 0.05  # of the training rows count as having such a value as a changed feature gets
COMPANION_SDS = 0.5  # deviations from usual there, from which an unchanged feature is named
BLOCK = 64  # rows compared with all training rows at once
MOST_TREES = 100  # evenly spaced over all, of which a boosted model of many classes has thousands
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Support:
    """is_extrapolated: (n,) rows that were changed and lie outside the training data in one of two ways.

    share, share_outside, share_unlike: of the n_changed rows that the change touches, in either way, outside the range
    of a changed feature, or in leaves that no training row shares; None without any. outside: by feature, the share
    outside its range. n_changed: rows touched; reason: why leaves were not looked at."""

    is_extrapolated: Flags
    n_changed: int
    share: float | None
    share_outside: float | None
    share_unlike: float | None
    outside: dict[str, float] = field(default_factory=dict)
    reason: str | None = None


def support_of(
    before: pd.DataFrame,
    after: pd.DataFrame,
    training: pd.DataFrame,
    rng: np.random.Generator,
    *,
    leaves: Leaves | None = None,
) -> Support:
    """Which changed rows the training rows do not support. before, after: the same rows; training: the same features.

    Outside: a changed feature below the least or above the largest of its training values, or unknown where no
    training row is. Unlike (with leaves): the training row that shares most leaves with the changed row shares fewer
    than with all but MAX_UNLIKE_SHARE of the unchanged rows; that catches values that are common one by one
    and never met together. Source: the proximity of random forests, Breiman 2001."""
    names = changed_columns(before, after)
    old, new = before[names].to_numpy(dtype=float), after[names].to_numpy(dtype=float)
    differs = ~((old == new) | (np.isnan(old) & np.isnan(new)))
    is_changed = differs.any(axis=1)
    is_outside = differs & _outside(new, training[names].to_numpy(dtype=float))
    is_unlike = np.zeros(len(after), dtype=bool)
    reason = "no leaves were given: only the range of each feature was looked at" if leaves is None else None
    if leaves is not None and is_changed.any():
        rows = _sampled(len(training), rng)
        known, limit = leaves(training.iloc[rows]), MAX_UNLIKE_SHARE
        usual = likeness(leaves(before.iloc[_sampled(len(before), rng)]), known)
        likely = likeness(leaves(after[is_changed]), known)
        is_unlike[is_changed] = likely < np.quantile(usual, limit, method="lower")
    n_changed = int(is_changed.sum())
    flags = is_outside.any(axis=1) | is_unlike
    shares = [
        float(found[is_changed].mean()) if n_changed else None for found in (flags, is_outside.any(axis=1), is_unlike)
    ]
    by_feature = {name: float(is_outside[is_changed, place].mean()) for place, name in enumerate(names)}
    outside = {name: share for name, share in by_feature.items() if share > 0}
    return Support(flags, n_changed, shares[0], shares[1], shares[2] if leaves is not None else None, outside, reason)


def likeness(leaves: NDArray[Any], training: NDArray[Any]) -> Floats:
    """The largest share of trees in which a row has its leaf in common with one training row: (n,), 1 for a twin.

    leaves: (n, n_trees); training: (n_training, n_trees). Of more than 100 trees, 100 evenly spaced ones count."""
    n_trees = leaves.shape[1]
    trees = np.unique(np.linspace(0, n_trees - 1, min(n_trees, MOST_TREES)).round().astype(int))
    mine, theirs = _small(leaves[:, trees]), np.ascontiguousarray(_small(training[:, trees]).T)
    found = np.empty(len(mine))
    for first in range(0, len(mine), BLOCK):
        block = mine[first : first + BLOCK]
        alike = np.zeros((len(block), len(training)), dtype=np.uint8)  # at most 100
        for tree, leaf in enumerate(theirs):
            alike += block[:, tree, None] == leaf
        found[first : first + BLOCK] = alike.max(axis=1, initial=0) / len(trees)
    return found


def _small(leaves: NDArray[Any]) -> NDArray[Any]:
    """In as few bytes as the numbers need: comparing them is all the work."""
    return leaves.astype(np.uint16) if leaves.size and leaves.min() >= 0 and leaves.max() < 2**16 else leaves


def _outside(values: Floats, training: Floats) -> Flags:
    low = np.where(np.isnan(training), np.inf, training).min(axis=0, initial=np.inf)
    high = np.where(np.isnan(training), -np.inf, training).max(axis=0, initial=-np.inf)
    has_unknown = np.isnan(training).any(axis=0)
    return np.asarray((values < low) | (values > high) | (np.isnan(values) & ~has_unknown))


def _sampled(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    if n <= MAX_ROWS:
        return np.arange(n, dtype=np.int64)
    return np.sort(rng.choice(n, MAX_ROWS, replace=False)).astype(np.int64)


COLUMNS = ["feature", "value", "companion", "mean_there", "mean_in_all", "distance"]


def find_companions(before: pd.DataFrame, after: pd.DataFrame, training: pd.DataFrame) -> pd.DataFrame:
    """Features that the change leaves as they are, and that are unusual where the training data have its new values.

    before, after: the same rows; training: the same features. For each changed feature its median new value is taken,
    and NEAR_SHARE of the training rows nearest to it; a companion is an unchanged feature whose mean
    over these rows is at least COMPANION_SDS standard deviations from that over all training rows.
    Columns: feature, value, companion, mean_there, mean_in_all, distance (in standard deviations, above 0 if larger
    there); the largest distance first."""
    changed = changed_columns(before, after)
    others = [str(name) for name in after if name not in changed]
    old, new = before[changed].to_numpy(dtype=float), after[changed].to_numpy(dtype=float)
    differs = ~((old == new) | (np.isnan(old) & np.isnan(new)))
    known = training[others].to_numpy(dtype=float)
    usual = _means(known)
    spread = _means((known - usual) ** 2) ** 0.5
    rows = []
    for place, name in enumerate(changed):
        values = new[differs[:, place], place]
        near = _nearest(training[name].to_numpy(dtype=float), values)
        if near is None:
            continue
        there = _means(known[near])
        distance = np.divide(there - usual, spread, out=np.zeros(len(others)), where=spread > 0)
        far = np.flatnonzero(np.abs(distance) >= COMPANION_SDS)
        rows += [(name, float(np.nanmedian(values)), others[at], there[at], usual[at], distance[at]) for at in far]
    found = pd.DataFrame(rows, columns=COLUMNS)
    return found.sort_values("distance", key=abs, ascending=False, kind="stable", ignore_index=True)


def _nearest(training: Floats, values: Floats) -> NDArray[np.bool_] | None:
    """Which training rows are nearest to the median of the values, ties among them; None if either is unknown."""
    if np.isnan(values).all() or np.isnan(training).all():
        return None
    apart = np.abs(training - np.nanmedian(values))
    return np.asarray(apart <= np.nanquantile(apart, NEAR_SHARE))


def _means(table: Floats) -> Floats:
    """Mean of each column over what is known; NaN where nothing is: (p,)."""
    n_known = np.isfinite(table).sum(axis=0)
    sums = np.where(np.isfinite(table), table, 0.0).sum(axis=0)
    return np.where(n_known > 0, sums / np.maximum(n_known, 1), np.nan)
