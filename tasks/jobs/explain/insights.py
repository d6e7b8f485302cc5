"""The insights of the paper about variation, each tested on this log: holds, does not hold, or cannot be told."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from tasks.jobs.explain.contributions import Contributions
from tasks.jobs.explain.rank_correlation import RankCorrelation, rank_correlation
from tasks.jobs.scores import RESAMPLES

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
