"""whorl's own recordings: Parquet with one row an execution, its metrics, telemetry and log nested in it.

executions-0001.parquet: the columns of nodes.executions, metrics list<metric, value, unit>,
telemetry list<metric, unit, at_s, samples>, tool, log; how it was recorded stands in the metadata."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.nodes.columns import EXECUTION_COLUMNS, NAMES, VALUES
from tasks.nodes.execution import FACTS, Execution
from tasks.nodes.landed import DEFAULTS, check_facts

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
