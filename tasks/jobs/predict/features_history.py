"""How long earlier runs of the job took and waited: level, spread, trend and slow runs."""

import numpy as np
import pandas as pd

from tasks.jobs.normalisation import normalise
from tasks.jobs.predict.feature_params import FeatureParams
from tasks.jobs.predict.features_earlier import EarlierRuns, Floats

HOUR = np.timedelta64(1, "h")
LOW, MIDDLE, HIGH = 0.25, 0.5, 0.75


def history_features(
    runs: pd.DataFrame, earlier: EarlierRuns, params: FeatureParams, historic_s: Floats, past_s: Floats
) -> dict[str, Floats]:
    """One array (n_rows,) for each feature; all but n_before are missing for a job without an earlier run.

    historic_s: (n_jobs,) median of D1, NaN without one; past_s: (n_past,) median that each earlier run is compared
    with. The logarithms are against the median of D1, else that of the last params.window_runs runs."""
    runtimes_s = earlier.values("runtime_s")
    logs = np.log(np.maximum(runtimes_s, params.least_runtime_s))
    low, middle, high = (earlier.quantile(runtimes_s, q, window=params.window_runs) for q in (LOW, MIDDLE, HIGH))
    historic = np.append(historic_s, np.nan)[earlier.codes]  # code -1: no job
    against_s = np.where(np.isfinite(historic) & (historic >= 0), historic, middle)
    against = np.log(np.maximum(against_s, params.least_runtime_s))
    mean, sd = earlier.mean_sd(logs)
    found = {
        "n_before": earlier.n.astype(float),
        "log_median_before": np.log(np.maximum(middle, params.least_runtime_s)),
        "log_ratio_mean": mean - against,
        "log_ratio_sd": sd,
        "last_log_ratio": earlier.at_last(logs) - against,
        "ewma_log_ratio": earlier.recent_mean(logs, half_life=params.half_life_runs) - against,
        "p25_p75_before": (high - low) / np.where(against_s > 0, against_s, np.nan),
        "outlier_share_before": _slow_share(earlier, past_s, params.slow_ratio),
        "hours_since_last": _hours_since(runs["submitted_at"], earlier),
    }
    return found | ({"wait_mean_s": earlier.mean(earlier.values("wait_s"))} if earlier.has("wait_s") else {})


def _slow_share(earlier: EarlierRuns, past_s: Floats, slow_ratio: float) -> Floats:
    """The share of earlier runs that took slow_ratio times the median of their job at the time, or longer."""
    ratios = normalise(earlier.values("runtime_s"), past_s, "ratio")
    return earlier.mean(np.where(np.isnan(ratios), np.nan, ratios >= slow_ratio))


def _hours_since(times: pd.Series, earlier: EarlierRuns) -> Floats:
    is_known = earlier.last >= 0
    hours = np.full(len(times), np.nan)
    ended_at = earlier.known_at.to_numpy()[earlier.last[is_known]]
    hours[is_known] = (times.to_numpy()[is_known] - ended_at) / HOUR
    return hours
