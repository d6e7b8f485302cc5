"""The executions of one benchmark type as a table of its own metrics, and robust statistics of its rows by group.

A vector over all types would be empty but for a few places: tables hold what was measured alone, so that millions of
executions fit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.nodes.aspects import type_names
from tasks.nodes.history import History
from tasks.nodes.preprocess.fitting import FittedMetric, Preprocessor, durations, fit, scaled, softly_clipped
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.preprocess.unification import (
    Recorded,
    Unified,
    as_rates,
    in_base_units,
    recorded,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class TypeTable:
    """name: the type, such as `cpu-sysbench@1a2b3c4d`. executions: (n,) rows of the history, rising, so in time order.

    nodes: (n,) numbers of nodes in `NodeNames`. metrics, units: (m,) names and base units. natural: (n, m) in base
    units, NaN where not measured. orientation: (m,) 1 where more is better, -1 where less is. scaled: (n, m) oriented
    and brought to one scale, NaN where not measured. is_directed: (m,) false where neither more nor less is better and
    the orientation is a guess; None: all are."""

    name: str
    aspect: str
    executions: Ints
    nodes: Ints
    metrics: tuple[str, ...]
    units: tuple[str, ...]
    natural: Floats
    orientation: Floats
    scaled: Floats
    is_directed: Bools | None = None

    def where(self, is_kept: Bools) -> "TypeTable":
        """The rows for which the mask (n,) is true."""
        return replace(
            self,
            executions=self.executions[is_kept],
            nodes=self.nodes[is_kept],
            natural=self.natural[is_kept],
            scaled=self.scaled[is_kept],
        )


@dataclass(frozen=True)
class NodeTables:
    """nodes: names, by number. machine_types: theirs. tables: one a type that has a kept metric, by name.

    n_executions: of the history, so that what a table says of its rows can be put in its place. n_left_out: of them,
    those that measured something, but nothing that the preprocessing knows: they are in no table."""

    nodes: tuple[str, ...]
    machine_types: tuple[str, ...]
    tables: tuple[TypeTable, ...]
    n_executions: int
    n_left_out: int = 0

    def of_executions(self, is_kept: Bools) -> "NodeTables":
        """With the rows of some executions alone, (n_executions,); types without any are dropped."""
        kept = [table.where(is_kept[table.executions]) for table in self.tables]
        return replace(self, tables=tuple(table for table in kept if len(table.executions)))

    def of_aspects(self, left_out: Sequence[str]) -> "NodeTables":
        """Without the types of some aspects."""
        return replace(self, tables=tuple(table for table in self.tables if table.aspect not in left_out))

    def in_place(self, by_table: Sequence[Floats]) -> Floats:
        """What was said of each table's rows, at the place of the execution; NaN elsewhere. (n_executions,)"""
        found = np.full(self.n_executions, np.nan)
        for table, values in zip(self.tables, by_table, strict=True):
            found[table.executions] = values
        return found


SD_OF_MAD = 1.4826  # of a normal distribution: deviation over median absolute deviation
SD_OF_MEAN = 1.2533  # and over mean absolute deviation, where more than half the values are the median itself


def group_medians(values: Floats, groups: Ints, n_groups: int) -> Floats:
    """Median of each column in each group: (n_groups, m); NaN without a value. values: (n, m). groups: (n,)."""
    found = pd.DataFrame(values).groupby(groups).median().reindex(range(n_groups))
    return found.to_numpy(dtype=np.float64)


def robust_deviation(values: Floats) -> Floats:
    """Each column's robust standard deviation, from its median absolute deviation: (m,). values: (n, m).

    Where that is 0, as more than half the values are alike, from the mean one. NaN for a column without values."""
    frame = pd.DataFrame(values)
    return _deviation(frame - frame.median())


def within_deviation(values: Floats, groups: Ints, n_groups: int) -> Floats:
    """The robust deviation of each column around the medians of the groups, all groups together: (m,).

    A group of one row lies on its own median and says nothing of the spread: it is left out."""
    sizes = np.bincount(groups, minlength=n_groups)
    apart = values - group_medians(values, groups, n_groups)[groups]
    return _deviation(pd.DataFrame(apart[sizes[groups] > 1]))


def _deviation(apart: pd.DataFrame) -> Floats:
    size = apart.abs()
    median = SD_OF_MAD * size.median().to_numpy(dtype=np.float64)
    mean = SD_OF_MEAN * size.mean().to_numpy(dtype=np.float64)
    return np.asarray(np.where(median == 0, mean, median))


def weighted_mean(values: Floats, weights: Floats) -> Floats:
    """Mean of values (…, k) with weights (k,) over the k that are there; NaN where none with a weight is. (…,)"""
    is_there = ~np.isnan(values)
    total = np.asarray(is_there @ weights, dtype=np.float64)
    found = np.where(is_there, values, 0.0) @ weights
    return np.asarray(np.divide(found, total, out=np.full(total.shape, np.nan), where=total > 0))


def learn_tables(history: History, is_train: Bools, params: PreprocessParams) -> NodeTables:
    """Tables of all executions, preprocessed with what those of the mask (n_executions,) taught."""
    return tables_of(history, fit(history if is_train.all() else history.where(is_train), params))


def tables_of(history: History, preprocessor: Preprocessor) -> NodeTables:
    """The kept metrics of all executions by type. An execution without a value of them is in no table.

    What training did not have (types, metrics, units) is left out; executions that have nothing else are counted."""
    executions = history.executions
    columns = preprocessor.columns()
    found = recorded(history)
    read = in_base_units(found, columns)
    unified = as_rates(read, columns, columns["divided_by"].tolist(), durations(executions))
    names = pd.Series(type_names(executions).to_numpy(dtype=object))
    aspects = _aspects(names, executions["aspect"])
    node_of, nodes = pd.factorize(executions["node"].astype(str), sort=True)
    of_type: dict[str, list[int]] = {}
    for at, metric in enumerate(preprocessor.metrics):
        if metric.is_kept:
            of_type.setdefault(metric.type, []).append(at)
    tables = [
        _table(name, aspects.get(name, "unknown"), places, unified, preprocessor, node_of.astype(np.int64))
        for name, places in sorted(of_type.items())
    ]
    return NodeTables(
        tuple(str(node) for node in nodes),
        _machine_types(executions, node_of, len(nodes)),
        tuple(table for table in tables if len(table.executions)),
        len(executions),
        _count_left_out(found, read, len(executions)),
    )


def _count_left_out(found: Recorded, read: Unified, n_executions: int) -> int:
    """Executions that measured something, but no metric of training in a unit that can become that of its column."""
    is_measured, is_known = np.zeros((2, n_executions), dtype=bool)
    is_measured[found.execution] = True
    is_known[read.execution] = True
    return int((is_measured & ~is_known).sum())


def _aspects(types: pd.Series, aspects: pd.Series) -> dict[str, str]:
    """The aspect of each type, as its first execution says."""
    is_first = ~types.duplicated()
    told = aspects.fillna("unknown").astype(str).to_numpy(dtype=object)[is_first.to_numpy()]
    return dict(zip(types[is_first], told, strict=True))


def _machine_types(executions: pd.DataFrame, node_of: np.ndarray, n_nodes: int) -> tuple[str, ...]:
    """Of each node, as the first of its executions that says any; empty if none does."""
    told = pd.Series(executions["machine_type"].fillna("").astype(str).to_numpy(dtype=object))
    first = told[told != ""].groupby(node_of[(told != "").to_numpy()]).first()
    return tuple(str(one) for one in first.reindex(range(n_nodes), fill_value=""))


def _table(
    name: str, aspect: str, places: list[int], unified: Unified, preprocessor: Preprocessor, node_of: Ints
) -> TypeTable:
    metrics = [preprocessor.metrics[place] for place in places]
    parts = [unified.of(place) for place in places]
    rows = np.unique(np.concatenate([unified.execution[part] for part in parts]))
    values, on_scale = (np.full((len(rows), len(places)), np.nan) for _ in range(2))
    for at, (metric, part) in enumerate(zip(metrics, parts, strict=True)):
        own = np.searchsorted(rows, unified.execution[part])
        values[own, at] = unified.value[part]
        on_scale[own, at] = _scaled(metric, unified.value[part], preprocessor.params)
    return TypeTable(
        name=name,
        aspect=aspect,
        executions=rows.astype(np.int64),
        nodes=node_of[rows],
        metrics=tuple(metric.metric for metric in metrics),
        units=tuple(metric.base for metric in metrics),
        natural=values,
        orientation=np.array([metric.orientation.sign for metric in metrics], dtype=np.float64),
        scaled=on_scale,
        is_directed=np.array([metric.orientation.is_directed for metric in metrics], dtype=bool),
    )


def _scaled(metric: FittedMetric, values: Floats, params: PreprocessParams) -> Floats:
    """The values of one kept metric on its scale, as `transforming` has them."""
    scale = metric.scale
    if scale is None:
        raise ValueError(f"{metric.name} is not kept, so it has no scale")
    z = scaled(
        values,
        np.float64(metric.orientation.sign),  # type: ignore[arg-type]
        np.bool_(scale.is_logarithmic),  # type: ignore[arg-type]
        np.float64(scale.centre),  # type: ignore[arg-type]
        np.float64(scale.spread),  # type: ignore[arg-type]
    )
    return z if params.scales == "min_max" else softly_clipped(z, params.clip_from, params.clip_at)
