"""Learns preprocessing from training executions: everything that depends on data is learned here, and nowhere else."""

from typing import Any

import numpy as np
import pandas as pd

from tasks.nodes.aspects import is_stressed
from tasks.nodes.history import History
from tasks.nodes.preprocess.declared import declared_facts
from tasks.nodes.preprocess.fitted import FittedMetric, Preprocessor
from tasks.nodes.preprocess.orientation import orient
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.preprocess.recorded import Bools, Floats, Ints, recorded
from tasks.nodes.preprocess.run_time import as_rates, divisors
from tasks.nodes.preprocess.scaling import learn_scale
from tasks.nodes.preprocess.selection import why_dropped
from tasks.nodes.preprocess.spread import spread_of
from tasks.nodes.preprocess.unification import Facts, choose_columns, in_base_units
from tasks.nodes.preprocess.units import per_second
from tasks.nodes.tools.facts import MetricFacts


def fit(history: History, params: PreprocessParams, *, facts: Facts | None = None) -> Preprocessor:
    """Learn units, selection, orientation and scales of every metric from training executions.

    facts: what is declared of metrics, by benchmark and metric; None: what the tools declare. Executions whose label
    is missing count as unstressed. Without executions nothing is kept. Raises ValueError for a value that is not
    finite. Source: Perona, III-B."""
    declared = declared_facts() if facts is None else facts
    found = recorded(history)
    columns = choose_columns(found, declared)
    divided_by = divisors(columns, declared)
    read = in_base_units(found, columns)
    unified = as_rates(read, columns, divided_by, durations(history.executions))
    without_time = np.diff(read.edges) - np.diff(unified.edges)
    stressed = is_stressed(history.executions).to_numpy(dtype=bool)
    metrics = []
    for at, column in enumerate(_with_lost(columns.assign(divided_by=divided_by), without_time).to_dict("records")):
        rows = unified.of(at)
        fact = declared.get(column["benchmark"], {}).get(column["metric"])
        metrics.append(_learn(column, unified.value[rows], ~stressed[unified.execution[rows]], fact, params))
    types = tuple(sorted({str(name) for name in found.types}))
    return Preprocessor(params=params, n_executions=len(found.types), types=types, metrics=tuple(metrics))


def durations(executions: pd.DataFrame) -> Floats:
    """duration_s of each execution, (n_executions,); NaN where it is missing."""
    return np.asarray(pd.to_numeric(executions["duration_s"]).to_numpy(dtype=np.float64, na_value=np.nan))


def _with_lost(columns: pd.DataFrame, n_lost: Ints) -> pd.DataFrame:
    """The columns with the totals that no time could be found for, in n_apart and note."""
    told = [
        "; ".join([*([note] if note else []), *([f"{lost} values without {over}: apart"] if lost else [])])
        for note, lost, over in zip(columns["note"], n_lost, columns["divided_by"], strict=True)
    ]
    return columns.assign(n_apart=columns["n_apart"].to_numpy(dtype=np.int64) + n_lost, note=told)


def _learn(
    column: dict[Any, Any], values: Floats, is_calm: Bools, fact: MetricFacts | None, params: PreprocessParams
) -> FittedMetric:
    """One metric. values: (n_values,) in base units; is_calm: which of them no known stress moved."""
    read = dict(column)
    as_read = read.pop("base")
    base = per_second(as_read) if read["divided_by"] else as_read
    spread = spread_of(values)
    orientation = orient(read["metric"], base, fact, spread, spread_of(values[is_calm]), params)
    why = why_dropped(read["benchmark"], read["metric"], base, spread, fact, params)
    scale = None
    if spread is not None and not why:
        scale = learn_scale(values, spread, orientation.sign, params.scales, params.imputes)
    return FittedMetric(
        **read, base_as_read=as_read, base=base, spread=spread, why=why, orientation=orientation, scale=scale
    )
