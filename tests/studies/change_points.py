"""Change points beside plain methods on annotated series: python -m tests.studies.change_points FOLDER.

The series are those of the Turing Change Point Dataset, scored as in van den Burg and Williams 2020, section 4.3 (the
start of a series counts as a change of everybody); differences are paired by series, intervals from a bootstrap over
them. Rivals stand in their default settings: R's binary segmentation (package changepoint, cpt.mean: means of a series
scaled to deviation 1, at most five changes, penalty MBIC of Zhang and Siegmund 2007) and the textbook's BOCPD.
Beside them series of known truth are drawn, for kinds that no annotated set holds."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from tasks.workloads.changepoints.finding import ChangePointParams, checked, find_changepoints
from tasks.workloads.changepoints.online import PriorParams, Tables, filter_run_lengths, predictive_tables
from tasks.workloads.identify.phases import OF_PHASES

Floats = NDArray[np.float64]

MOST_CHANGES = 5
MBIC_LOGS = 3  # penalty of a change, in logs of the number of samples


def binary_segmentation(values: Floats) -> list[int]:
    """The changes of mean that R's default binary segmentation finds. values: (n,), none missing."""
    scaled = (values - values.mean()) / values.std(ddof=1)
    sums = np.concatenate([[0.0], np.cumsum(scaled)])
    squares = np.concatenate([[0.0], np.cumsum(scaled**2)])
    edges, gains = [0, len(values)], []
    found: list[int] = []
    for _ in range(MOST_CHANGES):
        best = max(
            (_best_split(sums, squares, start, end) for start, end in itertools.pairwise(edges)),
            key=lambda split: split[0],
        )
        if not np.isfinite(best[0]):
            break
        gains.append(best[0])
        found.append(best[1])
        edges = sorted([*edges, best[1]])
    # R keeps all up to the last one that pays: a change that does not may stand before one that does
    paying = [i + 1 for i, gain in enumerate(gains) if gain >= MBIC_LOGS * np.log(len(values))]
    return sorted(found[: max(paying, default=0)])


def _best_split(sums: Floats, squares: Floats, start: int, end: int) -> tuple[float, int]:
    inner = np.arange(start + 1, end)
    if not len(inner):
        return -np.inf, start
    gain = (
        _cost(sums, squares, np.array([start]), np.array([end]))
        - _cost(sums, squares, np.full_like(inner, start), inner)
        - _cost(sums, squares, inner, np.full_like(inner, end))
    )
    return float(gain.max()), int(inner[gain.argmax()])


def _cost(sums: Floats, squares: Floats, start: NDArray[np.int64], end: NDArray[np.int64]) -> Floats:
    n = end - start
    cost: Floats = squares[end] - squares[start] - (sums[end] - sums[start]) ** 2 / n + np.log(n)
    return cost


@dataclass(frozen=True)
class AnnotatedSeries:
    """One series: values (n, d), NaN where missing, and for each annotator the rows at which segments begin."""

    name: str
    values: NDArray[np.float64]
    annotations: tuple[tuple[int, ...], ...]


def read_annotated(folder: Path) -> list[AnnotatedSeries]:
    """The annotated series of a folder with annotations.json and series/*.json, by name; others are left out."""
    annotations = json.loads((folder / "annotations.json").read_text())
    found = []
    for path in sorted((folder / "series").glob("*.json")):
        content = json.loads(path.read_text())
        columns = [[np.nan if value is None else value for value in one["raw"]] for one in content["series"]]
        marked = tuple(tuple(sorted(rows)) for rows in annotations.get(content["name"], {}).values())
        if marked:
            found.append(AnnotatedSeries(content["name"], np.array(columns, dtype=np.float64).T, marked))
    return found


MARGIN = 5  # samples


def f1_of(annotations: Sequence[Iterable[int]], found: Iterable[int], *, margin: int = MARGIN) -> float:
    """F1 of precision (against the changes that any annotator marked) and recall (mean over annotators).

    annotations: for each annotator the rows of the first sample of each new segment; found: those of a method."""
    ours = set(found) | {0}
    theirs = [set(marked) | {0} for marked in annotations]
    precision = n_hits(set().union(*theirs), ours, margin=margin) / len(ours)
    recall = sum(n_hits(marked, ours, margin=margin) / len(marked) for marked in theirs) / len(theirs)
    return 2 * precision * recall / (precision + recall)


def n_hits(marked: Iterable[int], found: Iterable[int], *, margin: int = MARGIN) -> int:
    """How many marked points have a found one within the margin, each found point taken once, the nearest first."""
    left, hits = set(found), 0
    for point in sorted(marked):
        near = [other for other in left if abs(other - point) <= margin]
        if near:
            left.remove(min(near, key=lambda other: (abs(other - point), other)))
            hits += 1
    return hits


def covering_of(annotations: Sequence[Iterable[int]], found: Iterable[int], n_samples: int) -> float:
    """How well the best segment of a method covers each annotated one (Jaccard), by length; mean over annotators."""
    ours = _segments(found, n_samples)
    total = 0.0
    for marked in annotations:
        for start, end in _segments(marked, n_samples):
            best = max(_jaccard((start, end), other) for other in ours)
            total += (end - start) * best
    return total / n_samples / len(annotations)


def _segments(changes: Iterable[int], n_samples: int) -> list[tuple[int, int]]:
    edges = [0, *sorted({change for change in changes if 0 < change < n_samples}), n_samples]
    return list(itertools.pairwise(edges))


def _jaccard(one: tuple[int, int], other: tuple[int, int]) -> float:
    common = min(one[1], other[1]) - max(one[0], other[0])
    return max(common, 0) / (max(one[1], other[1]) - min(one[0], other[0]))


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


Ints = NDArray[np.int64]

# van den Burg and Williams 2020, default setting of BOCPD: lambda 100, a = b = kappa = 1, series scaled, MAP
PLAIN_RUN_LENGTH = 100
PLAIN_PRIOR = PriorParams(mean=0, kappa=1, alpha=1, noise=1, trend_share=0)
PLAIN = ChangePointParams(expected_run_length=PLAIN_RUN_LENGTH, prior=PLAIN_PRIOR, outlier_deviations=0, min_segment=1)


def plain_run_lengths(values: ArrayLike, params: ChangePointParams = PLAIN) -> Ints:
    """The most probable run length after each sample, of each counter on its own. values: (n, d), none missing.

    Values are taken as they are: params.is_scaled and params.outlier_deviations are not used."""
    table = checked(values)
    expected = params.expected_run_length or PLAIN_RUN_LENGTH
    hazard = np.log([1 / expected, 1 - 1 / expected])
    tables = predictive_tables(params.prior or PLAIN_PRIOR, len(table))
    return _of_each(table, tables, hazard, params.min_segment, params.prune_nats, params.max_run_lengths)


@njit(cache=True)
def _of_each(table: Floats, tables: Tables, hazard: Floats, min_segment: int, nats: float, cap: int) -> Ints:
    n, d = table.shape
    lengths = np.empty((n, d), np.int64)
    for counter in range(d):
        column = np.ascontiguousarray(table[:, counter : counter + 1])
        _, _, offsets, starts, kept, _, _ = filter_run_lengths(column, tables, hazard, min_segment, nats, cap)
        for t in range(n):
            low = offsets[t]
            lengths[t, counter] = t - starts[low + kept[low : offsets[t + 1]].argmax()] + 1
    return lengths


TINY = 1e-12  # squares of a constant series


def rivals() -> dict[str, Finder]:
    """The methods that ours is held against, each in one setting."""
    offline = {
        f"{name} (ruptures)": by_setting(ChangePointParams(method=name, outlier_deviations=0))
        for name in ("pelt", "kernel", "binseg")
    }
    return {
        "finds nothing": lambda _: [],
        "BOCPD, default": by_setting(PLAIN),
        "binary segmentation, default": lambda values: binary_segmentation(values[:, 0]),
        **offline,
        "PELT, AR(1) innovations": lambda values: pelt_of_innovations(values[:, 0]),
        "levels and lines, independent noise": by_setting(OF_PHASES),
    }


def pelt_of_innovations(values: Floats) -> list[int]:
    """Changes of mean by PELT after the first autocorrelation is taken out: penalty 3 log n, as BIC for two values."""
    apart = values - values.mean()
    correlation = float((apart[1:] * apart[:-1]).sum() / max((apart**2).sum(), TINY))
    innovations = (values[1:] - correlation * values[:-1])[:, None]
    pelt = by_setting(ChangePointParams(method="pelt", outlier_deviations=0))
    return [index + 1 for index in pelt(innovations)]


def compare(series: Sequence[AnnotatedSeries]) -> dict[str, Floats]:
    """Scores (n_series, 2) of ours and of its rivals."""
    return {
        name: score(finder, series) for name, finder in {"ours": by_setting(ChangePointParams()), **rivals()}.items()
    }


def report(scores: dict[str, Floats], names: Sequence[str]) -> str:
    """The scores as a table, and what ours gains on each rival."""
    lines = [table_of(names, scores), "", "ours less: mean over series and 95 % interval, F1 and covering"]
    for name in rivals():
        theirs = scores[name]
        gains = [paired_difference(scores["ours"][:, i], theirs[:, i], np.random.default_rng(0)) for i in (0, 1)]
        lines.append(f"{name}: " + ", ".join(f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]" for gain in gains))
    return "\n".join(lines)


Kind = Literal[
    "level", "variance", "kink", "correlated", "seasonal", "outliers", "whole numbers",
    "nothing", "nothing, trend", "nothing, seasonal", "nothing, outliers",
]  # fmt: skip
APART = 10  # fewest samples between changes
PERIOD = 12
CORRELATION = 0.5


def draw_series(kind: Kind, n_samples: int, n_changes: int, rng: np.random.Generator) -> AnnotatedSeries:
    """One series of a kind, noise of deviation 1; n_changes is 0 for the kinds that hold no change."""
    if kind.startswith("nothing"):
        values, places = _without_change(kind, n_samples, rng), np.zeros(0, dtype=np.int64)
    else:
        places = _places(n_samples, n_changes, rng)
        values = _with_changes(kind, n_samples, places, rng)
    return AnnotatedSeries(kind, values[:, None], (tuple(int(place) for place in places),))


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
    if kind == "nothing, trend":
        return np.asarray(10 * time / n + noise)
    if kind == "nothing, seasonal":
        return np.asarray(3 * np.sin(2 * np.pi * time / PERIOD) + noise)
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


if __name__ == "__main__":
    found = read_annotated(Path(sys.argv[1]))
    print(report(compare(found), [one.name for one in found]))
