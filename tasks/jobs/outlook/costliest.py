"""The jobs whose variation costs the most waiting: time above the median, per day."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.distribution import Floats, Predicted
from tasks.jobs.outlook.exceeding import one_each
from tasks.jobs.outlook.params import CostParams

DAY_S = 86_400.0
FAR = 1e-9  # chance to be beyond the time where the integral of the tail is cut
COLUMNS = (
    "group_key", "n_runs", "runs_per_day", "median_s", "above_median_s", "cost_s_per_day", "low_s_per_day",
    "high_s_per_day", "share_of_all", "predicted_median_s", "predicted_above_median_s", "predicted_cost_s_per_day",
)  # fmt: skip


def costliest_jobs(
    runs: pd.DataFrame,
    params: CostParams,
    *,
    predicted: Predicted | None = None,
    keys: Sequence[str] | None = None,
    days: float | None = None,
) -> pd.DataFrame:
    """The params.n_jobs jobs with the most waiting through variation: runs per day × E[(T - median)+], costliest first.

    runs: group_key, submitted_at, runtime_s in seconds; rows without a finite runtime are left out. predicted, keys:
    instances and the job of each, for what is expected of next runs; several of a job count the same. days: how long
    the log is; by default from its first to its last submission. Columns: group_key, n_runs, runs_per_day, median_s,
    above_median_s (mean time above the median of its runs), cost_s_per_day with its bootstrap interval low_s_per_day
    to high_s_per_day, share_of_all (of the cost of all jobs), and the same as predicted: predicted_median_s,
    predicted_above_median_s, predicted_cost_s_per_day; missing for a job without an instance.
    Raises BadInput for missing columns, no job with enough runs, or a log without length."""
    table, times = _measured(runs, params, days)
    order = np.lexsort((table["group_key"], -table["cost_s_per_day"]))[: params.n_jobs]
    top = table.iloc[order].reset_index(drop=True)
    intervals = [
        _interval(times[key], per_day, params, place)
        for place, (key, per_day) in enumerate(zip(top["group_key"], top["runs_per_day"], strict=True))
    ]
    top[["low_s_per_day", "high_s_per_day"]] = np.array(intervals)
    expected = _expected(predicted, keys)
    top = top.merge(expected, on="group_key", how="left")
    top["predicted_cost_s_per_day"] = top["runs_per_day"] * top["predicted_above_median_s"]
    return top[list(COLUMNS)]


def mean_above(predicted: Predicted, time_s: Any) -> Floats:
    """E[(T - x)+] in seconds, the integral of P(T > t) over t > x = time_s: one for all, (n,) or (n, m).

    From the slope of the CRPS: d crps(x) / dx = 2 P(T <= x) - 1, so between x and a time y that is never reached the
    integral is ((y - x) - (crps(y) - crps(x))) / 2. Exact for bins and histories; for a mixture as its CRPS."""
    x = one_each("time", time_s, predicted.n)
    far = predicted.quantile(1 - FAR)
    y = np.maximum(x, far[:, None] if x.ndim == 2 else far)
    return np.asarray(np.maximum((y - x) - (predicted.crps(y) - predicted.crps(x)), 0.0) / 2)


def _measured(runs: pd.DataFrame, params: CostParams, days: float | None) -> tuple[pd.DataFrame, dict[str, Floats]]:
    """One row a job with enough runs, and its runtimes, ascending."""
    needed = ("group_key", "submitted_at", "runtime_s")
    if missing := [name for name in needed if name not in runs]:
        raise BadInput("runs", f"no column {', '.join(missing)}", f"a frame with {', '.join(needed)}")
    runs = runs.loc[np.isfinite(runs["runtime_s"].to_numpy(dtype=np.float64, na_value=np.nan)), list(needed)]
    if days is None:
        span = runs["submitted_at"].max() - runs["submitted_at"].min()
        days = span.total_seconds() / DAY_S if len(runs) else 0.0
    if not days > 0:
        raise BadInput("runs", f"a log of {days:g} days", "submissions at different times, or `days`")
    times = {
        str(key): np.sort(found.to_numpy(dtype=np.float64)) for key, found in runs.groupby("group_key")["runtime_s"]
    }
    times = {key: found for key, found in times.items() if len(found) >= params.min_support}
    if not times:
        raise BadInput("runs", f"no job with {params.min_support} runs", "at least one", "lower min_support")
    table = pd.DataFrame({"group_key": list(times), "n_runs": [len(found) for found in times.values()]})
    table["runs_per_day"] = table["n_runs"] / days
    table["median_s"] = [float(np.median(found)) for found in times.values()]
    table["above_median_s"] = [_above_median(found[None, :])[0] for found in times.values()]
    table["cost_s_per_day"] = table["runs_per_day"] * table["above_median_s"]
    whole = float(table["cost_s_per_day"].sum())
    table["share_of_all"] = table["cost_s_per_day"] / whole if whole > 0 else 0.0
    return table, times


def _above_median(times: Floats) -> Floats:
    """Mean time above the median of each row: (n_rows, n_runs) to (n_rows,)."""
    return np.asarray(np.maximum(times - np.median(times, axis=1, keepdims=True), 0).mean(axis=1))


def _interval(times: Floats, per_day: float, params: CostParams, place: int) -> tuple[float, float]:
    """Percentile bootstrap over the runs of one job; the number of runs per day is taken as it is."""
    rng = np.random.default_rng([params.seed, place])
    block = max(1, 1_000_000 // len(times))
    found = np.concatenate(
        [
            _above_median(times[rng.integers(len(times), size=(min(block, params.n_resamples - first), len(times)))])
            for first in range(0, params.n_resamples, block)
        ]
    )
    rest = (1 - params.confidence) / 2
    low, high = np.quantile(found, [rest, 1 - rest])
    return float(low) * per_day, float(high) * per_day


def _expected(predicted: Predicted | None, keys: Sequence[str] | None) -> pd.DataFrame:
    """Predicted median and time above it of each job: the mean over its instances."""
    columns = ["group_key", "predicted_median_s", "predicted_above_median_s"]
    if predicted is None or keys is None or not predicted.n:
        return pd.DataFrame(columns=columns).astype({"predicted_median_s": float, "predicted_above_median_s": float})
    if len(keys) != predicted.n:
        raise BadInput("keys", f"{len(keys)} of them", f"one for each of the {predicted.n} instances")
    median_s = predicted.quantile(0.5)
    found = pd.DataFrame(
        {
            "group_key": list(keys),
            "predicted_median_s": median_s,
            "predicted_above_median_s": mean_above(predicted, median_s),
        }
    )
    return found.groupby("group_key", as_index=False).mean()[columns]
