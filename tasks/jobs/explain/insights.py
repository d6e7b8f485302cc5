"""The insights of the paper about variation, each tested on this log: holds, does not hold, or cannot be told."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import Contributions
from tasks.jobs.scores import (
    CONFIDENCE,
    RESAMPLES,
)

CELLS = 4_000_000  # resamples times groups drawn together


@dataclass(frozen=True)
class RankCorrelation:
    """value: mean of the correlations, weighted; low, high: its interval over groups; n_runs, n_groups behind it."""

    value: float | None
    low: float | None
    high: float | None
    n_runs: int
    n_groups: int
    reason: str | None = None


def rank_correlation(
    pairs: list[tuple[Floats, Floats, float]],
    groups: Any,
    rng: np.random.Generator,
    *,
    n_resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> RankCorrelation:
    """Weighted mean of Spearman's rho over pairs of columns, with a percentile interval from drawing groups.

    pairs: (x, y, weight), x and y (n,), runs where either is NaN left out of that pair; groups: (n,). Ranks (ties:
    mean) are taken once, over all runs, and drawn with their groups. A pair whose x or y is constant is left out, its
    weight with it. Source: Spearman 1904; Efron & Tibshirani 1993, 13.3 (groups drawn whole)."""
    _, number = np.unique(np.asarray(groups), return_inverse=True)
    n_groups = int(number.max()) + 1 if len(number) else 0
    used = [found for x, y, weight in pairs if (found := _moments(x, y, weight, number, n_groups)) is not None]
    if not used:
        return RankCorrelation(None, None, None, 0, 0, "nothing that varies and is known")
    has_runs = np.any([moments[:, 0] > 0 for moments, _ in used], axis=0)
    used = [(moments[has_runs], weight) for moments, weight in used]
    n_runs, n_used = int(max(moments[:, 0].sum() for moments, _ in used)), int(has_runs.sum())
    value = float(_weighted([(moments.sum(axis=0)[None], weight) for moments, weight in used])[0])
    if n_used < 2:
        return RankCorrelation(value, None, None, n_runs, n_used, "one group: nothing to draw from")
    drawn = _resampled(used, n_used, rng, n_resamples)
    low, high = np.nanquantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return RankCorrelation(value, float(low), float(high), n_runs, n_used)


def _moments(x: Any, y: Any, weight: float, number: Any, n_groups: int) -> tuple[Floats, float] | None:
    """Sums over the runs of each group of 1, u, v, u², v², u v of centred ranks u, v: (n_groups, 6)."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    is_known = ~(np.isnan(first) | np.isnan(second))
    first, second, of_group = first[is_known], second[is_known], number[is_known]
    if weight <= 0 or not len(first) or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    u, v = (2 * rankdata(values) / len(values) - 1 for values in (first, second))
    columns = (np.ones(len(u)), u, v, u * u, v * v, u * v)
    return np.stack([np.bincount(of_group, weights=column, minlength=n_groups) for column in columns], axis=1), weight


def _resampled(used: list[tuple[Floats, float]], n_groups: int, rng: np.random.Generator, n_resamples: int) -> Floats:
    step, drawn = max(1, CELLS // n_groups), []
    for first in range(0, n_resamples, step):
        n = min(step, n_resamples - first)
        counts = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=n).astype(np.float64)  # (n, n_groups)
        drawn.append(_weighted([(counts @ moments, weight) for moments, weight in used]))
    return np.concatenate(drawn)


def _weighted(sums: list[tuple[Floats, float]]) -> Floats:
    """Weighted mean of the correlations; sums: (m, 6) each, returns (m,), NaN where none is defined."""
    correlations = np.stack([_correlation(moments) for moments, _ in sums])  # (pairs, m)
    weights = np.where(np.isnan(correlations), 0.0, np.array([weight for _, weight in sums])[:, None])
    total = weights.sum(axis=0)
    mean: Floats = np.where(
        total > 0, (weights * np.nan_to_num(correlations)).sum(axis=0) / np.where(total > 0, total, 1), np.nan
    )
    return mean


def _correlation(moments: Floats) -> Floats:
    """Pearson's of the ranks: (n sum uv - sum u sum v) / sqrt((n sum u² - (sum u)²) (n sum v² - (sum v)²))."""
    n, u, v, uu, vv, uv = moments.T
    spread = (n * uu - u * u) * (n * vv - v * v)
    rounding = 1e-12
    is_defined = spread > rounding
    correlation: Floats = np.where(is_defined, (n * uv - u * v) / np.sqrt(np.where(is_defined, spread, 1.0)), np.nan)
    return correlation


Verdict = Literal["holds", "does not hold", "cannot be told"]
Sign = Literal[1, -1]
MIN_GROUPS = 10  # fewer groups drawn with replacement give too narrow an interval
SKU_FEATURE = re.compile(r"(?:vertices|vertex_share)_(.+)_mean")


@dataclass(frozen=True)
class Claim:
    """name; words: the insight; pattern: the features that it is about (the whole name); sign: 1 if more of them
    should mean more variation, -1 if less."""

    name: str
    words: str
    pattern: str
    sign: Sign


@dataclass(frozen=True)
class Insight:
    """model: Spearman's rho of the features and what they add to the log-odds of the variable shapes, the mean over
    features weighted by their importance. measured: rho of the features and the variation that was seen, without a
    model, where that was given. verdict, measured_verdict: by the interval of each, against the claim's sign. The two
    can differ: a model tells jobs apart by their features, whatever makes them differ."""

    name: str
    words: str
    expected: Sign
    verdict: Verdict
    features: tuple[str, ...]
    model: RankCorrelation
    measured: RankCorrelation | None
    measured_verdict: Verdict | None = None
    reason: str | None = None


CLAIMS: tuple[Claim, ...] = (
    Claim("inputs", "larger inputs vary more", r"input_bytes|read_bytes_mean", 1),
    Claim("tokens", "fewer tokens vary more", r"requested_tokens|requested_cpus|(min|mean|peak)_tokens_mean", -1),
    Claim("index_lookup", "Index-Lookup operators vary more", r"op_(.*_)?INDEX_?(LOOKUP|SCAN|JOIN|SEEK)(_.*)?", 1),
    Claim("window", "Window operators vary more", r"op_(.*_)?WINDOW(_.*)?", 1),
    Claim("range", "Range operators vary more", r"op_(.*_)?RANGE(_.*)?", 1),
    Claim("load", "higher CPU load varies more", r"load_mean|sku_load_mean_.+", 1),
    Claim("load_deviation", "more uneven CPU load varies more", r"load_sd|sku_load_sd_.+", 1),
    Claim("spare_tokens", "more use of spare tokens varies more", r"spare_tokens_mean", 1),
)
NEWER_SKUS = "more vertices on newer SKUs vary less"
HISTORY = "more history gives better accuracy"


def judge_insights(
    variable: Contributions,
    frame: pd.DataFrame,
    groups: Any,
    rng: np.random.Generator,
    *,
    variation: Any = None,
    skus: Sequence[str] | None = None,
    n_resamples: int = RESAMPLES,
) -> list[Insight]:
    """One insight for each of CLAIMS, and one for the newer SKUs.

    variable: contributions to the log-odds of the variable shapes, one score (odds.towards); frame: (n, p); groups:
    (n,). variation: (n,), how far each run was from usual, such as |log ratio|, or None. skus: oldest first, by
    default those of the features in the order of their names; the newer half of them is what the claim is about.
    Source: Zhu et al. 2023, section 6."""
    claims = [*CLAIMS, _newer_skus(variable.features, skus)]
    return [
        _tested(claim, variable, frame, np.asarray(groups), rng, variation=variation, n_resamples=n_resamples)
        for claim in claims
    ]


def judge_history(
    n_before: Any, is_right: Any, groups: Any, rng: np.random.Generator, *, n_resamples: int = RESAMPLES
) -> Insight:
    """Whether runs with more earlier runs of their job are predicted right more often: rho of the two, (n,) each."""
    right = np.asarray(is_right, dtype=np.float64)
    found = rank_correlation(
        [(np.asarray(n_before, dtype=np.float64), right, 1.0)], groups, rng, n_resamples=n_resamples
    )
    verdict, reason = _judged(found, 1)
    return Insight("history", HISTORY, 1, verdict, ("n_before",), found, None, reason=reason)


def insights_table(insights: Sequence[Insight]) -> pd.DataFrame:
    """One row an insight: name, words, verdict, expected (1 or -1), rho, low, high of the model, the same measured
    (None where no variation was given), n_runs, n_groups, features, reason."""
    rows = [
        {
            "name": one.name,
            "words": one.words,
            "verdict": one.verdict,
            "expected": one.expected,
            "rho": one.model.value,
            "low": one.model.low,
            "high": one.model.high,
            "measured": one.measured.value if one.measured else None,
            "measured_low": one.measured.low if one.measured else None,
            "measured_high": one.measured.high if one.measured else None,
            "measured_verdict": one.measured_verdict,
            "n_runs": one.model.n_runs,
            "n_groups": one.model.n_groups,
            "features": ", ".join(one.features),
            "reason": one.reason,
        }
        for one in insights
    ]
    return pd.DataFrame(rows)


def _newer_skus(features: Sequence[str], skus: Sequence[str] | None) -> Claim:
    found = [match[1] for name in features if (match := SKU_FEATURE.fullmatch(name))]
    known = list(skus) if skus is not None else sorted(set(found))
    newer = "|".join(re.escape(sku) for sku in known[(len(known) + 1) // 2 :])
    return Claim("newer_skus", NEWER_SKUS, rf"(vertices|vertex_share)_({newer})_mean", -1)


def _tested(
    claim: Claim,
    variable: Contributions,
    frame: pd.DataFrame,
    groups: Any,
    rng: np.random.Generator,
    *,
    variation: Any,
    n_resamples: int,
) -> Insight:
    places = [place for place, name in enumerate(variable.features) if re.fullmatch(claim.pattern, name, re.IGNORECASE)]
    names = tuple(variable.features[place] for place in places)
    parts = variable.single[:, places]
    weights = np.abs(parts).mean(axis=0) if len(parts) else np.zeros(len(names))
    values = [frame[name].to_numpy(dtype=np.float64) for name in names]
    pairs = [(values[i], parts[:, i], float(weights[i])) for i in range(len(names))]
    model = rank_correlation(pairs, groups, rng, n_resamples=n_resamples)
    measured = None
    in_log = [str(name) for name in frame if re.fullmatch(claim.pattern, str(name), re.IGNORECASE)]
    if variation is not None:  # also of features that the model does without
        seen = np.asarray(variation, dtype=np.float64)
        columns = [frame[name].to_numpy(dtype=np.float64) for name in in_log]
        measured = rank_correlation([(x, seen, 1.0) for x in columns], groups, rng, n_resamples=n_resamples)
    verdict, reason = _judged(model, claim.sign)
    if not in_log:
        reason = "the log has no such feature"
    elif not names:
        reason = "no such feature helped to tell shapes apart, so the model does without"
    elif model.value is None:
        reason = "the model uses no such feature, or it is the same in all runs"
    by_measure = _judged(measured, claim.sign)[0] if measured else None
    return Insight(
        claim.name, claim.words, claim.sign, verdict, names or tuple(in_log), model, measured, by_measure, reason
    )


def _judged(found: RankCorrelation, sign: Sign) -> tuple[Verdict, str | None]:
    if found.low is None or found.high is None:
        return "cannot be told", found.reason
    if found.n_groups < MIN_GROUPS:
        return "cannot be told", f"{found.n_groups} groups; an interval needs {MIN_GROUPS}"
    if found.low <= 0 <= found.high:
        return "cannot be told", "the interval holds 0"
    return ("holds" if (found.low > 0) == (sign > 0) else "does not hold"), None
