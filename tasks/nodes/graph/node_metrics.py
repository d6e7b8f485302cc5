"""What a node did before and during each execution: percentiles of each of its sampled metrics in both windows.

All samples count, equal ones too; the published code of the paper collapses those. Source: Perona, III-C."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from tasks.nodes.graph.inputs import Floats, Ints

PERCENTILES = (10, 50, 90)
BEFORE_S = 50.0  # how long before its start the window before an execution begins
SAMPLES = 2_000_000  # telemetry rows are read until they have so many samples: memory stays bounded


@dataclass(frozen=True)
class NodeMetrics:
    """columns: `<metric>/p<percentile>`, (c,). before: (n, c) in [-50 s, 0]; during: (n, c) in [0, duration]; both ends
    belong to a window. NaN where nothing was sampled."""

    columns: tuple[str, ...]
    before: Floats
    during: Floats


def sampled_metrics(telemetry: pd.DataFrame) -> tuple[str, ...]:
    """The metrics that telemetry has, ordered."""
    return tuple(sorted(str(name) for name in telemetry["metric"].dropna().unique()))


def node_metrics_of(telemetry: pd.DataFrame, duration_s: Floats, metrics: Sequence[str]) -> NodeMetrics:
    """Percentiles of some metrics for all executions; what telemetry tells of other metrics is left out.

    telemetry: as a History has it. duration_s: (n,); where it is NaN the window during has no end."""
    columns = tuple(f"{metric}/p{percentile}" for metric in metrics for percentile in PERCENTILES)
    of = pd.Index(list(metrics), dtype=object).get_indexer(pd.Index(telemetry["metric"], dtype=object))
    kept = np.flatnonzero(of >= 0)
    execution, metric = telemetry["execution"].to_numpy(dtype=np.int64)[kept], of[kept]
    at_s, samples = (telemetry[name].to_numpy(dtype=object)[kept] for name in ("at_s", "samples"))
    shape = (len(duration_s), len(metrics), len(PERCENTILES))
    before, during = (np.full(shape, np.nan) for _ in range(2))
    end_s = np.where(np.isnan(duration_s), np.inf, duration_s)
    for part in _parts(np.array([len(one) for one in at_s], dtype=np.int64)):
        own, places = at_s[part], (execution[part], metric[part])
        lengths = np.array([len(one) for one in own], dtype=np.int64)
        row = np.repeat(np.arange(len(own)), lengths)
        at, value = _joined(own), _joined(samples[part])
        is_told = np.isfinite(value)
        is_before = is_told & (at >= -BEFORE_S) & (at <= 0)
        is_during = is_told & (at >= 0) & (at <= end_s[places[0]][row])
        before[places] = percentiles_of(value[is_before], np.bincount(row[is_before], minlength=len(own)))
        during[places] = percentiles_of(value[is_during], np.bincount(row[is_during], minlength=len(own)))
    flat = (shape[0], shape[1] * shape[2])
    return NodeMetrics(columns, before.reshape(flat), during.reshape(flat))


def percentiles_of(values: Floats, lengths: Ints) -> Floats:
    """The percentiles, interpolated linearly, of groups of values that lie one after another: (k, 3), NaN if empty.

    values: (sum of lengths,). lengths: (k,). Groups of one length are worked out at once."""
    found = np.full((len(lengths), len(PERCENTILES)), np.nan)
    first = np.cumsum(lengths) - lengths
    for length in np.unique(lengths[lengths > 0]):
        groups = np.flatnonzero(lengths == length)
        ordered = np.sort(values[first[groups][:, None] + np.arange(length)], axis=1)  # (groups, length)
        for at, percentile in enumerate(PERCENTILES):
            low, share = divmod((length - 1) * percentile, 100)
            above = ordered[:, min(low + 1, length - 1)]
            found[groups, at] = ordered[:, low] + (above - ordered[:, low]) * (share / 100)
    return found


def _parts(lengths: Ints) -> list[slice]:
    """Rows in their order, cut where they have SAMPLES samples."""
    block = np.cumsum(lengths) // SAMPLES
    edges = [0, *(np.flatnonzero(np.diff(block)) + 1), len(lengths)]
    return [slice(int(begin), int(end)) for begin, end in pairwise(edges) if end > begin]


def _joined(lists: np.ndarray) -> Floats:
    return np.concatenate([np.asarray(one, dtype=np.float64) for one in lists])
