"""Running totals, such as those of Prometheus, as rates per second; a total that falls was reset."""

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.telemetry import Counter, FloatArray

TOTAL = re.compile(r"_total(?=\.|$)")
RISING_SHARE = 0.95  # of the steps that change a total; the others are resets


def are_totals(names: list[str], values: FloatArray) -> NDArray[np.bool_]:
    """Which columns are running totals: those called `…_total` that change, and rise in 95 % of the changes.

    values: (n_samples, n_counters). A constant `disk_total` is a size and no running total."""
    is_named = np.array([name.rpartition(".")[2].endswith("_total") for name in names], dtype=bool)
    if not is_named.any():
        return is_named
    steps = np.diff(values, axis=0)
    n_up, n_changed = (steps > 0).sum(axis=0), ((steps != 0) & ~np.isnan(steps)).sum(axis=0)
    return np.asarray(is_named & (n_changed > 0) & (n_up >= RISING_SHARE * n_changed))


def as_rates(at_s: FloatArray, values: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Rates per second over the interval that ended at each sample, and how many of each were lost to a reset (n,).

    at_s: (n,), strictly rising; values: (n, k), totals. The first sample has no rate; one whose total is below
    the one before (the program began again) has none either; nor has one beside a missing total."""
    rates, resets = np.full(values.shape, np.nan), np.zeros(len(at_s), dtype=np.int64)
    if len(at_s) < 2:
        return rates, resets
    steps = np.diff(values, axis=0)
    is_reset = steps < 0
    rates[1:] = np.where(is_reset, np.nan, steps / np.diff(at_s)[:, None])
    resets[1:] = is_reset.sum(axis=1)
    return rates, resets


def rate_of(counter: Counter) -> Counter:
    """The counter of the rate of a running total: the same name without `_total`."""
    return replace(counter, name=TOTAL.sub("", counter.name, count=1), is_rate=True)
