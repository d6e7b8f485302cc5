"""The largest reasons for what was predicted of one run, in words, with sign and size."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from tasks.errors import NotFound
from tasks.jobs.explain.causes import (
    FAMILIES,
    Family,
    family_of,
)
from tasks.jobs.explain.contributions import MIN_RUNS, Contributions
from tasks.jobs.predict.feature_words import feature_of
from tasks.quantities import duration, number, share, times

Whose = Literal["the job", "all runs"]
ALIKE = 0.1  # a tenth more or less is said to be as usual


@dataclass(frozen=True)
class Typical:
    """by_job: medians, a row a job of at least MIN_RUNS runs; overall: medians over the jobs' medians.

    is_within_job: a run is compared with its job only, also where its value is as usual there."""

    by_job: pd.DataFrame
    overall: pd.Series
    is_within_job: bool = False

    def beside(self, feature: str, value: float, job: str) -> tuple[float, Whose]:
        """The value to compare with: the job's usual one; that of all runs where the job's is unknown or the same."""
        own = float(self.by_job[feature].get(job, np.nan))
        if np.isnan(own) or (is_alike(value, own) and not self.is_within_job):
            return float(self.overall[feature]), "all runs"
        return own, "the job"


def typical_values(frame: pd.DataFrame, groups: Any) -> Typical:
    """Medians of features (n, p) by job and over all; groups: (n,). NaN where no run has the value.

    Each job counts once in the median over all, however often it ran; without such jobs it is that over runs."""
    grouped = frame.groupby(np.asarray(groups))
    by_job = grouped.median()[(grouped.size() >= MIN_RUNS).to_numpy()]
    return Typical(by_job, (by_job if len(by_job) else frame).median())


def is_alike(value: float, other: float) -> bool:
    """Whether two values differ by at most a tenth of the larger; two unknown ones are not alike."""
    return bool(abs(value - other) <= ALIKE * max(abs(value), abs(other)))


Style = Literal["bytes", "count", "seconds", "hours", "share", "multiple", "log_s", "log", "clock", "weekday", "yes_no"]
# The first pattern that fits from the start of the name; the rest goes by the unit of the feature.
STYLES: tuple[tuple[str, Style], ...] = (
    (r"load_|sku_load_|vertex_share_|outlier_share|(recent_)?shape_", "share"),
    (r".*_ratio$(?<!log_ratio)|p25_p75", "multiple"),
    (r"log_median_before", "log_s"),
    (r"log_ratio_|.*log_ratio$", "log"),
    (r"hour_of_day", "clock"),
    (r"day_of_week", "weekday"),
    (r"offered_", "yes_no"),
)
BY_UNIT: dict[str, Style] = {"bytes": "bytes", "s": "seconds", "h": "hours"}
BYTES = ("B", "kB", "MB", "GB", "TB", "PB")
KILO = 1000.0
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SINGULAR = {"vertices": "vertex"}
LOG_NOTE = re.compile(r" \(log[^)]*\)$")
HOUR_S, MINUTES = 3600.0, 60
UNKNOWN = "unknown"
AMOUNTS = ("bytes", "count", "seconds", "hours", "log_s")  # twice as much is a thing to say


def words_of(name: str) -> str:
    """What a feature measures, as a noun; its name in plain letters if no catalogue has it.

    A logarithm is said as what it is a logarithm of, by in_words too, so its note is left out."""
    try:
        return LOG_NOTE.sub("", feature_of(name).words)
    except NotFound:
        return name.replace("_", " ")


def in_words(name: str, value: float) -> str:
    """One value of a feature with its unit; `unknown` for NaN."""
    if math.isnan(value):
        return UNKNOWN
    style = _style(name)
    match style:
        case "bytes":
            return size(value)
        case "seconds":
            return duration(value)
        case "hours":
            return duration(value * HOUR_S)
        case "share":
            return share(value)
        case "multiple":
            return times(value)
        case "log":
            return times(math.exp(value))
        case "log_s":
            return duration(math.exp(value))
        case "clock":
            hours, minutes = divmod(round(value * MINUTES), MINUTES)
            return f"{hours % 24:02d}:{minutes:02d}"
        case "weekday":
            return WEEKDAYS[int(value) % len(WEEKDAYS)]
        case "yes_no":
            return number(value) if value not in (0, 1) else "yes" if value else "no"
        case "count":
            return _counted(value, _unit(name))


def multiple_of(name: str, value: float, typical: float) -> float | None:
    """How many times the typical value this is; None where that says nothing (shares, times of day, from 0)."""
    style = _style(name)
    if style not in AMOUNTS or math.isnan(value) or math.isnan(typical):
        return None
    if style == "log_s":
        return math.exp(value - typical)
    return value / typical if typical > 0 and value > 0 else None


def size(n_bytes: float) -> str:
    """Bytes with a decimal prefix: 3.2 GB."""
    value, unit = n_bytes, 0
    while abs(value) >= KILO and unit < len(BYTES) - 1:
        value, unit = value / KILO, unit + 1
    return f"{number(value)} {BYTES[unit]}"


def _style(name: str) -> Style:
    for pattern, style in STYLES:
        if re.match(pattern, name):
            return style
    return BY_UNIT.get(_unit(name), "count")


def _unit(name: str) -> str:
    try:
        return feature_of(name).unit
    except NotFound:
        return "bytes" if name.endswith("_bytes") else "s" if name.endswith("_s") else ""


def _counted(value: float, unit: str) -> str:
    one = SINGULAR.get(unit, unit.removesuffix("s"))
    return f"{number(value)} {one if value == 1 else unit}".strip()


Scale = Literal["factor", "odds"]
Direction = Literal["up", "down", "both"]
VARIABLE = "a variable runtime"
NOTABLE = 0.25  # of the largest part in a family: what may stand for it as well
LEAST = 0.02  # log: what changes the expectation by less than 2 % is no reason
MOSTLY = 0.8  # share of a sum from which one feature stands for its family
NEAR_1 = (0.9, 1.1)
# A ratio is said through what it is a ratio of: "3.2 GB, 2.1 times the job's usual 1.5 GB".
SAID_AS = {"input_ratio": "input_bytes", "cost_ratio": "estimated_cost", "tokens_ratio": "requested_tokens"}


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
    of runtime over the usual median, on `odds` log-odds."""

    scale: Scale
    base: float
    prediction: float
    reasons: tuple[Reason, ...]
    rest: float


def explain_run(
    parts: Contributions,
    row: int,
    frame: pd.DataFrame,
    job: str,
    typical: Typical,
    *,
    scale: Scale = "factor",
    towards: str = VARIABLE,
    direction: Direction = "both",
    most: int = 5,
    least: float = LEAST,
) -> Explanation:
    """Reasons for run `row` of parts (one score, n runs) and frame (n, p), at most `most`, by size.

    job: its group_key, to compare with what is usual for it in `typical`. direction: only what makes it longer (or
    the odds higher), only the opposite, or both. towards: what the odds are of. A family that changes the runtime or
    the odds by less than `least`, a logarithm, is no reason. Source: Zhu et al. 2023, section 6.1."""
    added = dict(zip(parts.features, parts.single[row].tolist(), strict=True))
    said = [name for name in SAID_AS.values() if name in frame and name not in added]
    values = {str(name): float(value) for name, value in frame.iloc[[row]][[*added, *said]].iloc[0].items()}
    sums = {family: sum(added[name] for name in names) for family, names in _members(parts.features).items()}
    asked = [family for family, total in sums.items() if abs(total) >= least and _is_asked(total, direction)]
    reasons = []
    for family in sorted(asked, key=lambda one: -abs(sums[one]))[:most]:
        mine = {name: added[name] for name in added if family_of(name) == family}
        shown = _shown(mine, values, typical, job)
        usual, whose = typical.beside(shown, values[shown], job)
        effect = _effect(sums[family], scale, towards)
        compared, others = _compared(shown, values[shown], usual, whose), _others(family, mine, shown)
        text = f"{words_of(shown)}: {compared}: {effect}{others}"
        reasons.append(Reason(family, shown, values[shown], usual, whose, sums[family], mine, text))
    base, total = float(parts.base[row, 0]), sum(added.values())
    rest = total - sum(reason.contribution for reason in reasons)
    return Explanation(scale, base, base + total, tuple(reasons), rest)


def _is_asked(total: float, direction: Direction) -> bool:
    return direction == "both" or (total > 0) == (direction == "up")


def _members(features: Sequence[str]) -> dict[Family, list[str]]:
    members: dict[Family, list[str]] = {family: [] for family in FAMILIES}
    for name in features:
        members[family_of(name)].append(name)
    return {family: names for family, names in members.items() if names}


def _shown(parts: dict[str, float], values: dict[str, float], typical: Typical, job: str) -> str:
    """The feature that stands for its family: the one that adds most to the sum, a ratio as what it is a ratio of.

    One that is unknown or as usual only stands for it where no other adds a notable part."""
    sign = np.sign(sum(parts.values()))
    strongest = max(parts, key=lambda name: parts[name] * sign)
    notable = [name for name in parts if parts[name] * sign >= NOTABLE * parts[strongest] * sign]
    telling = [name for name in notable if _is_unusual(name, values[name], typical, job)]
    strongest = max(telling, key=lambda name: parts[name] * sign) if telling else strongest
    said = SAID_AS.get(strongest, strongest)
    return strongest if math.isnan(values.get(said, math.nan)) else said


def _is_unusual(name: str, value: float, typical: Typical, job: str) -> bool:
    return not math.isnan(value) and not _is_usual(name, value, typical.beside(name, value, job)[0])


def _is_usual(name: str, value: float, usual: float) -> bool:
    """Whether a value is as usual, or said alike: < 0.1 % beside < 0.1 %."""
    return is_alike(value, usual) or in_words(name, value) == in_words(name, usual)


def _others(family: Family, parts: dict[str, float], shown: str) -> str:
    """Says how many more features the sum is of, where the one shown, with its ratio, is not most of it."""
    same = {shown, *(ratio for ratio, base in SAID_AS.items() if base == shown)}
    n_more = sum(1 for name, part in parts.items() if part and name not in same)
    own = sum(part for name, part in parts.items() if name in same)
    return f", with {n_more} more on {family}" if n_more and abs(own) < MOSTLY * abs(sum(parts.values())) else ""


def _compared(feature: str, value: float, usual: float, whose: Whose) -> str:
    """The value beside the usual one: 3.2 GB, 2.1 times the usual 1.5 GB of the job."""
    said = in_words(feature, value)
    if math.isnan(usual) or math.isnan(value):
        return said
    multiple = multiple_of(feature, value, usual)
    if _is_usual(feature, value, usual):
        return f"{said}, as usual"
    if multiple is None:
        return f"{said}, usual for {whose} {in_words(feature, usual)}"
    return f"{said}, {number(multiple)} times the usual {in_words(feature, usual)} of {whose}"


def _effect(contribution: float, scale: Scale, towards: str) -> str:
    factor = _factor(math.exp(contribution))
    if scale == "factor":
        return f"makes it {factor} times as long"
    if contribution > 0:
        return f"multiplies the odds of {towards} by {factor}"
    return f"lowers the odds of {towards} to {factor} times"


def _factor(factor: float) -> str:
    """About three digits, two decimals near 1: 1.03, 1.8, 12."""
    return f"{factor:.2f}" if NEAR_1[0] < factor < NEAR_1[1] else number(factor)
