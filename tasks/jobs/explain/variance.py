"""What explains why runs of one job take longer or shorter: shares of the variance inside jobs, by cause."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.params import SummaryParams
from tasks.warehouse.connection import Connection

FOLDS = 5
MIN_RUNS = 2  # of a group: the mean of one run leaves nothing to explain
MOST_RUNS = 200_000  # the latest; more would take memory and change nothing
MOST_SKUS = 20  # with the most vertex time; the others are told apart from them only
INPUT, TOKENS, SKU, LOAD = "input size", "tokens", "SKU", "load"
# Runs that were changed on purpose (what_if) show what somebody did and not how the job varies.
VARIANCE_RUNS = """
WITH finished AS (
    SELECT * FROM jobs.runs
    WHERE source = $source AND what_if IS NULL AND runtime_s > 0 AND isfinite(runtime_s)
        AND list_contains($statuses, status)
    QUALIFY count(*) OVER (PARTITION BY group_key) >= $min_support
),
final AS (
    SELECT run_id, group_key, runtime_s, input_bytes, requested_cpus, spare_tokens_available, spare_tokens_used,
        load_mean, load_sd
    FROM finished ORDER BY coalesce(submitted_at, started_at) DESC, run_id LIMIT $most
)
SELECT * FROM final ORDER BY run_id
"""
HAS_CONDITIONS = """
SELECT count(load_mean) + count(spare_tokens_used) + count(spare_tokens_available) + count(vertices) > 0
FROM jobs.runs WHERE source = $source
"""
SKU_TIMES = """
WITH timed AS (
    SELECT run_id, sku, date_diff('microsecond', started_at, ended_at) / 1e6 AS seconds
    FROM jobs.vertices WHERE source = $source AND sku IS NOT NULL
),
final AS (SELECT run_id, sku, sum(seconds) AS seconds FROM timed GROUP BY run_id, sku)
SELECT * FROM final WHERE seconds IS NOT NULL ORDER BY run_id, sku
"""
# Load of the SKUs that the vertices ran on; load_mean and load_sd of a run are of all SKUs offered.
SKU_LOADS = """
WITH used AS (
    SELECT run_id, sku, count(*) AS n FROM jobs.vertices WHERE source = $source GROUP BY run_id, sku
),
offered AS (SELECT run_id, sku, load_mean, load_sd FROM jobs.run_skus WHERE source = $source AND load_mean IS NOT NULL),
final AS (
    SELECT run_id, sum(n * load_mean) / sum(n) AS used_load_mean, sum(n * load_sd) / sum(n) AS used_load_sd
    FROM used JOIN offered USING (run_id, sku) GROUP BY run_id
)
SELECT * FROM final ORDER BY run_id
"""


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


def explain_variance(runtime_s: Any, group_keys: Any, causes: Mapping[str, pd.DataFrame]) -> VarianceShares | None:
    """Share of the variance of log runtime within groups that each cause explains in groups it was not fitted on.

    runtime_s, group_keys: (n_runs,), runtimes above 0. causes: cause to its features, (n_runs, n_features) each;
    a missing value counts as the mean of its group. With y and X reduced by the means of their groups, b is fitted
    by least squares on all groups but those of one fold, and the share is

        R² = 1 - sum (y - X b)² / sum y²,

    summed over the folds: columns that explain nothing cannot raise it. One slope serves all groups, so this is less
    than a fit of each group could explain. Causes that differ within no group are left
    out. None if there are fewer than two groups of two runs, no variance or no cause. Source: Zhu et al. 2023, 3.2."""
    _, groups = np.unique(np.asarray(group_keys, dtype=str), return_inverse=True)
    is_used = np.bincount(groups)[groups] >= MIN_RUNS
    _, groups, sizes = np.unique(groups[is_used], return_inverse=True, return_counts=True)
    if len(sizes) < 2:  # one to fit on, one to look at
        return None
    log_runtimes = _without_group_means(np.log(np.asarray(runtime_s, dtype=float)[is_used])[:, None], groups)[:, 0]
    features = {}
    for name, frame in causes.items():
        reduced = _without_group_means(frame[is_used].to_numpy(dtype=float, na_value=np.nan), groups)
        reduced = reduced[:, [position for position in range(reduced.shape[1]) if _varies(reduced[:, position])]]
        if reduced.shape[1]:
            features[name] = reduced / reduced.std(axis=0)  # (n_runs, n_kept)
    if not features or not _varies(log_runtimes):
        return None
    n_used = min(FOLDS, len(sizes))
    fold_of_group = np.empty(len(sizes), dtype=int)  # dealt out in turn, the largest first: folds are alike in size
    fold_of_group[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes)) % n_used
    folds = fold_of_group[groups]

    def share_of(names: list[str]) -> float:
        if not names:
            return 0.0
        return _held_out_share(log_runtimes, np.hstack([features[name] for name in names]), folds, n_used)

    together = share_of(list(features))
    shares = [
        CauseShare(name, share_of([name]), together - share_of([other for other in features if other != name]))
        for name in features
    ]
    return VarianceShares(shares, together, len(log_runtimes), len(sizes), n_used)


def _without_group_means(columns: Any, groups: Any) -> Any:
    """columns: (n_runs, n_columns). What is missing is at the mean of its group, which is 0 in the result."""
    frame = pd.DataFrame(columns)
    return (frame - frame.groupby(groups).transform("mean")).fillna(0.0).to_numpy()


def _varies(reduced: Any) -> bool:
    rounding = 1e-12
    return bool(np.abs(reduced).max(initial=0.0) > rounding)


def _held_out_share(log_runtimes: Any, features: Any, folds: Any, n_folds: int) -> float:
    """R² = 1 - sum (y - X b)² / sum y², b from the other folds."""
    left = 0.0
    for fold in range(n_folds):
        is_out = folds == fold
        b = np.linalg.lstsq(features[~is_out], log_runtimes[~is_out], rcond=None)[0]  # (n_features,)
        left += float(np.square(log_runtimes[is_out] - features[is_out] @ b).sum())
    return 1 - left / float(np.square(log_runtimes).sum())


def fetch_variance(connection: Connection, source: str, params: SummaryParams) -> VarianceShares | None:
    """Shares of the variance within jobs by cause; None for a log that has neither tokens nor load nor vertices."""
    has_any = connection.execute(HAS_CONDITIONS, {"source": source}).fetchone()
    if not has_any or not has_any[0]:
        return None
    parameters = {"statuses": list(params.statuses), "min_support": params.min_support, "most": MOST_RUNS}
    runs = connection.execute(VARIANCE_RUNS, {"source": source, **parameters}).df()
    sku_times = connection.execute(SKU_TIMES, {"source": source}).df()
    runs = runs.merge(connection.execute(SKU_LOADS, {"source": source}).df(), on="run_id", how="left")
    return explain_variance(runs["runtime_s"], runs["group_key"], causes_of(runs, sku_times))


def causes_of(runs: pd.DataFrame, sku_times: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The features of each cause, in the order of runs; sizes and tokens as logarithms of 1 + x, so that none is 0.

    runs: columns of jobs.runs and of SKU_LOADS, one row a run_id. sku_times: run_id, sku, seconds of
    its vertices on that SKU."""
    tokens = ["requested_cpus", "spare_tokens_available", "spare_tokens_used"]
    return {
        INPUT: runs[["input_bytes"]].astype(float).transform(np.log1p),
        TOKENS: runs[tokens].astype(float).transform(np.log1p),
        SKU: sku_shares(runs["run_id"], sku_times),
        LOAD: runs[["load_mean", "load_sd", "used_load_mean", "used_load_sd"]].astype(float),
    }


def sku_shares(run_ids: pd.Series, sku_times: pd.DataFrame) -> pd.DataFrame:
    """Share of each run's vertex time by SKU, a column a SKU; missing for a run without vertices."""
    largest = sku_times.groupby("sku")["seconds"].sum().nlargest(MOST_SKUS).index.sort_values()
    seconds = sku_times.pivot_table(index="run_id", columns="sku", values="seconds", aggfunc="sum").fillna(0.0)
    shares = seconds.div(seconds.sum(axis=1).replace(0.0, np.nan), axis=0)
    return shares.reindex(index=run_ids, columns=largest).reset_index(drop=True)
