"""Values of counters and times of runs as axes show them: 12.3 M rather than 12,345,678, long runs in hours."""

from collections.abc import Sequence
from itertools import pairwise

from tasks.quantities import number

PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
TIMES = ((3 * 86_400.0, 86_400.0, "days"), (3 * 3_600.0, 3_600.0, "hours"), (300.0, 60.0, "minutes"))
PER_SECOND = {"core-seconds": "cores", "s": "s a second", "": "a second"}
MOST_DECIMALS, HUNDREDTH = 8, 0.01  # of a step: a tick is written no further from its place
SURE, UNLIKELY = 0.995, 0.005  # beyond them a whole percent would say all or none


def short_number(value: float) -> str:
    """About three significant digits with a prefix: 950, 12.3 k, 4.5 M; never an exponent."""
    for size, prefix in PREFIXES:
        if abs(value) >= size:
            return f"{number(value / size)} {prefix}"
    return number(value)


def tick_words(ticks: Sequence[float]) -> list[str]:
    """The places of ticks, rising, with one prefix and as many decimals as tell them apart."""
    top = max((abs(tick) for tick in ticks), default=0.0)
    size, prefix = next(((size, f" {sign}") for size, sign in PREFIXES if top >= size), (1.0, ""))
    step = min((later - before for before, later in pairwise(ticks)), default=top) / size
    decimals = next(
        (n for n in range(MOST_DECIMALS) if all(abs(round(t / size, n) - t / size) <= HUNDREDTH * step for t in ticks)),
        MOST_DECIMALS,
    )
    words = [f"{round(tick / size, decimals) + 0.0:,.{decimals}f}" for tick in ticks]
    return [f"{word}{prefix}" if tick else "0" for word, tick in zip(words, ticks, strict=True)]


def unit_words(unit: str, *, is_rate: bool) -> str:
    """The unit of the values: B of a rate is B/s, core-seconds a second are cores; a gauge without one has none."""
    if not is_rate:
        return unit
    return PER_SECOND.get(unit, f"{unit}/s")


def time_unit(span_s: float) -> tuple[float, str]:
    """Seconds in the unit that an axis over this span counts in, and its name."""
    return next(((size_s, name) for least_s, size_s, name in TIMES if span_s >= least_s), (1.0, "seconds"))


def whole_percent(probability: float) -> str:
    """A probability in whole percents; what is not quite sure is never shown as sure."""
    if probability >= SURE:
        return "> 99 %"
    return "< 1 %" if 0 < probability < UNLIKELY else f"{100 * probability:.0f} %"
