"""The node metrics in Perona's databases, cut to the time around each execution."""

import sqlite3
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.nodes.cells import times
from tasks.nodes.execution import Sampled
from tasks.nodes.readers.perona_metrics import spelled
from tasks.nodes.readers.sqlite_file import columns_of, rows_of
from tasks.reading import no_refusals, refusals

TABLE = "node_metrics"
COLUMNS = ("node_name", "metric", "timestamp", "value")
BEFORE_S, AFTER_S = 60.0, 70.0  # their windows: 50 s before the start, 70 s after the end
PERCENT = ("util", "busy", "errors")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NodeSamples:
    """by_node: of each node its metrics by name: times (Unix seconds, rising) and samples. refused: bad rows."""

    by_node: dict[str, dict[str, tuple[Floats, Floats]]] = field(default_factory=dict)
    refused: pd.DataFrame = field(default_factory=no_refusals)

    def around(self, node: str, started: np.datetime64, duration_s: float) -> tuple[Sampled, ...]:
        """What was sampled on a node from a minute before an execution to a good minute after it."""
        start_s = float(started.astype("datetime64[us]").astype("int64")) / 1e6
        found = []
        for metric, (at_s, samples) in self.by_node.get(node, {}).items():
            first = int(np.searchsorted(at_s, start_s - BEFORE_S, side="left"))
            last = int(np.searchsorted(at_s, start_s + duration_s + AFTER_S, side="right"))
            if last > first:
                found.append(Sampled(metric, unit_of(metric), at_s[first:last] - start_s, samples[first:last]))
        return tuple(found)


def node_samples(connection: sqlite3.Connection, zone: str, n_before: int) -> NodeSamples:
    """All samples of a database; none where it has no such table. n_before: rows of the tables before this one."""
    if not set(COLUMNS) <= set(columns_of(connection, TABLE)):
        return NodeSamples()
    rows = rows_of(connection, TABLE, COLUMNS)
    if not len(rows):
        return NodeSamples()
    at_s, values = _seconds(rows["timestamp"], zone), _numbers(rows["value"])
    is_bad = np.isnan(at_s) | ~np.isfinite(values)
    places = np.flatnonzero(is_bad)
    refused = refusals(
        n_before + places + 1,
        [
            f"{TABLE} row {at + 1}: {'timestamp is no time' if np.isnan(at_s[at]) else 'value is no number'}"
            for at in places
        ],
        [", ".join(map(str, rows.iloc[at])) for at in places],
    )
    told = pd.DataFrame({"node": rows["node_name"].astype(str), "metric": rows["metric"].astype(str)})
    told = told.assign(at_s=at_s, value=values)[~is_bad]
    told = told.sort_values(["node", "metric", "at_s"], kind="stable").drop_duplicates(["node", "metric", "at_s"])
    by_node: dict[str, dict[str, tuple[Floats, Floats]]] = {}
    for (node, metric), group in told.groupby(["node", "metric"], sort=True):
        series = group["at_s"].to_numpy(), group["value"].to_numpy()
        by_node.setdefault(str(node), {})[spelled(str(metric))] = series
    return NodeSamples(by_node, refused)


def unit_of(metric: str) -> str:
    """The unit of one of their thirteen series: shares are in percent, others are byte rates."""
    if metric.endswith("bytes"):
        return "B/s"
    return "%" if metric.endswith(PERCENT) or metric.startswith("memory") else ""


def _seconds(column: pd.Series, zone: str) -> Floats:
    numbers = pd.to_numeric(column, errors="coerce")
    told = pa.array(numbers) if numbers.notna().all() else pa.array(column.astype(str), pa.string())
    found: NDArray[Any] = times(told, zone).values  # noqa: PD011
    return np.where(np.isnat(found), np.nan, found.astype("int64") / 1e6)


def _numbers(column: pd.Series) -> Floats:
    return np.asarray(pd.to_numeric(column, errors="coerce").to_numpy(dtype="float64", na_value=np.nan))
