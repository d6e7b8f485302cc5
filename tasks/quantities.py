"""Quantities, times and names as people read and write them: 0.04 s is 40 ms, 0.0478 is 4.8 %; 3 GB are 3e9 bytes."""

import math
import re
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

UNITS_S = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"))
MISSING = "–"
LEFT_OUT = "…"  # the middle of a name that a narrow table has no room for
LONG_FROM = 2  # 90 s rather than 1.5 min: a unit is used for one of it, and from two of it on
TINY_SHARE = 0.0005
TINY = 1e-6  # smaller numbers are said to be under it

Dimension = Literal["s", "bytes"]
SPELLINGS: dict[Dimension, dict[str, tuple[float, tuple[str, ...]]]] = {  # unit: how many base units, other spellings
    "s": {
        "ns": (1e-9, ("nanosecond", "nanoseconds")),
        "us": (1e-6, ("µs", "usec", "microsecond", "microseconds")),
        "ms": (1e-3, ("msec", "millis", "millisecond", "milliseconds")),
        "s": (1.0, ("sec", "secs", "second", "seconds")),
        "min": (60.0, ("mins", "minute", "minutes")),
        "h": (3_600.0, ("hr", "hrs", "hour", "hours")),
        "d": (86_400.0, ("day", "days")),
    },
    "bytes": {
        "B": (1.0, ("byte", "bytes")),
        **{f"{prefix}B": (1e3**power, ()) for power, prefix in enumerate("kMGTP", 1)},
        **{f"{prefix}iB": (2.0 ** (10 * power), ()) for power, prefix in enumerate("KMGTP", 1)},
    },
}
FACTORS: dict[Dimension, dict[str, float]] = {
    dimension: {word.lower(): factor for unit, (factor, more) in units.items() for word in (unit, *more)}
    for dimension, units in SPELLINGS.items()
}
UNCLEAR: dict[Dimension, tuple[str, ...]] = {"s": ("m",), "bytes": ("k", "m", "g", "t")}  # minutes? MB or MiB?
WORDS = re.compile(r"[A-Z]+i?B(?![a-z])|[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-zµ]+")


def factor_of(unit: str, dimension: Dimension) -> float | None:
    """How many seconds or bytes a unit is; None for one that is not known. kB is 1,000 bytes, KiB 1,024."""
    return FACTORS[dimension].get(unit.strip().lower())


def unit_in_name(column: str, dimension: Dimension) -> str | None:
    """The unit at the end of a column's name, as in input_gb, runtimeMs, Memory (MiB); None if there is none.

    Raises ValueError where the end of the name may be several units."""
    words = WORDS.findall(column)
    last = words[-1] if len(words) > 1 else ""
    if last.lower() in UNCLEAR[dimension]:
        raise ValueError(f"'{last}' may be several units")
    return last if last.lower() in FACTORS[dimension] else None


def is_missing(value: Any) -> bool:
    """None, NaN, NaT, and pandas' NA."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def counted(n: int, what: str) -> str:
    """A number of things: 1 file, 2 files."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def duration(seconds: float | None) -> str:
    """A time span with its unit, two or three significant digits; a dash for a missing one."""
    if seconds is None or math.isnan(seconds):
        return MISSING
    if seconds == 0:
        return "0 s"
    for size, unit in UNITS_S:
        if abs(seconds) == size or abs(seconds) >= size * (LONG_FROM if size > 1 else 1):
            return f"{number(seconds / size)} {unit}"
    return f"{number(seconds / 1e-3)} ms"


def number(value: float | None) -> str:
    """A number with about three significant digits and thousands separators, never with an exponent."""
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if 0 < abs(value) < TINY:
        return f"< {TINY:f}" if value > 0 else f"> -{TINY:f}"
    return digits(value, 3 if abs(value) >= 10 else 2)


def digits(value: float, n: int = 3, *, sign: str = "-") -> str:
    """So many significant digits, never with an exponent: 0.00005, 12,300. sign: "+" shows that of all but 0."""
    shown = Decimal(f"{value:.{n}g}")
    return f"{shown:{sign},f}" if shown else "0"


def ratio(value: float | None) -> str:
    """A ratio such as a COV, with two decimals."""
    return MISSING if value is None or math.isnan(value) else f"{_unsigned_zero(value, 2):,.2f}"


def times(multiple: float) -> str:
    """A multiple: 12 ×, 3.4 ×."""
    return f"{number(multiple)} ×"


def share(value: float | None) -> str:
    """A share (0 to 1) in percent with one decimal; some is never shown as none, nor nearly all as all."""
    if value is None or math.isnan(value):
        return MISSING
    if 0 < value < TINY_SHARE:
        return "< 0.1 %"
    if 1 - TINY_SHARE < value < 1:
        return "> 99.9 %"
    return f"{_unsigned_zero(100 * value, 1):.1f} %"


def _unsigned_zero(value: float, decimals: int) -> float:
    """The value rounded, so that what rounds to nothing has no sign."""
    return round(value, decimals) or 0.0


def utc_text(moment: datetime) -> str:
    """2026-01-31T12:00:00Z; a time with a zone keeps its own."""
    return moment.isoformat() + ("" if moment.tzinfo else "Z")


SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~])")


def plain(text: str) -> str:
    """The text so that markdown and HTML show it as it is, on one line."""
    escaped = SPECIAL.sub(r"\\\1", text)
    return " ".join(escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").split())
