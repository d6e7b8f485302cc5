"""The insights of the paper about variation, each tested on this log: holds, does not hold, or cannot be told."""

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import Contributions
from tasks.jobs.scores import CONFIDENCE

RESAMPLES = 1000  # of the jobs, for each interval
CELLS = 4_000_000  # resamples times groups drawn together
ROUNDING = 1e-12
MIN_GROUPS = 10  # fewer groups drawn with replacement give too narrow an interval
SKU_FEATURE = re.compile(r"(?:vertices|vertex_share)_(.+)_mean")
Verdict = Literal["holds", "does not hold", "cannot be told"]
Sign = Literal[1, -1]


@dataclass(frozen=True)
class Claim:
    """name; words: the insight; pattern: the features that it is about (the whole name); sign: 1 if more of them
    should mean more variation, -1 if less."""

    name: str
    words: str
    pattern: str
    sign: Sign


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


@dataclass(frozen=True)
class RankCorrelation:
    """value: mean of the correlations, weighted; low, high: its interval over groups; n_runs, n_groups behind it."""

    value: float | None
    low: float | None
    high: float | None
    n_runs: int
    n_groups: int
    reason: str | None = None

    def verdict(self, sign: Sign) -> tuple[Verdict, str | None]:
        """By the interval, against a claim's sign; and why it cannot be told."""
        if self.low is None or self.high is None:
            return "cannot be told", self.reason
        if self.n_groups < MIN_GROUPS:
            return "cannot be told", f"{self.n_groups} groups; an interval needs {MIN_GROUPS}"
        if self.low <= 0 <= self.high:
            return "cannot be told", "the interval holds 0"
        return ("holds" if (self.low > 0) == (sign > 0) else "does not hold"), None


@dataclass(frozen=True)
class Insight:
    """model: Spearman's rho of the features and what they add to the log-odds of the variable shapes, the mean over
    features weighted by their importance. measured: rho of the features and the variation that was seen, without a
    model. verdict, measured_verdict: by the interval of each, against the claim's sign. The two can differ: a model
    tells jobs apart by their features, whatever makes them differ."""

    name: str
    words: str
    verdict: Verdict
    model: RankCorrelation
    measured: RankCorrelation | None
    measured_verdict: Verdict | None = None
    reason: str | None = None


def judge_insights(
    variable: Contributions, frame: pd.DataFrame, groups: Any, rng: np.random.Generator, *, variation: Floats
) -> list[Insight]:
    """One insight for each of CLAIMS, and one for the newer half of the SKUs, in the order of their names.

    variable: contributions to the log-odds of the variable shapes, one score; frame: (n, p); groups: (n,); variation:
    (n,), how far each run was from usual, such as |log ratio|. Source: Zhu et al. 2023, section 6."""
    skus = sorted({match[1] for name in variable.features if (match := SKU_FEATURE.fullmatch(name))})
    newer = "|".join(re.escape(sku) for sku in skus[(len(skus) + 1) // 2 :])
    newer_skus = Claim("newer_skus", NEWER_SKUS, rf"(vertices|vertex_share)_({newer})_mean", -1)
    return [_tested(claim, variable, frame, groups, rng, variation) for claim in (*CLAIMS, newer_skus)]


def judge_history(n_before: Any, is_right: Any, groups: Any, rng: np.random.Generator) -> Insight:
    """Whether runs with more earlier runs of their job are predicted right more often: rho of the two, (n,) each."""
    found = rank_correlation([(n_before, is_right, 1.0)], groups, rng)
    verdict, reason = found.verdict(1)
    return Insight("history", HISTORY, verdict, found, None, reason=reason)


def _tested(
    claim: Claim, variable: Contributions, frame: pd.DataFrame, groups: Any, rng: np.random.Generator, variation: Floats
) -> Insight:
    def fits(name: Any) -> bool:
        return re.fullmatch(claim.pattern, str(name), re.IGNORECASE) is not None

    places = [place for place, name in enumerate(variable.features) if fits(name)]
    parts = variable.single[:, places]
    weights = np.abs(parts).mean(axis=0) if len(parts) else np.zeros(len(places))
    columns = [frame[variable.features[place]] for place in places]
    model = rank_correlation(list(zip(columns, parts.T, weights.tolist(), strict=True)), groups, rng)
    in_log = [name for name in frame if fits(name)]  # also features that the model does without
    measured = rank_correlation([(frame[name], variation, 1.0) for name in in_log], groups, rng)
    verdict, reason = model.verdict(claim.sign)
    if not in_log:
        reason = "the log has no such feature"
    elif not places:
        reason = "no such feature helped to tell shapes apart, so the model does without"
    elif model.value is None:
        reason = "the model uses no such feature, or it is the same in all runs"
    by_measure = measured.verdict(claim.sign)[0]
    return Insight(claim.name, claim.words, verdict, model, measured, by_measure, reason)


def rank_correlation(
    pairs: list[tuple[Any, Any, float]], groups: Any, rng: np.random.Generator, *, n_resamples: int = RESAMPLES
) -> RankCorrelation:
    """Weighted mean of Spearman's rho over pairs of columns, with a percentile interval from drawing groups.

    pairs: (x, y, weight), x and y (n,), runs where either is NaN left out of that pair; groups: (n,). Ranks (ties:
    mean) are taken once, over all runs, and drawn with their groups. A pair whose x or y is constant is left out, its
    weight with it. Source: Spearman 1904; Efron & Tibshirani 1993, 13.3 (groups drawn whole)."""
    _, number = np.unique(np.asarray(groups), return_inverse=True)
    n_groups = int(number.max(initial=-1)) + 1
    used = [found for x, y, weight in pairs if (found := _moments(x, y, weight, number, n_groups)) is not None]
    if not used:
        return RankCorrelation(None, None, None, 0, 0, "nothing that varies and is known")
    has_runs = np.any([moments[:, 0] > 0 for moments, _ in used], axis=0)
    used = [(moments[has_runs], weight) for moments, weight in used]
    n_runs, n_used = int(max(moments[:, 0].sum() for moments, _ in used)), int(has_runs.sum())
    value = float(_weighted([(moments.sum(axis=0)[None], weight) for moments, weight in used])[0])
    if n_used < 2:
        return RankCorrelation(value, None, None, n_runs, n_used, "one group: nothing to draw from")
    step, drawn = max(1, CELLS // n_used), []
    for first in range(0, n_resamples, step):
        n = min(step, n_resamples - first)
        counts = rng.multinomial(n_used, np.full(n_used, 1 / n_used), size=n).astype(np.float64)  # (n, n_used)
        drawn.append(_weighted([(counts @ moments, weight) for moments, weight in used]))
    low, high = np.nanquantile(np.concatenate(drawn), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
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


def _weighted(sums: list[tuple[Floats, float]]) -> Floats:
    """Weighted mean of the correlations; sums: (m, 6) each, returns (m,), NaN where none is defined.

    Each is Pearson's of the ranks: (n sum uv - sum u sum v) / sqrt((n sum u² - (sum u)²) (n sum v² - (sum v)²))."""
    total, value = np.zeros(len(sums[0][0])), np.zeros(len(sums[0][0]))
    for moments, weight in sums:
        n, u, v, uu, vv, uv = moments.T
        spread = (n * uu - u * u) * (n * vv - v * v)
        is_defined = spread > ROUNDING
        correlation = (n * uv - u * v) / np.sqrt(np.where(is_defined, spread, 1.0))
        value += np.where(is_defined, weight * correlation, 0.0)
        total += np.where(is_defined, weight, 0.0)
    return np.where(total > 0, value / np.where(total > 0, total, 1), np.nan)
