"""Did the variation of a job change as predicted: its runs of a change beside those of the baseline, pooled by job."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.jobs.control.measures import moments
from tasks.jobs.control.pair_scores import PairScore, score_pairs
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.distribution import Floats, Predicted

SPREADS = {
    "p95": "95th percentile of the runtime",
    "variance": "variance of the runtime",
    "log_variance": "variance of the log runtime, free of its level",
    "gap": "25th-75th gap of the runtime",
}
TAIL, QUARTILES = 0.95, (0.25, 0.75)
ROUNDING = 1e-9  # of equal runtimes the variance is not quite 0


@dataclass(frozen=True)
class SpreadChanges:
    """frame: one row a job with enough pairs, columns n_pairs and, for each of SPREADS, measured_<name> and
    predicted_<name>, the log ratio of after to before (NaN where one of them is 0). n_groups_left_out: jobs with too
    few pairs; reason: why no job is left."""

    frame: pd.DataFrame
    n_groups_left_out: int
    reason: str | None = None


def spread_changes(pairs: pd.DataFrame, before: Predicted, after: Predicted, params: WhatIfParams) -> SpreadChanges:
    """Measured and predicted change of the variation of each job, over the pairs of one change.

    pairs: rows of Pairs.of(what_if), (n,); before, after: predicted for the baseline of each pair, and for it with the
    change made in its features. What was measured is small samples (the 95th percentile of 7 runs is about their
    longest), so single jobs say little; what was predicted is the mixture of the predictions of the same runs."""
    if not len(pairs) == before.n == after.n:
        raise ValueError(f"pairs: {len(pairs)}, with predictions of {before.n} and {after.n}; expected as many of each")
    sizes = pairs.groupby("group_key")["before_s"].transform("size") if len(pairs) else pd.Series(dtype=float)
    rows, n_left_out = [], int(pairs.loc[(sizes < params.min_group_pairs).to_numpy(bool), "group_key"].nunique())
    for key, group in pairs[(sizes >= params.min_group_pairs).to_numpy(bool)].groupby("group_key"):
        at = pairs.index.get_indexer(group.index).astype(np.int64)
        real = _log_ratios(_of_runs(group["before_s"]), _of_runs(group["after_s"]))
        told = _log_ratios(*(spread_of(*pooled(part.rows(at), params)) for part in (before, after)))
        both = {
            f"{what}_{name}": found[name]
            for name in SPREADS
            for what, found in (("measured", real), ("predicted", told))
        }
        rows.append({"group_key": key, "n_pairs": len(group), **both})
    if not rows:
        reason = f"no job has {params.min_group_pairs} pairs"
        return SpreadChanges(pd.DataFrame(columns=["n_pairs"]), n_left_out, reason)
    return SpreadChanges(pd.DataFrame(rows).set_index("group_key"), n_left_out)


def score_spread(found: SpreadChanges, params: WhatIfParams, rng: np.random.Generator) -> dict[str, PairScore]:
    """For each of SPREADS the directions, errors and correlation over jobs, each job counted once."""
    scores = {}
    for name in SPREADS:
        if found.reason is not None:
            scores[name] = PairScore(0, 0, 0, reason=found.reason)
            continue
        rows = found.frame[np.isfinite(found.frame[f"measured_{name}"])]
        told = rows[f"predicted_{name}"]
        scores[name] = score_pairs(rows[f"measured_{name}"], told, rows.index.to_numpy(), params, rng)
    return scores


def _of_runs(times_s: pd.Series) -> dict[str, float]:
    values = times_s.to_numpy(dtype=float)
    return spread_of(values, np.full(len(values), 1 / len(values)))


def pooled(predicted: Predicted, params: WhatIfParams, *, units_s: Floats | None = None) -> tuple[Floats, Floats]:
    """Values and weights of the mixture of the predictions, each run counted alike: (n * m,) each.

    Values in seconds, or in units_s, (n,), of each run."""
    values, weights = predicted.atoms(params.n_atoms)
    values = values if units_s is None else values / units_s[:, None]
    return values.ravel(), weights.ravel() / predicted.n


def spread_of(values: Floats, weights: Floats) -> dict[str, float]:
    """SPREADS of values, (m,), whose weights sum to 1; the log variance is over the values above 0."""
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(weights[order])
    places = np.searchsorted(upto, np.array([*QUARTILES, TAIL]) - ROUNDING).clip(max=len(values) - 1)
    p25, p75, p95 = values[order][places]
    is_positive = values > 0
    logs, log_weights = np.log(values[is_positive]), weights[is_positive]
    mean, sd = moments(values[None], weights[None])
    log_mean, log_sd = moments(logs[None], (log_weights / log_weights.sum())[None])
    variance = sd[0] ** 2 if sd[0] > ROUNDING * mean[0] else 0.0
    log_variance = log_sd[0] ** 2 if log_sd[0] > ROUNDING * max(1.0, abs(log_mean[0])) else 0.0
    return {"p95": p95, "variance": variance, "log_variance": log_variance, "gap": p75 - p25}


def _log_ratios(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    is_there = {name: before[name] > 0 and after[name] > 0 for name in SPREADS}
    return {name: float(np.log(after[name] / before[name])) if is_there[name] else float("nan") for name in SPREADS}
