"""How far the search for drift can be trusted on a log: alarms when nothing changed, and changes that it finds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from tasks.jobs.outlook.drift import find_drift
from tasks.jobs.outlook.params import DriftParams
from tasks.jobs.shapes import ShapeSet

CONFIDENCE = 0.9
Change = Literal["slower", "spread"]


@dataclass(frozen=True)
class FalseAlarms:
    """Of n_trials shuffled logs: with_any, the share in which any job was called changed, with its Wilson interval.

    At a false discovery rate of f, with_any is at most f. p_below: share of p-values at or below f, likewise, over
    n_tests jobs. changed: share of the jobs said to have changed; drifted: to another shape; by_factor_alone: that
    would be said so by their labels and the Bayes factor without a test."""

    n_trials: int
    n_tests: int
    with_any: float
    low: float
    high: float
    p_below: float
    changed: float
    drifted: float
    by_factor_alone: float


@dataclass(frozen=True)
class Detection:
    """Of n_planted jobs that were changed: found (called changed) and drifted (to another shape), as shares.

    false_discoveries: share of the jobs called changed that were not."""

    n_planted: int
    found: float
    drifted: float
    false_discoveries: float


def shuffled(runs: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The same runs with the times of submission dealt anew within each job: nothing can have changed."""
    order = np.lexsort((rng.random(len(runs)), pd.factorize(runs["group_key"])[0]))
    straight = np.argsort(pd.factorize(runs["group_key"])[0], kind="stable")
    submitted = runs["submitted_at"].to_numpy().copy()
    submitted[straight] = runs["submitted_at"].to_numpy()[order]
    return runs.assign(submitted_at=submitted)


def false_alarms(
    runs: pd.DataFrame,
    params: DriftParams,
    rng: np.random.Generator,
    *,
    n_trials: int = 100,
    shapes: ShapeSet | None = None,
    medians_s: Mapping[str, float] | None = None,
    since_at: pd.Timestamp | None = None,
) -> FalseAlarms:
    """The search on n_trials shuffles of a log. runs and the rest: as of find_drift."""
    since_at = _moment(runs, params, since_at)
    tables = []
    for _ in range(n_trials):
        seeded = params.model_copy(update={"seed": int(rng.integers(2**32))})
        mixed = shuffled(runs, rng)
        tables.append(find_drift(mixed, seeded, shapes=shapes, medians_s=medians_s, since_at=since_at).table)
    n_with = sum(bool(table["has_changed"].any()) for table in tables)
    together = pd.concat(tables, ignore_index=True)
    is_sure = together["log_bayes_factor"] >= np.log(params.min_bayes_factor)
    by_factor = is_sure & (together["shape_before"] != together["shape_after"])
    interval = binomtest(n_with, n_trials).proportion_ci(CONFIDENCE, method="wilson")
    return FalseAlarms(
        n_trials,
        len(together),
        n_with / n_trials,
        float(interval.low),
        float(interval.high),
        float((together["p_value"] <= params.false_discovery_rate).mean()),
        float(together["has_changed"].mean()),
        float(together["has_drifted"].mean()),
        float(by_factor.mean()),
    )


def detection(
    runs: pd.DataFrame,
    params: DriftParams,
    rng: np.random.Generator,
    change: Change,
    factor: float,
    *,
    share: float = 0.2,
    shapes: ShapeSet | None = None,
    medians_s: Mapping[str, float] | None = None,
    since_at: pd.Timestamp | None = None,
) -> Detection:
    """Which planted changes are found: `share` of the jobs of a shuffled log are changed since the moment.

    slower: runtimes × factor; spread: their distance from the job's median × factor, in logs. Jobs with too few runs
    are not counted."""
    since_at = _moment(runs, params, since_at)
    mixed = shuffled(runs, rng)
    compared = find_drift(mixed, params, since_at=since_at).table["group_key"].to_numpy()
    planted = rng.choice(np.sort(compared), size=max(1, round(share * len(compared))), replace=False)
    is_hit = mixed["group_key"].isin(planted) & (mixed["submitted_at"] >= since_at)
    runtimes = mixed["runtime_s"].astype(float)
    centre = runtimes.groupby(mixed["group_key"]).transform("median")
    with np.errstate(divide="ignore", invalid="ignore"):
        wider = centre * (runtimes / centre) ** factor
    changed = runtimes * factor if change == "slower" else wider.where(centre > 0, runtimes)
    planted_runs = mixed.assign(runtime_s=runtimes.where(~is_hit, changed))
    table = find_drift(planted_runs, params, shapes=shapes, medians_s=medians_s, since_at=since_at).table
    was_planted = table["group_key"].isin(planted)
    n_called = int(table["has_changed"].sum())
    return Detection(
        len(planted),
        float(table.loc[was_planted, "has_changed"].mean()),
        float(table.loc[was_planted, "has_drifted"].mean()),
        float((table["has_changed"] & ~was_planted).sum() / max(1, n_called)),
    )


def _moment(runs: pd.DataFrame, params: DriftParams, since_at: pd.Timestamp | None) -> pd.Timestamp:
    """That of find_drift."""
    return runs["submitted_at"].max() - pd.Timedelta(days=params.since_days) if since_at is None else since_at
