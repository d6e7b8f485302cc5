"""Methods side by side on annotated series; differences are paired by series, intervals from a bootstrap over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.changepoints.finding import find_changepoints
from tasks.workloads.changepoints.params import ChangePointParams
from tasks.workloads.changepoints.scores import covering_of, f1_of
from tasks.workloads.changepoints.tcpd import AnnotatedSeries

Floats = NDArray[np.float64]
Finder = Callable[[Floats], Sequence[int]]

N_RESAMPLES = 10_000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Difference:
    """Mean over series of one method's score less another's, and its bootstrap interval."""

    mean: float
    low: float
    high: float


def by_setting(params: ChangePointParams) -> Finder:
    """A finder with these parameters."""
    return lambda values: [int(index) for index in find_changepoints(values, params).indices]


def score(finder: Finder, series: Sequence[AnnotatedSeries]) -> Floats:
    """F1 and covering of a method on each series: (n_series, 2)."""
    scores = []
    for one in series:
        found = finder(one.values)
        scores.append((f1_of(one.annotations, found), covering_of(one.annotations, found, len(one.values))))
    return np.array(scores)


def paired_difference(ours: Floats, theirs: Floats, rng: np.random.Generator) -> Difference:
    """The mean of ours less theirs over series, with its interval. ours, theirs: (n_series,)."""
    apart = ours - theirs
    means = apart[rng.integers(0, len(apart), (N_RESAMPLES, len(apart)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Difference(float(apart.mean()), float(low), float(high))


def table_of(names: Sequence[str], scores: Mapping[str, Floats]) -> str:
    """A Markdown table: a row a series and the mean, a column a method, F1 and covering in each cell."""
    lines = ["| series | " + " | ".join(scores) + " |", "|---" * (len(scores) + 1) + "|"]
    for i, name in enumerate(names):
        lines.append(f"| {name} | " + " | ".join(_cell(each[i]) for each in scores.values()) + " |")
    lines.append("| mean | " + " | ".join(_cell(each.mean(axis=0)) for each in scores.values()) + " |")
    return "\n".join(lines)


def _cell(pair: Floats) -> str:
    return f"{pair[0]:.3f}, {pair[1]:.3f}"
