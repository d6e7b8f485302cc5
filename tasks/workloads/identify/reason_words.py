"""Counters and values in words: `disk.flushes` of 310.2 a second becomes "disk flushes: 310 a second"."""

import math

from tasks.workloads.telemetry import OWN_PREFIX, Counter

PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
BYTES = ("B", "bytes")
CORES = ("core-seconds", "cores")
SAID_BY_THE_VALUE = "_cores"
DIGITS = 3


def name_in_words(counter: Counter) -> str:
    """The name without dots and underscores; `own.` becomes "of its own"."""
    name = counter.name.removeprefix(OWN_PREFIX).removesuffix(SAID_BY_THE_VALUE)
    words = name.replace(".", " ").replace("_", " ")
    return f"{words} of its own" if counter.name.startswith(OWN_PREFIX) else words


def value_in_words(value: float, counter: Counter) -> str:
    """The value with its unit, to three digits: "4.1 MB a second", "1.8 cores", "310 a second", "12 tasks"."""
    if counter.unit in BYTES:
        return f"{_scaled(value)}B" + (" a second" if counter.is_rate else "")
    if counter.unit in CORES and counter.is_rate:
        return f"{number_in_words(value)} cores"
    if counter.unit == "s" and counter.is_rate:
        return f"{number_in_words(value)} s a second"
    if counter.is_rate:
        return f"{number_in_words(value)} a second"
    return f"{number_in_words(value)} {counter.unit}".strip()


def number_in_words(value: float) -> str:
    """Three digits, with commas between thousands; "nothing" is 0."""
    if not math.isfinite(value):
        return "no value"
    if value == 0:
        return "0"
    places = max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
    if places > 2 * DIGITS:
        return f"{value:.{DIGITS}g}"
    rounded = round(value, DIGITS - 1 - math.floor(math.log10(abs(value))))
    text = f"{rounded:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float) -> str:
    for size, letter in PREFIXES:
        if abs(value) >= size:
            return f"{number_in_words(value / size)} {letter}"
    return f"{number_in_words(value)} "
