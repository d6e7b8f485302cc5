"""The largest reasons for what was predicted of one run, in words: what is unusual, by how much, what it does.

A family of features is a reason where together they change the prediction and one of them is not as usual: 9.1 h that
are as usual are no reason for anything, whatever the trees add there. What is no reason is in the rest."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from tasks.errors import NotFound
from tasks.jobs.explain.contributions import FAMILIES, MIN_RUNS, Contributions, Family, family_of
from tasks.jobs.predict.feature_words import feature_of
from tasks.quantities import duration, number, share, times

Scale = Literal["factor", "odds"]
Whose = Literal["the job", "all runs"]
Style = Literal["bytes", "count", "seconds", "hours", "share", "multiple", "clock", "weekday", "yes_no"]
VARIABLE = "a variable runtime"
NOTABLE = 0.25  # of the largest part in a family: what may stand for it as well
LEAST = math.log(1.05)  # what makes a run, or the odds, less than 5 % longer or shorter is no reason
MOSTLY = 0.8  # share of a sum from which one feature stands for its family
NEAR_1 = (0.9, 1.1)
ALIKE = 0.1  # a tenth more or less is said to be as usual
# A ratio is said through what it is a ratio of: "3.2 GB, 2.1 times the job's usual 1.5 GB".
SAID_AS = {
    "input_ratio": "input_bytes",
    "input_usual": "input_bytes",
    "cost_ratio": "estimated_cost",
    "tokens_ratio": "requested_tokens",
}
# The first pattern that fits the whole name, and what undoes its logarithm; the rest goes by the unit of the feature.
PEERS = r"(job|user|user_request|request|log)_"
STYLES: tuple[tuple[str, Style, Callable[[float], float] | None], ...] = (
    (PEERS + "runs", "count", math.expm1),
    (PEERS + "since", "seconds", math.expm1),
    (PEERS + "limit_share", "share", math.exp),
    (PEERS + r"(last|before_last|mean\d+|median\d*|q\d+)|input_usual|log_median_before", "seconds", math.exp),
    (r"log_ratio_.*|.*log_ratio", "multiple", math.exp),
    (r"(load_|sku_load_|vertex_share_|outlier_share|(recent_)?shape_).*", "share", None),
    (r".*_ratio|p25_p75.*", "multiple", None),
    (r"hour_of_day", "clock", None),
    (r"day_of_week", "weekday", None),
    (r"offered_.*", "yes_no", None),
)
BY_UNIT: dict[str, Style] = {"bytes": "bytes", "s": "seconds", "h": "hours"}
AMOUNTS = ("bytes", "count", "seconds", "hours")  # twice as much is a thing to say
BYTES = ("B", "kB", "MB", "GB", "TB", "PB")
KILO = 1000.0
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SINGULAR = {"vertices": "vertex"}
LOG_NOTE = re.compile(r" \(log[^)]*\)$")
HOUR_S, MINUTES = 3600.0, 60
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Typical:
    """by_job: medians, a row a job of at least MIN_RUNS runs; overall: medians over the jobs' medians.

    is_within_job: a run is compared with its job only, also where its value is as usual there."""

    by_job: pd.DataFrame
    overall: pd.Series
    is_within_job: bool = False

    def beside(self, feature: str, value: float, job: str) -> tuple[float, Whose]:
        """The value to compare with: the job's usual one; that of all runs where the job's is unknown or the same."""
        own = float(self.by_job[feature].get(job, np.nan)) if feature in self.by_job else np.nan
        if np.isnan(own) or (is_as_usual(feature, value, own) and not self.is_within_job):
            return float(self.overall.get(feature, np.nan)), "all runs"
        return own, "the job"


def typical_values(frame: pd.DataFrame, groups: Any) -> Typical:
    """Medians of features (n, p) by job and over all; groups: (n,). NaN where no run has the value.

    Each job counts once in the median over all, however often it ran; without such jobs it is that over runs."""
    grouped = frame.groupby(np.asarray(groups))
    by_job = grouped.median()[(grouped.size() >= MIN_RUNS).to_numpy()]
    return Typical(by_job, (by_job if len(by_job) else frame).median())


@dataclass(frozen=True)
class Reason:
    """One family of features. contribution: log of the factor on the runtime, or log-odds; parts: of each feature.

    feature: the one that stands for the family; value, typical: in its unit, NaN where unknown."""

    family: Family
    feature: str
    value: float
    typical: float
    compared_with: Whose
    contribution: float
    parts: dict[str, float]
    text: str

    @property
    def factor(self) -> float:
        """On the expected runtime, or on the odds."""
        return math.exp(self.contribution)


@dataclass(frozen=True)
class Explanation:
    """base: score without this run's features; prediction = base + contributions of reasons + rest.

    reasons: the largest first; rest: what all other families add together. On the scale `factor` the scores are logs
    of runtime in seconds, on `odds` log-odds."""

    scale: Scale
    base: float
    prediction: float
    reasons: tuple[Reason, ...]
    rest: float


def explain_run(
    parts: Contributions, frame: pd.DataFrame, job: str, typical: Typical, *, scale: Scale = "factor", most: int = 5
) -> Explanation:
    """Reasons for one run, at most `most`, by size. parts: one score of one run; frame: its row of features.

    job: its group_key, to compare with what is usual for it in `typical`. A family that changes the runtime or the odds
    by less than LEAST, or of which all is as usual, is no reason. Source: Zhu et al. 2023, section 6.1."""
    added = dict(zip(parts.features, parts.single[0].tolist(), strict=True))
    values = {str(name): float(value) for name, value in frame.iloc[0].items()}
    members = {family: {name: part for name, part in added.items() if family_of(name) == family} for family in FAMILIES}
    reasons: list[Reason] = []
    for family in sorted(members, key=lambda one: -abs(sum(members[one].values()))):
        mine = members[family]
        effect = sum(mine.values())
        if abs(effect) < LEAST or len(reasons) == most:
            break
        shown = _shown(mine, values, typical, job)
        if shown is not None:
            value = values.get(shown, math.nan)
            usual, whose = typical.beside(shown, value, job)
            text = f"{words_of(shown)}: {_compared(shown, value, usual, whose)}: {_effect(effect, scale)}"
            text += _others(family, mine, shown)
            reasons.append(Reason(family, shown, value, usual, whose, effect, mine, text))
    base, total = float(parts.base[0, 0]), sum(added.values())
    rest = total - sum(reason.contribution for reason in reasons)
    return Explanation(scale, base, base + total, tuple(reasons), rest)


def _shown(parts: dict[str, float], values: dict[str, float], typical: Typical, job: str) -> str | None:
    """The feature that stands for its family: of those that add a notable part to its sum the first that is not as
    usual, known before unknown, a ratio as what it is a ratio of. None where all of them are as usual."""

    def is_unusual(name: str) -> bool:
        value = values.get(name, math.nan)
        usual = typical.beside(name, value, job)[0]
        return not (math.isnan(value) and math.isnan(usual)) and not is_as_usual(name, value, usual)

    sign = np.sign(sum(parts.values()))
    least = NOTABLE * max(part * sign for part in parts.values())
    by_part = sorted(parts, key=lambda name: -parts[name] * sign)
    unusual = [name for name in by_part if parts[name] * sign >= least and is_unusual(name)]
    if not unusual:
        return None
    shown = min(unusual, key=lambda name: math.isnan(values.get(name, math.nan)))
    said = SAID_AS.get(shown, shown)
    return said if not math.isnan(values.get(said, math.nan)) and is_unusual(said) else shown


def _others(family: Family, parts: dict[str, float], shown: str) -> str:
    """Says how many more features the sum is of, where the one shown, with its ratio, is not most of it."""
    same = {shown, *(ratio for ratio, base in SAID_AS.items() if base == shown)}
    n_more = sum(1 for name, part in parts.items() if part and name not in same)
    own = sum(part for name, part in parts.items() if name in same)
    return f", with {n_more} more on {family}" if n_more and abs(own) < MOSTLY * abs(sum(parts.values())) else ""


def _compared(feature: str, value: float, usual: float, whose: Whose) -> str:
    """The value beside the usual one: 3.2 GB, 2.1 times the usual 1.5 GB of the job."""
    said = in_words(feature, value)
    if math.isnan(usual):
        return said
    multiple = multiple_of(feature, value, usual)
    if multiple is None:
        return f"{said}, usual for {whose} {in_words(feature, usual)}"
    return f"{said}, {number(multiple)} times the usual {in_words(feature, usual)} of {whose}"


def _effect(contribution: float, scale: Scale) -> str:
    factor = math.exp(contribution)
    said = f"{factor:.2f}" if NEAR_1[0] < factor < NEAR_1[1] else number(factor)
    if scale == "factor":
        return f"makes it {said} times as long"
    if contribution > 0:
        return f"multiplies the odds of {VARIABLE} by {said}"
    return f"lowers the odds of {VARIABLE} to {said} times"


def words_of(name: str) -> str:
    """What a feature measures, as a noun; its name in plain letters if no catalogue has it.

    A logarithm is said as what it is a logarithm of, by in_words too, so its note is left out."""
    try:
        return LOG_NOTE.sub("", feature_of(name).words)
    except NotFound:
        return name.replace("_", " ")


def in_words(name: str, value: float) -> str:
    """One value of a feature with its unit, as people say it: 3.2 GB, 6 tokens, Tuesday; `unknown` for NaN."""
    if math.isnan(value):
        return UNKNOWN
    style, value = _plain(name, value)
    match style:
        case "bytes":
            power = 0
            while abs(value) >= KILO and power < len(BYTES) - 1:
                value, power = value / KILO, power + 1
            return f"{number(value)} {BYTES[power]}"
        case "seconds" | "hours":
            return duration(value * (HOUR_S if style == "hours" else 1))
        case "share":
            return share(value)
        case "multiple":
            return times(value)
        case "clock":
            hours, minutes = divmod(round(value * MINUTES), MINUTES)
            return f"{hours % 24:02d}:{minutes:02d}"
        case "weekday":
            return WEEKDAYS[int(value) % len(WEEKDAYS)]
        case "yes_no":
            return number(value) if value not in (0, 1) else "yes" if value else "no"
        case "count":
            unit = _unit(name)
            one = SINGULAR.get(unit, unit.removesuffix("s"))
            return f"{number(value)} {one if value == 1 else unit}".strip()


def multiple_of(name: str, value: float, typical: float) -> float | None:
    """How many times the typical value this is; None where that says nothing (shares, times of day, from 0)."""
    if math.isnan(value) or math.isnan(typical):
        return None
    (style, value), (_, typical) = _plain(name, value), _plain(name, typical)
    return value / typical if style in AMOUNTS and typical > 0 and value > 0 else None


def is_as_usual(name: str, value: float, usual: float) -> bool:
    """Whether two values of a feature differ by at most a tenth of the larger, or are said alike: < 0.1 %, < 0.1 %.

    Of a logarithm what counts is what it is of. Two unknown values are not alike."""
    if math.isnan(value) or math.isnan(usual):
        return False
    one, other = _plain(name, value)[1], _plain(name, usual)[1]
    return abs(one - other) <= ALIKE * max(abs(one), abs(other)) or in_words(name, value) == in_words(name, usual)


def _plain(name: str, value: float) -> tuple[Style, float]:
    """How the values of a feature are said, and this one without its logarithm."""
    for pattern, style, inverse in STYLES:
        if re.fullmatch(pattern, name):
            return style, inverse(value) if inverse else value
    return BY_UNIT.get(_unit(name), "count"), value


def _unit(name: str) -> str:
    try:
        return feature_of(name).unit
    except NotFound:
        return "bytes" if name.endswith("_bytes") else "s" if name.endswith("_s") else ""
