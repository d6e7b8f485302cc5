"""Telemetry without labels: which runs are alike, what sets each kind apart, what is new, and when it changed.

A run is a point: logarithms of means and deviations of its counters, each in units of what the two halves of one run
differ by, so that a counter that wavers while one thing runs says little about what runs, and one that never does not
all. Ward's method joins points;
Rousseeuw's silhouette (1987) says how many clusters there are. Labels, where there are some, change nothing."""

from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.workloads.evaluate.items import Item, cut, part_of
from tasks.workloads.identify.counters import common_counters, floors_of, moments_of
from tasks.workloads.identify.identification import name_in_words, value_in_words
from tasks.workloads.identify.model import VIEWS
from tasks.workloads.params import WindowParams
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry

LEAST_RUNS = 3  # of fewer nobody can say whether they differ by more than runs do: one cluster
MOST_RUNS = 2_000  # whose distances are held in memory; of more, an even sample
MOST_CLUSTERS = 30
LEAST_SILHOUETTE = 0.25  # below it there is no substantial structure (Kaufman and Rousseeuw 1990): one cluster
LEAST_WAVER = 0.1  # of a logarithm, between the halves of a run
MOST_OF_USUAL = 4.0  # deviation over the runs, in that of most counters, beyond which one would decide alone
NEW = timedelta(days=7)  # what was first seen so long before the last run is new
N_TELLING = 3  # counters that are named for a cluster
LEAST_GAP = 3.0  # wavers between a cluster and the others from which on a counter tells them apart


@dataclass(frozen=True)
class RunCluster:
    """Runs that are alike, n_windows of them windows of long traces. medoid: the run that is nearest to all of them.
    labels: workloads that they say they are of, the most frequent first. telling: counters that set it apart, in words.
    is_new: first seen in the last week."""

    number: int
    run_ids: tuple[str, ...]
    n_windows: int
    medoid: str
    labels: tuple[str, ...]
    first_at: datetime | None
    last_at: datetime | None
    is_new: bool
    telling: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """Where a trace goes from one cluster to another. at_s: seconds after its start; at: that as a time, if known."""

    trace: str
    machine: str | None
    at_s: float
    at: datetime | None
    before: int
    after: int


@dataclass(frozen=True)
class Clusters:
    """clusters: the largest first, numbered from 1. changes: in the order of traces and time. n_counters: compared;
    left_out: runs that share no counter with these."""

    clusters: tuple[RunCluster, ...]
    changes: tuple[Change, ...]
    n_counters: int
    left_out: tuple[str, ...] = ()


def clusters_of(runs: Sequence[Telemetry], windows: WindowParams) -> Clusters:
    """Cluster runs, long traces in windows. Where they share no counter, those that most share are compared, and the
    others left out. Raises BadInput without a run, and without a counter that tells anything."""
    items = cut(runs, windows).items
    left_out: tuple[str, ...] = ()
    if items and not _counters([item.run for item in items]):
        sets = Tally(item.run.names for item in items)
        usual = sets.most_common(1)[0][0]
        left_out = tuple(item.run.run_id for item in items if item.run.names != usual)
        items = [item for item in items if item.run.names == usual]
    if len(items) > MOST_RUNS:
        items = [items[at] for at in np.unique(np.linspace(0, len(items) - 1, MOST_RUNS).astype(int))]
    compared = [item.run for item in items]
    counters = _counters(compared)
    if not counters:
        problem = "no counter that does not give the session away"
        raise BadInput(f"{len(items)} runs", problem, "rates, or counters of a group", "record some")
    points = points_of(compared, counters)
    numbers = partition_of(points)
    sizes = Tally(numbers.tolist())
    order = sorted(sizes, key=lambda label: (-sizes[label], int(np.flatnonzero(numbers == label)[0])))
    numbers = np.array([order.index(label) + 1 for label in numbers.tolist()])
    means = moments_of(compared, counters)[:, : len(counters)]
    clusters = [_cluster(number, numbers, points, means, items, counters) for number in range(1, len(order) + 1)]
    return Clusters(tuple(clusters), tuple(_changes(items, numbers)), len(counters), left_out)


def _counters(runs: Sequence[Telemetry]) -> tuple[Counter, ...]:
    """Of the first view in which runs have counters in common."""
    return next((common for view in VIEWS if (common := common_counters(runs, view))), ())


def seen_words(cluster: RunCluster) -> str:
    """From when to when, and whether it is new; empty where the runs do not say when they started."""
    if cluster.first_at is None or cluster.last_at is None:
        return ""
    words = f"{cluster.first_at:%Y-%m-%d %H:%M} to {cluster.last_at:%Y-%m-%d %H:%M}"
    return f"new: {words}" if cluster.is_new else words


def points_of(runs: Sequence[Telemetry], counters: Sequence[Counter]) -> FloatArray:
    """Logarithms of means and deviations, in units of what the halves of a run differ by: (n_runs, 2 n_counters).

    None deviates over the runs by more than MOST_OF_USUAL of what most do."""
    moments = np.nan_to_num(np.abs(moments_of(runs, counters)))
    floor = floors_of(moments)
    halves = (
        [part_of(run, 0, run.n_samples // 2) for run in runs],
        [part_of(run, run.n_samples // 2, run.n_samples) for run in runs],
    )
    first, second = (np.log(np.nan_to_num(np.abs(moments_of(half, counters))) + floor) for half in halves)
    waver = np.sqrt(np.mean((first - second) ** 2, axis=0) / 4 + LEAST_WAVER**2)
    points = np.log(moments + floor) / waver
    deviations = points.std(axis=0)
    usual = np.median(deviations[deviations > 0]) if deviations.any() else 1.0
    return np.asarray(points / np.maximum(1, deviations / (MOST_OF_USUAL * usual)))


def partition_of(points: FloatArray) -> NDArray[np.int64]:
    """The cluster of each point, (n,); all in one where there is no structure."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist, squareform
    from sklearn.metrics import silhouette_score  # type: ignore[import-untyped, unused-ignore]

    if len(points) < LEAST_RUNS:
        return np.zeros(len(points), dtype=np.int64)
    distances = pdist(points)
    apart, tree = squareform(distances), linkage(distances, "ward")
    best, numbers = LEAST_SILHOUETTE, np.zeros(len(points), dtype=np.int64)
    for n_clusters in range(2, min(MOST_CLUSTERS, len(points) - 1) + 1):
        cutting = fcluster(tree, n_clusters, "maxclust")
        if len(set(cutting)) > 1 and (score := float(silhouette_score(apart, cutting, metric="precomputed"))) > best:
            best, numbers = score, cutting
    return np.asarray(numbers, dtype=np.int64)


def _cluster(
    number: int,
    numbers: NDArray[np.int64],
    points: FloatArray,
    means: FloatArray,
    items: Sequence[Item],
    counters: Sequence[Counter],
) -> RunCluster:
    from scipy.spatial.distance import cdist

    runs = [item.run for item in items]
    inside, outside = (np.flatnonzero(is_it).tolist() for is_it in (numbers == number, numbers != number))
    medoid = inside[int(cdist(points[inside], points[inside]).sum(axis=1).argmin())]
    telling = []
    if outside:
        here, there = (np.median(points[places, : len(counters)], axis=0) for places in (inside, outside))
        gaps = np.abs(here - there)
        for at in np.argsort(-gaps, kind="stable")[:N_TELLING].tolist():
            if gaps[at] >= LEAST_GAP:
                value, usual = (
                    value_in_words(float(np.nanmedian(means[places, at])), counters[at]) for places in (inside, outside)
                )
                telling.append(f"{name_in_words(counters[at])}: {value}, elsewhere {usual}")
    times = sorted(start for run in (runs[at] for at in inside) if (start := run.started_at) is not None)
    of_all = sorted(run.started_at for run in runs if run.started_at is not None)
    is_new = bool(times) and of_all[0] <= of_all[-1] - NEW < times[0]
    labels = Tally(str(run.workload) for run in (runs[at] for at in inside) if run.workload is not None)
    return RunCluster(
        number=number,
        run_ids=tuple(runs[at].run_id for at in inside),
        n_windows=sum(items[at].is_window for at in inside),
        medoid=runs[medoid].run_id,
        labels=tuple(name for name, _ in labels.most_common()),
        first_at=times[0] if times else None,
        last_at=times[-1] if times else None,
        is_new=is_new,
        telling=tuple(telling),
    )


def _changes(items: Sequence[Item], numbers: NDArray[np.int64]) -> list[Change]:
    """Changes between the windows of a trace; a single window that differs from both its neighbours is none."""
    places: dict[str, list[int]] = {}
    for at, item in enumerate(items):
        if item.is_window:
            places.setdefault(item.trace, []).append(at)
    changes = []
    for trace, unordered in places.items():
        of_trace = sorted(unordered, key=lambda at: items[at].from_s)
        settled = numbers[of_trace].copy()
        for at in range(1, len(settled) - 1):
            if settled[at - 1] == numbers[of_trace[at + 1]]:
                settled[at] = settled[at - 1]
        for at in (np.flatnonzero(np.diff(settled)) + 1).tolist():
            item = items[of_trace[at]]
            before, after = int(settled[at - 1]), int(settled[at])
            changes.append(Change(trace, item.run.machine, item.from_s, item.run.started_at, before, after))
    return changes
