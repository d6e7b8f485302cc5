"""From a history to one table a benchmark type, by what preprocessing learned.

A vector over all types would be empty but for a few places: tables hold what was measured alone, so that millions of
executions fit."""

import numpy as np
import pandas as pd

from tasks.nodes.aspects import type_names
from tasks.nodes.history import History
from tasks.nodes.preprocess.fitting import FittedMetric, Preprocessor, durations, fit, scaled, softly_clipped
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.preprocess.unification import Recorded, Unified, as_rates, in_base_units, recorded
from tasks.nodes.type_tables import Bools, Floats, Ints, NodeTables, TypeTable


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
