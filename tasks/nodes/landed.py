"""Executions as the frames that are landed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.nodes.columns import EXECUTIONS_SCHEMA, LOGS_SCHEMA, METRICS_SCHEMA, TELEMETRY_SCHEMA
from tasks.nodes.execution import COUNTED, FACTS, Execution
from tasks.reading import Chunk

DEFAULTS = {"is_simulated": False}


def as_chunk(executions: Sequence[Execution], refused: pd.DataFrame) -> Chunk:
    """The rows of all tables of nodes that stand for these executions. refused: place, reason, raw."""
    if not executions:
        return Chunk(pd.DataFrame(), refused, {})
    tables = {"metrics": _metrics(executions), "telemetry": _telemetry(executions), "logs": _logs(executions)}
    return Chunk(framed(_executions(executions)), refused, {name: framed(table) for name, table in tables.items()})


def framed(table: pa.Table) -> pd.DataFrame:
    """A frame over the same memory, its types kept."""
    return pd.DataFrame({name: pd.arrays.ArrowExtensionArray(table[name]) for name in table.column_names})


def tabled(frame: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    """A landed frame as Arrow: the columns of the schema, missing where it lacks them."""
    if not len(frame):
        return schema.empty_table()
    known = [field for field in schema if field.name in frame]
    table = pa.Table.from_pandas(frame[[one.name for one in known]], schema=pa.schema(known), preserve_index=False)
    columns = [table[one.name] if one in known else pa.nulls(len(frame), one.type) for one in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def lists_of(arrays: Sequence[NDArray[np.float64]]) -> pa.ListArray:
    """Lists of numbers, NaN as missing."""
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in arrays])]).astype(np.int32)
    flat = np.concatenate(arrays) if arrays else np.zeros(0)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat, pa.float64(), from_pandas=True))


def _executions(executions: Sequence[Execution]) -> pa.Table:
    check_facts(executions)
    columns = {
        **{name: [_fact(one, name) for one in executions] for name in FACTS},
        "n_metrics": [len(one.measured) for one in executions],
        "missing_metrics": [list(one.missing) for one in executions],
        "n_rows": [one.n_rows for one in executions],
        "place": [one.place for one in executions],
    }
    return pa.table({name: columns[name] for name in EXECUTIONS_SCHEMA.names}, schema=EXECUTIONS_SCHEMA)


def check_facts(executions: Sequence[Execution]) -> None:
    """Raises ValueError for a fact that is no column, or one that is counted."""
    for one in executions:
        if unknown := sorted(set(one.facts) - set(FACTS)):
            counted = " (it is counted)" if unknown[0] in COUNTED else ""
            raise ValueError(f"execution {one.execution_id}: no column {unknown[0]!r} in nodes.executions{counted}")


def _fact(execution: Execution, name: str) -> Any:
    value = execution.facts.get(name)
    return DEFAULTS.get(name) if value is None else value


def _metrics(executions: Sequence[Execution]) -> pa.Table:
    pairs = [(one, measured) for one in executions for measured in one.measured]
    columns = {
        "execution_id": [one.execution_id for one, _ in pairs],
        "metric": [measured.metric for _, measured in pairs],
        "value": [measured.value for _, measured in pairs],
        "unit": [measured.unit for _, measured in pairs],
        "place": [one.place for one, _ in pairs],
    }
    return pa.table(columns, schema=METRICS_SCHEMA)


def _telemetry(executions: Sequence[Execution]) -> pa.Table:
    pairs = [(one, series) for one in executions for series in one.telemetry]
    columns = {
        "execution_id": [one.execution_id for one, _ in pairs],
        "metric": [series.metric for _, series in pairs],
        "unit": [series.unit for _, series in pairs],
        "at_s": lists_of([series.at_s for _, series in pairs]),
        "samples": lists_of([series.samples for _, series in pairs]),
        "place": [one.place for one, _ in pairs],
    }
    return pa.table(columns, schema=TELEMETRY_SCHEMA)


def _logs(executions: Sequence[Execution]) -> pa.Table:
    kept = [one for one in executions if one.log]
    columns = {
        "execution_id": [one.execution_id for one in kept],
        "tool": [one.tool for one in kept],
        "log": [one.log for one in kept],
        "place": [one.place for one in kept],
    }
    return pa.table(columns, schema=LOGS_SCHEMA)
