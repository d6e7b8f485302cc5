"""Executions as tables: the frames that are landed, and the parts of whorl's own recordings.

A part (executions-0001.parquet) is Parquet with one row an execution: the columns of nodes.executions,
metrics list<metric, value, unit>, telemetry list<metric, unit, at_s, samples>, tool, log; how it was recorded stands in
the metadata."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tasks.nodes.execution import (
    COUNTED,
    EXECUTION_COLUMNS,
    EXECUTIONS_SCHEMA,
    FACTS,
    LOGS_SCHEMA,
    METRICS_SCHEMA,
    NAMES,
    TELEMETRY_SCHEMA,
    VALUES,
    Execution,
)
from tasks.reading import Chunk

DEFAULTS = {"is_simulated": False}
PATTERN = "executions-{number:04d}.parquet"
RECORD_KEY = b"whorl.record"
METRIC = pa.struct([("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())])
SERIES = pa.struct([("metric", pa.string()), ("unit", pa.string()), ("at_s", VALUES), ("samples", VALUES)])
NESTED = {"metrics": pa.list_(METRIC), "telemetry": pa.list_(SERIES)}
PART_SCHEMA = pa.schema(
    [
        *((name, EXECUTION_COLUMNS[name][0]) for name in FACTS),
        ("missing_metrics", NAMES),
        *NESTED.items(),
        ("tool", pa.string()),
        ("log", pa.string()),
    ]
)
PACKED = {"compression": "zstd", "compression_level": 9}


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


def check_facts(executions: Sequence[Execution]) -> None:
    """Raises ValueError for a fact that is no column, or one that is counted."""
    for one in executions:
        if unknown := sorted(set(one.facts) - set(FACTS)):
            counted = " (it is counted)" if unknown[0] in COUNTED else ""
            raise ValueError(f"execution {one.execution_id}: no column {unknown[0]!r} in nodes.executions{counted}")


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


def table_of(executions: Sequence[Execution]) -> pa.Table:
    """The rows of a part. Raises ValueError for a fact that is no column."""
    check_facts(executions)
    columns = {name: [one.facts.get(name, DEFAULTS.get(name)) for one in executions] for name in FACTS}
    columns |= {
        "missing_metrics": [list(one.missing) for one in executions],
        "metrics": [
            [{"metric": m.metric, "value": m.value, "unit": m.unit} for m in one.measured] for one in executions
        ],
        "telemetry": [
            [{"metric": s.metric, "unit": s.unit, "at_s": s.at_s, "samples": s.samples} for s in one.telemetry]
            for one in executions
        ],
        "tool": [one.tool or None for one in executions],
        "log": [one.log or None for one in executions],
    }
    return pa.table({name: columns[name] for name in PART_SCHEMA.names}, schema=PART_SCHEMA)


def write_part(path: Path, executions: Sequence[Execution], record: Mapping[str, Any] | None = None) -> None:
    """Write a part that appears whole or not at all. record: how it was made, kept as metadata (JSON).

    Raises ValueError for a fact that is no column, and for an execution id that stands there twice."""
    ids = [one.execution_id for one in executions]
    if len(set(ids)) < len(ids):
        twice = next(one for at, one in enumerate(ids) if one in ids[:at])
        raise ValueError(f"{path}: execution {twice} stands there twice")
    write_table(path, table_of(executions), record or {})


def write_table(path: Path, table: pa.Table, record: Mapping[str, Any]) -> None:
    """Write rows of parts; see write_part."""
    temporary = path.with_suffix(".tmp")
    kept = table.replace_schema_metadata({RECORD_KEY: json.dumps(dict(record)).encode()})
    pq.write_table(kept, temporary, **PACKED)
    with temporary.open("rb") as handle:
        os.fsync(handle.fileno())
    temporary.replace(path)


def record_of(schema: pa.Schema) -> dict[str, Any]:
    """How a part was recorded; empty where it does not say."""
    try:
        found = json.loads((schema.metadata or {}).get(RECORD_KEY, b"{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
