"""Predicted beside measured change of one scenario over its matched pairs, in one call."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.control.pair_scores import PairScore, score_pairs
from tasks.jobs.control.pair_spread import SpreadChanges, pooled, score_spread, spread_changes, spread_of
from tasks.jobs.control.pairs import REPLAY, Pairs, predicted_change
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.distribution import Floats, Predicted

SIDES = ["measured_before", "measured_after", "predicted_before", "predicted_after"]


@dataclass(frozen=True)
class Noise:
    """How much two runs differ when nothing was changed on purpose: the log runtime ratio of a run and its replay.

    mean_absolute: no prediction of single runs can be expected to miss by less; sd: its standard deviation."""

    n: int
    mean_absolute: float | None
    sd: float | None


@dataclass(frozen=True)
class Comparison:
    """One change over its pairs. score: log runtime ratio of each pair; seconds: the same for the change in seconds,
    its dead band in seconds; spread: by name of SPREADS, change of each job's variation; by_group: their frame.

    overall: all pairs as one sample, runtimes over their historic median: rows p95, variance, log_variance, gap and
    outlier_share, columns SIDES; n_overall: pairs with such a median. measured, predicted: (score.n,) log runtime
    ratios of the pairs that the score is of."""

    what_if: str
    score: PairScore
    seconds: PairScore
    spread: dict[str, PairScore]
    by_group: SpreadChanges
    overall: pd.DataFrame
    n_overall: int
    measured: Floats
    predicted: Floats


def compare(
    pairs: pd.DataFrame,
    before: Predicted,
    after: Predicted,
    medians_s: Any,
    what_if: str,
    params: WhatIfParams,
    rng: np.random.Generator,
) -> Comparison:
    """pairs: of Pairs.of(what_if), (n,); before, after: predicted for the features of each baseline as they are, and
    with the change made in them; medians_s: (n,) historic medians of their jobs, NaN where unknown.

    No pairs give reasons instead of figures. Raises ValueError for predictions of another length."""
    groups = pairs["group_key"].to_numpy()
    by_group = spread_changes(pairs, before, after, params)  # checks the lengths
    told = predicted_change(before, after)
    in_seconds = params.model_copy(update={"dead_band": params.dead_band_s})
    measured, is_told = pairs["log_ratio"].to_numpy(dtype=np.float64), np.isfinite(told.log_ratio)
    overall, n_overall = _overall(pairs, before, after, np.asarray(medians_s, dtype=np.float64), params)
    return Comparison(
        what_if,
        score_pairs(pairs["log_ratio"], told.log_ratio, groups, params, rng),
        score_pairs(pairs["delta_s"], told.delta_s, groups, in_seconds, rng),
        score_spread(by_group, params, rng),
        by_group,
        overall,
        n_overall,
        measured[is_told],
        told.log_ratio[is_told],
    )


def noise_of(pairs: Pairs) -> Noise:
    """The noise of single runs, from runs that were repeated unchanged."""
    ratios = pairs.of(REPLAY)["log_ratio"].to_numpy(dtype=float)
    if not len(ratios):
        return Noise(0, None, None)
    return Noise(len(ratios), float(np.abs(ratios).mean()), float(ratios.std()))


def _overall(
    pairs: pd.DataFrame, before: Predicted, after: Predicted, medians_s: Floats, params: WhatIfParams
) -> tuple[pd.DataFrame, int]:
    at = np.flatnonzero(np.isfinite(medians_s) & (medians_s > 0))
    median = medians_s[at]
    found: dict[str, dict[str, float]] = {}
    if len(at):
        for side, times_s, predicted in (("before", pairs["before_s"], before), ("after", pairs["after_s"], after)):
            real = times_s.to_numpy(dtype=float)[at] / median
            found[f"measured_{side}"] = _with_outliers(real, np.full(len(at), 1 / len(at)), params)
            found[f"predicted_{side}"] = _with_outliers(*pooled(predicted.rows(at), params, units_s=median), params)
    return pd.DataFrame(found, columns=SIDES), len(at)


def _with_outliers(values: Floats, weights: Floats, params: WhatIfParams) -> dict[str, float]:
    return {**spread_of(values, weights), "outlier_share": float(weights[values >= params.outlier_ratio].sum())}
