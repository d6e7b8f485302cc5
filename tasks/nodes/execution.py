"""Executions of benchmarks: their columns, what readers and recorders make, and the tables that they are landed as.

A part of whorl's own recordings (executions-0001.parquet) is Parquet with one row an execution: the columns of
nodes.executions, metrics list<metric, value, unit>, telemetry list<metric, unit, at_s, samples>, tool, log; how it was
recorded stands in the metadata."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tasks.intake.files import Chunk
from tasks.intake.tables import RECORD_KEY
from tasks.nodes.type_tables import Aspect
from tasks.record.parts import write_table

TIMESTAMP = pa.timestamp("us")  # UTC, without a time zone
VALUES = pa.list_(pa.float64())
NAMES = pa.list_(pa.string())
Status = Literal["completed", "failed", "timeout"]
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)
STATUSES: tuple[Status, ...] = get_args(Status)
EXECUTION_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "execution_id": (pa.string(), "name of the execution within its source"),
    "node": (pa.string(), "machine that it ran on; names are unique within a source"),
    "machine_type": (pa.string(), "type of that machine; missing where nobody says"),
    "benchmark": (pa.string(), "what ran: tool and part of the machine, such as cpu-sysbench"),
    "aspect": (pa.string(), "cpu, memory, disk, network, system, application or unknown: what it is a measure of"),
    "template": (pa.string(), "how it was called: options of the tool, without what differs by node"),
    "template_hash": (pa.string(), "hash of the template; with the benchmark the type, and types are never compared"),
    "tool_version": (pa.string(), "version of the tool, as it says itself"),
    "started_at": (TIMESTAMP, "start, UTC; missing where nobody says"),
    "ended_at": (TIMESTAMP, "end, UTC"),
    "duration_s": (pa.float64(), "seconds from start to end"),
    "status": (pa.string(), "completed, failed or timeout"),
    "is_stressed": (pa.bool_(), "label: stress was applied while it ran; missing where nobody says"),
    "stress_wanted": (pa.bool_(), "stress was planned for it"),
    "dose": (pa.string(), "which stress, such as cpu-16; empty for none"),
    "dose_level": (pa.int64(), "0: none; 1, 2, 3: meant to move the main metric by about 1, 3, 10 deviations"),
    "is_contaminated": (pa.bool_(), "others used the machine while it ran, more than the recorder lets pass"),
    "foreign_cores": (pa.float64(), "cores that processes other than benchmark and stress used, mean"),
    "steal_cores": (pa.float64(), "cores that the hypervisor withheld, mean"),
    "load_1m": (pa.float64(), "load average over one minute at its start"),
    "is_emulated": (pa.bool_(), "true where the node is made of limits on a larger machine"),
    "campaign": (pa.string(), "recording that it is part of"),
    "region": (pa.string(), "where the machine stands"),
    "n_metrics": (pa.int64(), "metrics with a value"),
    "missing_metrics": (NAMES, "metrics that the tool should have told and did not; they are never zero"),
    "is_simulated": (pa.bool_(), "true for values that were drawn, not measured"),
    "n_rows": (pa.int64(), "rows of the file that it was made of"),
}
METRIC_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "execution_id": (pa.string(), "execution that it belongs to (nodes.executions)"),
    "metric": (pa.string(), "what was measured, without its unit"),
    "value": (pa.float64(), "the value, finite, in the unit"),
    "unit": (pa.string(), "unit as the tool wrote it; empty for a plain number"),
}
TELEMETRY_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "execution_id": (pa.string(), "execution that it belongs to (nodes.executions)"),
    "metric": (pa.string(), "what was sampled on the node"),
    "unit": (pa.string(), "unit of the samples; empty where unknown"),
    "at_s": (VALUES, "time of each sample, seconds after the start: negative before it, rising"),
    "samples": (VALUES, "the samples, in the order of at_s; missing ones stay missing"),
}
LOG_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "execution_id": (pa.string(), "execution that it belongs to (nodes.executions)"),
    "tool": (pa.string(), "tool that wrote it"),
    "log": (pa.string(), "what the tool wrote, so that it can be read anew"),
}
PLACE = pa.field("place", pa.int64())  # of the execution in the file: its first row; travels with the rows until ingest
COUNTED = ("n_metrics", "missing_metrics", "n_rows")  # follow from the rest
FACTS = tuple(name for name in EXECUTION_COLUMNS if name not in COUNTED)


def _schema(columns: dict[str, tuple[pa.DataType, str]]) -> pa.Schema:
    return pa.schema([*((name, kind) for name, (kind, _) in columns.items()), PLACE])


EXECUTIONS_SCHEMA = _schema(EXECUTION_COLUMNS)
METRICS_SCHEMA = _schema(METRIC_COLUMNS)
TELEMETRY_SCHEMA = _schema(TELEMETRY_COLUMNS)
SCHEMAS = {  # of a landed batch, the main table first
    "executions": EXECUTIONS_SCHEMA,
    "metrics": METRICS_SCHEMA,
    "telemetry": TELEMETRY_SCHEMA,
    "logs": _schema(LOG_COLUMNS),
}
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class MetricValue:
    """One value of a log. unit: as the tool wrote it, empty for a plain number."""

    metric: str
    value: float
    unit: str


@dataclass(frozen=True)
class Fault:
    """One thing in a log that could not be used. place: its line, from 1; raw: the line, at most 500 characters.

    is_failure: the tool itself says that the benchmark failed, or did nothing."""

    place: int
    reason: str
    raw: str
    is_failure: bool = False


@dataclass(frozen=True)
class ParsedLog:
    """The values of a log, in the order of the tool's table. missing: metrics that it lacks; they are never zero.

    settings: how the tool was called as far as the log says (block size, threads, …), by name. started_at: as the log
    says it; without a zone it is of the machine's clock. name: of a job, where a run has several. text: what the run
    wrote, from line `place` on of the file."""

    measured: tuple[MetricValue, ...]
    tool: str
    version: str
    missing: tuple[str, ...]
    faults: tuple[Fault, ...]
    settings: tuple[tuple[str, str], ...] = ()
    started_at: datetime | None = None
    name: str = ""
    place: int = 1
    text: str = field(default="", repr=False)

    @property
    def has_failed(self) -> bool:
        """Whether the tool says that the benchmark failed, or did nothing."""
        return any(fault.is_failure for fault in self.faults)


@dataclass(frozen=True)
class SampledMetric:
    """A metric of the node around an execution. at_s: (n_samples,), seconds after its start, rising."""

    metric: str
    unit: str
    at_s: NDArray[np.float64]
    samples: NDArray[np.float64]


@dataclass(frozen=True)
class Execution:
    """facts: columns of nodes.executions (FACTS) by name, missing ones left out; `is_simulated` false unless it says.

    measured: its metrics, each once. missing: metrics that its tool should have told. tool, log: what the tool wrote.
    place: its row in the file, from 1."""

    facts: Mapping[str, Any]
    measured: tuple[MetricValue, ...]
    missing: tuple[str, ...] = ()
    telemetry: tuple[SampledMetric, ...] = field(default=(), repr=False)
    tool: str = ""
    log: str = field(default="", repr=False)
    place: int = 1

    @property
    def execution_id(self) -> str:
        """Its name within its source."""
        return str(self.facts["execution_id"])


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


def as_chunk(executions: Sequence[Execution], refused: pd.DataFrame) -> Chunk:
    """The rows of all tables of nodes that stand for these executions. refused: place, reason, raw."""
    part, places = table_of(executions), np.array([execution.place for execution in executions], dtype=np.int64)
    return chunk_of(part, places, entries_of(part, "metrics"), np.ones(len(part), dtype=bool), refused)


def chunk_of(
    part: pa.Table, places: Ints, metrics: pa.Table, is_kept: NDArray[np.bool_], refused: pd.DataFrame
) -> Chunk:
    """The rows of all tables of nodes that stand for those rows of a part that are kept, (n,).

    places: numbers of all of its rows in the file. metrics: the entries that count, of rows that are kept."""
    if not is_kept.any():
        return Chunk(pd.DataFrame(), refused, {})
    series, row = entries_of(part, "telemetry"), np.arange(len(part))
    logs = part.select(["tool", "log"]).append_column("row", pa.array(row))
    tables = {
        "metrics": metrics,
        "telemetry": series.filter(pa.array(is_kept[rows_of(series)])),
        "logs": logs.filter(pc.and_(pa.array(is_kept), pc.is_valid(logs["log"]))),
    }
    counted = {"n_metrics": np.bincount(rows_of(metrics), minlength=len(part)), "n_rows": np.ones(len(part), dtype=int)}
    counted |= {"place": places, "is_simulated": pc.fill_null(part["is_simulated"], False)}
    columns = {name: counted[name] if name in counted else part[name] for name in EXECUTIONS_SCHEMA.names}
    executions = pa.table(columns, schema=EXECUTIONS_SCHEMA).filter(pa.array(is_kept))
    frames = {name: framed(_placed(table, name, part, places)) for name, table in tables.items()}
    return Chunk(framed(executions), refused, frames)


def entries_of(part: pa.Table, name: str) -> pa.Table:
    """The entries of a nested column as rows, `row` telling which row of the part they belong to."""
    lists = part[name].combine_chunks()
    lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists
    structs = lists.flatten()
    columns = {field.name: pc.struct_field(structs, field.name) for field in NESTED[name].value_type}
    return pa.table({"row": pc.list_parent_indices(lists).cast(pa.int64()), **columns})


def rows_of(entries: pa.Table) -> Ints:
    """The row of the part that each entry belongs to: (n,)."""
    return np.asarray(entries["row"].to_numpy(), dtype=np.int64)


def _placed(table: pa.Table, name: str, part: pa.Table, places: Ints) -> pa.Table:
    """Entries with the id and the place of their execution, in the types that are landed."""
    row = rows_of(table)
    columns = {column: table[column] for column in table.column_names}
    columns |= {"execution_id": part["execution_id"].take(pa.array(row)), "place": pa.array(places[row])}
    columns |= {column: pc.fill_null(columns[column], "") for column in ("unit", "tool") if column in columns}
    if "samples" in columns:  # NaN is missing
        flat = [
            pc.if_else(pc.is_nan(values), None, values)
            for values in (column.flatten() for column in columns["samples"].chunks)
        ]
        ends = np.cumsum(pc.list_value_length(columns["samples"]).to_numpy())
        offsets = pa.array(np.append(0, ends).astype(np.int32))
        whole = pa.chunked_array(flat, pa.float64()).combine_chunks()
        columns["samples"] = pa.ListArray.from_arrays(offsets, whole)
    return pa.table({column: columns[column] for column in SCHEMAS[name].names}, schema=SCHEMAS[name])


def framed(table: pa.Table) -> pd.DataFrame:
    """A frame over the same memory, its types kept."""
    return pd.DataFrame({name: pd.arrays.ArrowExtensionArray(table[name]) for name in table.column_names})


def tabled(frame: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    """A landed frame as Arrow: the columns of the schema, missing where it lacks them."""
    if not len(frame):
        return schema.empty_table()
    known = [field for field in schema if field.name in frame]
    table = pa.Table.from_pandas(
        frame[[column.name for column in known]], schema=pa.schema(known), preserve_index=False
    )
    columns = [table[column.name] if column in known else pa.nulls(len(frame), column.type) for column in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def table_of(executions: Sequence[Execution]) -> pa.Table:
    """The rows of a part. Raises ValueError for a fact that is no column, or one that is counted."""
    for execution in executions:
        if unknown := sorted(set(execution.facts) - set(FACTS)):
            counted = " (it is counted)" if unknown[0] in COUNTED else ""
            raise ValueError(
                f"execution {execution.execution_id}: no column {unknown[0]!r} in nodes.executions{counted}"
            )
    rows = [
        {
            "is_simulated": False,
            **execution.facts,
            "missing_metrics": list(execution.missing),
            "metrics": [vars(measured) for measured in execution.measured],
            "telemetry": [vars(series) for series in execution.telemetry],
            "tool": execution.tool or None,
            "log": execution.log or None,
        }
        for execution in executions
    ]
    return pa.Table.from_pylist(rows, PART_SCHEMA)


def write_part(path: Path, executions: Sequence[Execution], record: Mapping[str, Any] | None = None) -> None:
    """Write a part that appears whole or not at all. record: how it was made, kept as metadata (JSON).

    Raises ValueError for a fact that is no column, and for an execution id that stands there twice."""
    ids = [execution.execution_id for execution in executions]
    if len(set(ids)) < len(ids):
        twice = next(name for at, name in enumerate(ids) if name in ids[:at])
        raise ValueError(f"{path}: execution {twice} stands there twice")
    write_table(path, table_of(executions), record or {})


def record_of(schema: pa.Schema) -> dict[str, Any]:
    """How a part was recorded; empty where it does not say."""
    try:
        record = json.loads((schema.metadata or {}).get(RECORD_KEY, b"{}"))
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
