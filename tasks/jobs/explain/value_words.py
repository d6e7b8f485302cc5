"""Values of features as people say them: 3.2 GB, 6 tokens, 82.0 %, Tuesday, 14:30."""

import math
import re
from typing import Literal

from tasks.errors import NotFound
from tasks.jobs.predict.feature_words import feature_of
from tasks.quantities import duration, number, share, times

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
