"""What it does to a run on which kind of machine its vertices work: learnt from runs of the same job.

A model knows where earlier runs worked, not where this one will. But vertices go where there is room, so that runs of
one job differ in it for reasons of their own, and what they took beyond what was expected tells what a SKU does."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.jobs.control.edits_skus import OFFERED, skus_of
from tasks.jobs.distribution import Floats
from tasks.jobs.predict.features_usage import BY_SKU

SHARE = "vertex_share_{}_mean"
LARGEST_LOG = 2.0  # of one run's deviation from what was expected: further ones have other causes
RIDGE = 2.0  # effects as if two more runs, all on one SKU, had shown none
LEAST_RUNS = 30


@dataclass(frozen=True)
class Placement:
    """effects: by SKU the log of the runtime if all vertices work there, against their mean; empty with a reason."""

    effects: dict[str, float]
    n_runs: int
    n_groups: int
    reason: str | None = None

    def log_shift(self, before: pd.DataFrame, after: pd.DataFrame) -> Floats:
        """Change of the log runtime by the SKUs of the features before and after: (n,), 0 where nothing is known."""
        names = [name for name in sorted(self.effects) if SHARE.format(name) in before]
        if not names:
            return np.zeros(len(before))
        effects = np.array([self.effects[name] for name in names])
        old, new = likely_shares(before, names), likely_shares(after, names)
        return np.asarray(np.nan_to_num(new @ effects - old @ effects))  # (n, n_skus) @ (n_skus,)


def likely_shares(features: pd.DataFrame, skus: list[str]) -> Floats:
    """Share of a run's vertices on each SKU: that of earlier runs, over the SKUs offered to this one; (n, n_skus).

    All alike where earlier runs were on none of those; NaN where nothing is known."""
    unknown = pd.Series(np.nan, index=features.index)
    shares = np.column_stack([features.get(SHARE.format(sku), unknown).to_numpy(dtype=float) for sku in skus])
    offers = np.column_stack([features.get(OFFERED.format(sku), unknown).to_numpy(dtype=float) for sku in skus])
    is_told = np.isfinite(offers).all(axis=1, keepdims=True)
    offered = np.where(is_told, offers > 0, 1.0)
    there = shares * offered
    there = np.where(there.sum(axis=1, keepdims=True) == 0, offered, there)  # NaN stays: nothing is known
    total = there.sum(axis=1, keepdims=True)
    return np.asarray(there / np.where(total > 0, total, np.nan))


def fit_placement(runs: pd.DataFrame, log_residuals: Floats) -> Placement:
    """Least squares of log_residuals on the shares of vertices by SKU, both less the mean of their job.

    runs: group_key, n_vertices, vertices_<sku> of read_runs; log_residuals: (n,) log of runtime over what a model
    without the run expected. A ridge, since few runs tell little. A log without SKUs gives a reason."""
    columns = [str(name) for name in runs if str(name).startswith(BY_SKU)]
    if len(columns) < 2 or "n_vertices" not in runs:
        return Placement({}, 0, 0, "the log does not say on which of several SKUs vertices worked")
    total = runs["n_vertices"].where(runs["n_vertices"] > 0)
    shares = runs[columns].div(total, axis=0)
    residuals = pd.Series(np.clip(log_residuals, -LARGEST_LOG, LARGEST_LOG), index=runs.index)
    is_known = shares.notna().all(axis=1) & residuals.notna()
    shares, residuals, jobs = shares[is_known], residuals[is_known], runs.loc[is_known, "group_key"]
    if len(jobs) < LEAST_RUNS:
        return Placement({}, len(jobs), jobs.nunique(), f"fewer than {LEAST_RUNS} runs say where their vertices worked")
    x = (shares - shares.groupby(jobs).transform("mean")).to_numpy()
    y = (residuals - residuals.groupby(jobs).transform("mean")).to_numpy()
    effects = np.linalg.solve(x.T @ x + RIDGE * np.eye(len(columns)), x.T @ y)
    named = {name.removeprefix(BY_SKU): float(effect) for name, effect in zip(columns, effects, strict=True)}
    return Placement(named, len(jobs), jobs.nunique())


def describe_placement(placement: Placement, features: pd.DataFrame) -> list[str]:
    """The fastest and the slowest SKU in a sentence; none without effects."""
    known = [sku for sku in skus_of(features) if sku in placement.effects]
    if len(known) < 2:
        return []
    ordered = sorted(known, key=lambda sku: placement.effects[sku])
    fast, slow = ordered[0], ordered[-1]
    less = 1 - np.exp(placement.effects[fast] - placement.effects[slow])
    return [
        f"Runs of the same job took {100 * less:.0f} % less with all vertices on {fast} than with all on {slow}, by "
        f"{placement.n_runs:,} runs of {placement.n_groups:,} jobs; this is in the prediction."
    ]
