"""Methods side by side on annotated series, the setting of ours chosen without the series that it is scored on.

Leave one series out: of a grid of settings the one that is best on all other series, by F1 plus covering, is scored on
the series left out. A mean over kinds of series of known truth counts as much as that over the other series, so that a
few annotated ones do not decide alone. Differences between methods are paired by series, their intervals from a
bootstrap over series."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.changepoints.finding import find_changepoints
from tasks.workloads.changepoints.params import ChangePointParams, PriorParams
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


def settings_grid() -> list[ChangePointParams]:
    """The settings that ours is chosen from: hazard, noise, weight of the prior, levels only or lines as well."""
    grid = product((100, 300, 1000), (0.1, 0.3, 1.0), (1.0, 3.0), (0.1, 1.0), ((0.0, 30.0), (0.5, 5.0), (0.5, 30.0)))
    return [
        ChangePointParams(
            expected_run_length=expected,
            prior=PriorParams(noise=noise, alpha=alpha, kappa=kappa, trend_share=share, trend_span=span),
        )
        for expected, noise, alpha, kappa, (share, span) in grid
    ]


def score_settings(settings: Sequence[ChangePointParams], series: Sequence[AnnotatedSeries]) -> Floats:
    """F1 and covering of every setting on every series: (n_settings, n_series, 2)."""
    return np.stack([score(by_setting(params), series) for params in settings])


def leave_one_out(scores: Floats, beside: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Scores (n_series, 2) of the setting that is best on the other series, and which it was, (n_series,).

    scores: (n_settings, n_series, 2). beside: (n_settings, n_others, 2) on series that no one is scored on."""
    n_series = scores.shape[1]
    others = (scores.sum(axis=1, keepdims=True) - scores) / (n_series - 1)  # (n_settings, n_series, 2)
    known = beside.sum(axis=2).mean(axis=1) if beside.shape[1] else np.zeros(len(scores))
    chosen = (others.sum(axis=2) + known[:, None]).argmax(axis=0)
    return scores[chosen, np.arange(n_series)], chosen


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
