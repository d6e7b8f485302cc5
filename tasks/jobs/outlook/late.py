"""Runs that take longer than they should, while they still go on: beyond the predicted time of 95 % of them."""

from collections.abc import Collection

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.jobs.distribution import Floats, Predicted
from tasks.jobs.outlook.params import LateParams, OutlookParams
from tasks.jobs.outlook.running import remaining_s, survival_of

RUNNING = "running"
NEEDED = ("run_id", "group_key", "status", "started_at", "runtime_s")
COLUMNS = (
    "run_id", "group_key", "status", "is_running", "started_at", "late_since_at", "elapsed_s", "limit_s", "level",
    "median_s", "chance_so_long", "is_beyond", "left_50_s",
)  # fmt: skip


def late_runs(
    runs: pd.DataFrame,
    predicted: Predicted,
    now: pd.Timestamp,
    params: LateParams,
    outlook: OutlookParams,
    *,
    told: Collection[str] = (),
) -> pd.DataFrame:
    """The running and just finished runs that are late, the most surprising first; each told of once.

    runs: run_id, group_key, status, started_at (UTC), runtime_s (missing while running); row i is instance i of
    predicted, as it was predicted at submission. told: run ids that an alarm was raised for before, which are left
    out; of several rows of a run the one of a finished run, or else the first, counts. A run that has neither a
    runtime nor the status `running`, or no start, is no evidence and is left out; so is one that ended longer than
    finished_within_s before now. Columns: run_id, group_key, status, is_running, started_at, late_since_at (when the
    limit passed), elapsed_s, limit_s (the predicted time of params.level), level, median_s, chance_so_long (that a
    run takes longer than this), is_beyond (longer than anything expected), left_50_s (what a running one still takes,
    half of the time; missing when finished). Raises BadInput for missing columns or another number of rows."""
    missing = [name for name in NEEDED if name not in runs]
    if missing or len(runs) != predicted.n:
        problem = f"no column {', '.join(missing)}" if missing else f"{len(runs)} rows, {predicted.n} predictions"
        raise BadInput("runs", problem, f"{', '.join(NEEDED)}, one row a prediction")
    elapsed, is_seen = _elapsed_s(runs, now, params)
    at = np.flatnonzero(is_seen & ~runs["run_id"].isin(list(told)).to_numpy(dtype=bool))
    if len(at):
        limits = predicted.rows(at).quantile(params.level)
        at = at[(elapsed[at] > limits) & (elapsed[at] >= limits + params.min_over_s)]
    if not len(at):
        return pd.DataFrame(columns=list(COLUMNS))
    found = _evidence(runs.iloc[at], predicted.rows(at), elapsed[at], params, outlook)
    found = found.drop_duplicates("run_id")[list(COLUMNS)]
    return found.sort_values(["chance_so_long", "run_id"], kind="stable", ignore_index=True)


def _elapsed_s(runs: pd.DataFrame, now: pd.Timestamp, params: LateParams) -> tuple[Floats, NDArray[np.bool_]]:
    """How long each run took or takes so far, and whether it is running or just finished."""
    so_far = (now - pd.to_datetime(runs["started_at"])).dt.total_seconds().to_numpy(dtype=np.float64)
    runtime_s = runs["runtime_s"].to_numpy(dtype=np.float64, na_value=np.nan)
    has_finished = runs["run_id"].isin(runs.loc[np.isfinite(runtime_s), "run_id"]).to_numpy(dtype=bool)
    is_running = ~has_finished & (runs["status"] == RUNNING).to_numpy(dtype=bool)
    is_finished = np.isfinite(runtime_s) & (so_far - runtime_s <= params.finished_within_s)
    is_seen = np.isfinite(so_far) & (is_running | is_finished)
    return np.where(is_running, so_far, runtime_s), is_seen


def _evidence(
    runs: pd.DataFrame, predicted: Predicted, elapsed: Floats, params: LateParams, outlook: OutlookParams
) -> pd.DataFrame:
    is_running = ~np.isfinite(runs["runtime_s"].to_numpy(dtype=np.float64, na_value=np.nan))
    survival, limits = survival_of(predicted, outlook), predicted.quantile(params.level)
    return runs[["run_id", "group_key", "status", "started_at"]].assign(
        is_running=is_running,
        late_since_at=pd.to_datetime(runs["started_at"]) + pd.to_timedelta(limits, unit="s").round("us"),
        elapsed_s=elapsed,
        limit_s=limits,
        level=params.level,
        median_s=predicted.quantile(0.5),
        chance_so_long=survival.at(elapsed),
        is_beyond=survival.is_beyond(elapsed),
        left_50_s=np.where(is_running, remaining_s(predicted, elapsed, 0.5, outlook), np.nan),
    )
