"""Series whose change points are known, for tests and for checks on kinds of series that no annotated set holds."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.changepoints.tcpd import AnnotatedSeries

Floats = NDArray[np.float64]
Kind = Literal[
    "level", "variance", "kink", "correlated", "seasonal", "outliers", "whole numbers",
    "nothing", "nothing, correlated", "nothing, trend", "nothing, seasonal", "nothing, outliers", "nothing, curved",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
APART = 10  # fewest samples between changes
PERIOD = 12
CORRELATION, STRONG_CORRELATION = 0.5, 0.6


def draw_series(kind: Kind, n_samples: int, n_changes: int, rng: np.random.Generator) -> AnnotatedSeries:
    """One series of a kind, noise of deviation 1; n_changes is 0 for the kinds that hold no change."""
    if kind.startswith("nothing"):
        values, places = _without_change(kind, n_samples, rng), np.zeros(0, dtype=np.int64)
    else:
        places = _places(n_samples, n_changes, rng)
        values = _with_changes(kind, n_samples, places, rng)
    return AnnotatedSeries(kind, values[:, None], (tuple(int(place) for place in places),))


def draw_all(n_each: int, rng: np.random.Generator) -> list[AnnotatedSeries]:
    """Series of every kind, 30 to 400 samples, with one to three changes."""
    found = []
    for _ in range(n_each):
        n_samples = int(rng.integers(30, 400))
        n_changes = int(rng.integers(1, 4)) if n_samples > 6 * APART else 1
        found += [draw_series(kind, n_samples, n_changes, rng) for kind in KINDS]
    return found


def _with_changes(kind: Kind, n: int, places: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    time = np.arange(n, dtype=np.float64)
    if kind == "variance":
        wider = np.searchsorted(places, time, side="right") % 2 == 1
        return np.asarray(rng.normal(size=n) * np.where(wider, rng.uniform(3, 6), 1.0))
    if kind == "kink":
        slope = rng.uniform(8, 20) / n
        turned = sum((-1.0) ** i * 2 * slope * np.maximum(time - place, 0) for i, place in enumerate(places, 1))
        return np.asarray(slope * time + turned + rng.normal(size=n))
    steps = np.zeros(n)
    for place in places:
        steps[place:] += rng.choice([-1, 1]) * rng.uniform(4, 8)
    if kind == "correlated":
        return steps + _correlated(n, CORRELATION, rng)
    if kind == "whole numbers":
        return np.asarray(np.round(steps + rng.normal(size=n) / 2))
    values = steps + rng.normal(size=n)
    if kind == "seasonal":
        return np.asarray(values + 3 * np.sin(2 * np.pi * time / PERIOD))
    return _with_outliers(values, rng) if kind == "outliers" else values


def _without_change(kind: Kind, n: int, rng: np.random.Generator) -> Floats:
    time = np.arange(n, dtype=np.float64)
    noise = rng.normal(size=n)
    if kind == "nothing, correlated":
        return _correlated(n, STRONG_CORRELATION, rng)
    if kind == "nothing, trend":
        return np.asarray(10 * time / n + noise)
    if kind == "nothing, seasonal":
        return np.asarray(3 * np.sin(2 * np.pi * time / PERIOD) + noise)
    if kind == "nothing, curved":
        return np.asarray(25 * np.exp(2 * time / n) + noise)
    return _with_outliers(noise, rng) if kind == "nothing, outliers" else noise


def _places(n: int, n_changes: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rising places at least APART from each other and from both ends."""
    free = n - (n_changes + 1) * APART
    if free < 1:
        raise ValueError(f"{n} samples have no room for {n_changes} changes {APART} apart")
    offsets = np.sort(rng.integers(0, free, n_changes))
    return np.asarray(offsets + APART * np.arange(1, n_changes + 1), dtype=np.int64)


def _correlated(n: int, correlation: float, rng: np.random.Generator) -> Floats:
    noise = rng.normal(size=n) * np.sqrt(1 - correlation**2)
    values = np.empty(n)
    values[0] = rng.normal()
    for i in range(1, n):
        values[i] = correlation * values[i - 1] + noise[i]
    return values


def _with_outliers(values: Floats, rng: np.random.Generator) -> Floats:
    struck = rng.choice(len(values), max(1, len(values) // 60), replace=False)
    spiked = values.copy()
    spiked[struck] += rng.uniform(15, 30, len(struck))
    return spiked
