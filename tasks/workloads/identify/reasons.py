"""Why a run was taken for a workload, or for none: the counters that matched best and worst, in words.

The run is held against the nearest known fingerprint of one workload, at the weight at which it fits best. A gap is
measured in deviations between runs of the same workload. What matched best is chosen among counters that set the
workload apart from the others: that both make no page faults says little if nobody makes any."""

import math

import numpy as np

from tasks.workloads.identify.mixture import sums_of
from tasks.workloads.identify.model import View
from tasks.workloads.telemetry import OWN_PREFIX, Counter, FloatArray

N_REASONS = 3  # of each kind
LEAST_GAP = 3.0  # deviations from which on a counter differs
LEAST_APART = 3.0  # deviations from other workloads from which on a counter says something
LEAST_CHANGE = 0.02  # relative difference of two values below which words would show the same number twice
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
BYTES = ("B", "bytes")
CORES = ("core-seconds", "cores")
SAID_BY_THE_VALUE = "_cores"
DIGITS = 3


def why(seen: FloatArray, view: View, workload: str, *, is_known: bool) -> tuple[str, ...]:
    """What matched and what did not against a known workload, one line each; for an unknown run what did not comes
    first. seen: (n_counters,), means of the run."""
    library = view.library
    alone = sums_of(seen, library)[0]
    names = np.asarray(library.workloads)
    is_it = names[alone.rows[:, 0]] == workload
    at = int(np.where(is_it, alone.cost, np.inf).argmin())
    expected, gaps = alone.fitted[at], np.abs(alone.deviations[at])
    logs = np.log(library.rows + library.floor)
    others = logs[names != workload]
    apart = np.zeros(len(seen))
    if len(others):
        own = np.log(np.maximum(np.nan_to_num(seen), 0) + library.floor)
        apart = np.median(np.abs(others - own), axis=0) / library.spread
    known = [c for c in range(len(seen)) if np.isfinite(gaps[c])]
    telling = [c for c in known if gaps[c] < LEAST_GAP and apart[c] >= LEAST_APART]
    telling.sort(key=lambda c: (-apart[c] / (1 + gaps[c]), view.counters[c].name))
    far = [c for c in known if gaps[c] >= LEAST_GAP and _shows(seen[c], expected[c])]
    far.sort(key=lambda c: (-gaps[c], view.counters[c].name))

    def line(c: int, form: str) -> str:
        value, usual = (value_in_words(float(one[c]), view.counters[c]) for one in (seen, expected))
        return f"{name_in_words(view.counters[c])}: {form.format(value, workload, usual)}"

    matched = [line(c, "{0}, as in {1} ({2})") for c in telling[:N_REASONS]]
    differed = [line(c, "{0} against {2} of {1}") for c in far[:N_REASONS]]
    if not differed:
        differed = [f"no counter differs from {workload} by more than its own runs do"]
    return tuple(matched + differed if is_known else differed + matched)


def _shows(value: float, expected: float) -> bool:
    return abs(value - expected) > LEAST_CHANGE * max(abs(value), abs(expected))


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
