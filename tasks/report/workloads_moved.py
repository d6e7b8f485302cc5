"""Which counters a figure shows: those whose phases lie furthest apart, of every family some."""

import re
from collections import Counter as Tally
from collections.abc import Sequence

import numpy as np

from tasks.workloads.identify.phases import Bounds
from tasks.workloads.telemetry import OWN_PREFIX, FloatArray

FAMILY = re.compile(r"[._]")


def family_of(name: str) -> str:
    """What a counter is about: cpu, disk, net; that of the workload's own group is of the same family."""
    return FAMILY.split(name.removeprefix(OWN_PREFIX), maxsplit=1)[0]


def movement(levels: Sequence[FloatArray], bounds: Sequence[Bounds]) -> FloatArray:
    """How far the phases of each counter lie apart: the deviation of their levels, weighed by samples: (n_counters,).

    levels: of each counter (n_phases,), all on one scale; bounds: where its phases begin, and the end."""
    return np.array([_deviation(one, np.diff(edges)) for one, edges in zip(levels, bounds, strict=True)])


def _deviation(levels: FloatArray, weights: FloatArray) -> float:
    there = np.isfinite(levels)
    if not there.any():
        return 0.0
    mean = np.average(levels[there], weights=weights[there])
    return float(np.sqrt(np.average((levels[there] - mean) ** 2, weights=weights[there])))


def pick_counters(names: Sequence[str], moved: FloatArray, n: int, *, per_family: int = 1) -> list[int]:
    """Places of the n counters that moved most, at most so many of a family; then the rest of those that moved.

    Ties go to the name. Returns them with the most moved first; fewer than n where fewer moved."""
    order = sorted((place for place in range(len(names)) if moved[place] > 0), key=lambda p: (-moved[p], names[p]))
    taken: Tally[str] = Tally()
    first: list[int] = []
    others: list[int] = []
    for place in order:
        family = family_of(names[place])
        taken[family] += 1
        (first if taken[family] <= per_family else others).append(place)
    chosen = (first + others)[:n]
    return sorted(chosen, key=lambda place: (-moved[place], names[place]))
