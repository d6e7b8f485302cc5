"""What a predicted runtime distribution says of variation and cost, run by run; and what a change does to it.

The measures of Table 2 of the paper (outliers, 25th-75th gap, 95th percentile, standard deviation), then cost."""

from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.distribution import Floats, Predicted
from tasks.jobs.scores import bootstrap_difference

LEVELS = (0.25, 0.5, 0.75, 0.95)
SECONDS_PER_HOUR = 3600
MEASURES: dict[str, str] = {  # name -> words, in the order of every table
    "outlier_share": "probability of an outlier, over the ratio to the historic median",
    "outlier_share_delta": "probability of an outlier, by seconds from the historic median",
    "gap_s": "25th-75th gap, in seconds",
    "gap_ratio": "25th-75th gap, over the historic median",
    "p95_s": "95th percentile, in seconds",
    "p95_ratio": "95th percentile, over the historic median",
    "sd_s": "standard deviation, in seconds",
    "sd_ratio": "standard deviation, over the historic median",
    "median_s": "median runtime, in seconds",
    "mean_s": "mean runtime, in seconds",
    "token_s": "token-seconds, tokens times the mean runtime",
    "money": "price of a run, at the price of a token-hour",
}


def measure(predicted: Predicted, medians_s: Any, tokens: Any, params: WhatIfParams) -> pd.DataFrame:
    """One row an instance, the columns of MEASURES. medians_s: (n,) historic medians in seconds, the same before and
    after a change; tokens: (n,), such as tokens_of(frame).

    NaN where it needs a median that is unknown or 0, or unknown tokens. Mean and standard deviation are over
    params.n_atoms values (Predicted.atoms); the far tail beyond the last of them is not in the deviation.
    Raises ValueError for arrays of another length."""
    n = predicted.n
    median = _column("medians_s", medians_s, n)
    held = _column("tokens", tokens, n)
    median = np.where(np.isfinite(median) & (median > 0), median, np.nan)
    p25, p50, p75, p95 = predicted.quantile(np.broadcast_to(LEVELS, (n, len(LEVELS)))).T
    mean, sd = moments(*predicted.atoms(params.n_atoms))
    token_s = held * mean
    found = {
        "outlier_share": _over(predicted, median * params.outlier_ratio),
        "outlier_share_delta": _beyond(predicted, median, params.outlier_delta_s),
        **{"gap_s": p75 - p25, "gap_ratio": (p75 - p25) / median},
        **{"p95_s": p95, "p95_ratio": p95 / median, "sd_s": sd, "sd_ratio": sd / median},
        **{"median_s": p50, "mean_s": mean, "token_s": token_s},
        "money": token_s / SECONDS_PER_HOUR * params.price_per_token_hour,
    }
    return pd.DataFrame(found, columns=list(MEASURES))


def tokens_of(frame: pd.DataFrame, params: WhatIfParams) -> Floats:
    """Tokens that a run is charged for, (n,), by a frame of features; NaN where the log says nothing of tokens.

    used: the mean in use over earlier runs, times what this run requests over what they did; the request where
    there was no earlier run. requested: the request, of spare tokens nothing."""
    unknown = pd.Series(np.nan, index=frame.index)
    requested = frame.get("requested_tokens", unknown)
    if params.charged == "requested" or "mean_tokens_mean" not in frame:
        return np.asarray(requested, dtype=np.float64)
    ratio = frame.get("tokens_ratio", unknown).fillna(1.0)
    return np.asarray((frame["mean_tokens_mean"] * ratio).fillna(requested), dtype=np.float64)


def changes(
    before: pd.DataFrame, after: pd.DataFrame, groups: Any, params: WhatIfParams, rng: np.random.Generator
) -> pd.DataFrame:
    """Mean of each measure before and after, and the change with its paired interval over groups.

    before, after: `measure` of the same instances; groups: (n,). Index: MEASURES; columns before, after, change, low,
    high, relative (change over before), share_below (of the resamples: below 0), n_runs, n_groups, n_left_out, reason
    (why there is no figure or no interval). The interval is of the mean prediction over jobs like these: it holds
    nothing of the model's own error. Source: Efron & Tibshirani 1993, 13.3."""
    rows = []
    for name in MEASURES:
        old, new = before[name].to_numpy(), after[name].to_numpy()
        found = bootstrap_difference(
            new, old, groups, rng, n_resamples=params.n_resamples, confidence=params.confidence
        )
        both = np.isfinite(old) & np.isfinite(new)
        was = float(old[both].mean()) if both.any() else None
        rows.append(
            {
                "before": was,
                "after": float(new[both].mean()) if both.any() else None,
                **{"change": found.value, "low": found.low, "high": found.high},
                "relative": found.value / was if found.value is not None and was else None,
                **{"share_below": found.share_below, "n_runs": found.n_runs, "n_groups": found.n_groups},
                **{"n_left_out": found.n_left_out, "reason": found.reason},
            }
        )
    return pd.DataFrame(rows, index=pd.Index(list(MEASURES), name="measure"))


def changes_by_group(before: pd.DataFrame, after: pd.DataFrame, groups: Any) -> pd.DataFrame:
    """Mean change of each measure in each group, and n_runs: one row a group; which jobs a change helps most."""
    keys = np.asarray(groups)
    found = (after - before).groupby(keys).mean()
    return found.assign(n_runs=pd.Series(keys).groupby(keys).size()).rename_axis("group_key")


def moments(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each row: (n,) each; values, weights: (n, m), weights sum to 1 in each row."""
    mean = (values * weights).sum(axis=1)
    return mean, np.sqrt((weights * (values - mean[:, None]) ** 2).sum(axis=1))


def _over(predicted: Predicted, limit_s: Floats) -> Floats:
    """P(runtime >= limit), NaN where the limit is."""
    asked = np.where(np.isnan(limit_s), 0.0, limit_s)
    return np.where(np.isnan(limit_s), np.nan, 1 - predicted.cdf_below(asked))


def _beyond(predicted: Predicted, median_s: Floats, delta_s: float) -> Floats:
    """P(|runtime - median| >= delta): the two outer bins of Delta-normalisation."""
    known = np.where(np.isnan(median_s), 0.0, median_s)
    share = 1 - predicted.cdf_below(known + delta_s) + predicted.cdf(known - delta_s)
    return np.where(np.isnan(median_s), np.nan, np.clip(share, 0.0, 1.0))


def _column(name: str, values: Any, n: int) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (n,):
        raise ValueError(f"{name}: shape {found.shape}; expected ({n},), one for each instance")
    return found
