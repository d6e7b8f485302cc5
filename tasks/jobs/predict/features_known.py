"""What the log says of a run at its submission: its input and plan, what it asks for, and the state of the machines."""

import numpy as np
import pandas as pd

from tasks.jobs.predict.feature_params import FeatureParams
from tasks.jobs.predict.features_earlier import EarlierRuns, Floats

OPERATOR = "op_"
AS_THEY_ARE = {  # feature: column
    "input_bytes": "input_bytes",
    "estimated_rows": "estimated_rows",
    "estimated_cost": "estimated_cost",
    "requested_runtime_s": "requested_runtime_s",
    "requested_memory_bytes": "requested_memory_bytes",
    "requested_tokens": "requested_cpus",
    "spare_tokens_available": "spare_tokens_available",
    "queue_length": "queue_length",
    "load_mean": "load_mean",
    "load_sd": "load_sd",
}
BY_NAME = (OPERATOR, "sku_load_mean_", "sku_load_sd_", "sku_free_tokens_", "offered_")
AGAINST_MEDIAN = {"input_ratio": "input_bytes", "cost_ratio": "estimated_cost"}
MIDDLE = 0.5
MINUTES, SECONDS = 60, 3600  # in an hour


def known_features(runs: pd.DataFrame, earlier: EarlierRuns, params: FeatureParams) -> dict[str, Floats]:
    """One array (n_rows,) for each feature of a run that is known at its submission and that the log has."""
    names = AS_THEY_ARE | {str(name): str(name) for name in runs if str(name).startswith(BY_NAME)}
    found = {name: _values(runs, column) for name, column in names.items() if _has(runs, column)}
    operators = [values for name, values in found.items() if name.startswith(OPERATOR)]
    if operators:
        found["n_operators"] = np.sum(operators, axis=0)
    for name, column in AGAINST_MEDIAN.items():
        if column in found and earlier.has(column):
            usual = earlier.quantile(earlier.values(column), MIDDLE, window=params.window_runs)
            found[name] = _over(found[column], usual)
    if "requested_tokens" in found and earlier.has("requested_cpus"):
        found["tokens_ratio"] = _over(found["requested_tokens"], earlier.mean(earlier.values("requested_cpus")))
    return found | _calendar(runs["submitted_at"])


def _calendar(times: pd.Series) -> dict[str, Floats]:
    clock = times.dt
    hours = clock.hour + clock.minute / MINUTES + clock.second / SECONDS
    return {"hour_of_day": hours.to_numpy(dtype=float), "day_of_week": clock.day_of_week.to_numpy(dtype=float)}


def _has(runs: pd.DataFrame, column: str) -> bool:
    return column in runs and bool(runs[column].notna().any())


def _values(runs: pd.DataFrame, column: str) -> Floats:
    return runs[column].to_numpy(dtype=float, na_value=np.nan)


def _over(values: Floats, usual: Floats) -> Floats:
    """Ratios; missing where the usual is 0 or missing."""
    return np.asarray(values / np.where(usual > 0, usual, np.nan))
