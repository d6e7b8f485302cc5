"""whorl's own recordings: Parquet parts with one row an execution, its metrics, telemetry and log nested in it.

Rows become executions, metrics, telemetry and logs; what cannot be used is refused, single metrics on their own."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.intake.files import PARQUET_FAULTS, Chunk, damaged_parquet, open_plain, refusals
from tasks.intake.tables import MAGIC, check_size, column_names
from tasks.nodes.execution import EXECUTIONS_SCHEMA, NESTED, PART_SCHEMA, SCHEMAS, framed, record_of
from tasks.nodes.params import FUTURE_SLACK_S, ReadParams
from tasks.nodes.readers.vetting import Reasons, completed_times, first_reasons, vet

CHECKED = ("execution_id", "node", "benchmark", "status", "aspect")
UNEVEN = "a series of telemetry with more times than samples, or fewer"
NO_NAME = "a metric without a name; expected one"
NO_NUMBER = "a value that is no finite number; expected one, or the metric among missing_metrics"
TWICE = "the metric stands there twice; the first counts"
Ints = NDArray[np.int64]
BATCH_ROWS = 4_096  # a row holds whole series
NEEDED = ("execution_id", "node", "benchmark", "aspect", "status", "metrics")
EXPECTED = "a part of whorl's recorder"


def sniff(head: bytes, path: str) -> bool:
    """Parquet with nested metrics and an execution id."""
    return head.startswith(MAGIC) and {"execution_id", "metrics"} <= set(column_names(head, path))


def read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """As Reader.read says. Raises BadInput for a damaged part, and one with other columns."""
    now, first = datetime.now(UTC).replace(tzinfo=None), 1
    with open_plain(path) as stream:
        try:
            file = pq.ParquetFile(stream, pre_buffer=False)
            check_size(path, file.metadata, params.limits, "execution")
            names = _checked(path, file.schema_arrow)
            says_simulated = record_of(file.schema_arrow).get("is_simulated") is True
            for batch in file.iter_batches(BATCH_ROWS, columns=names):
                table = pa.Table.from_batches([batch])
                table.validate(full=True)
                part = _in_our_types(path, table, says_simulated)
                yield _chunk_of(part, np.arange(first, first + len(part)), now, FUTURE_SLACK_S)
                first += len(part)
        except PARQUET_FAULTS as error:
            raise damaged_parquet(path, error) from error


def _checked(path: str, schema: pa.Schema) -> list[str]:
    """The columns of a part that are read."""
    if missing := [name for name in NEEDED if name not in schema.names]:
        raise BadInput(path, f"no column {' and no '.join(missing)}", EXPECTED, "record it again")
    return [name for name in PART_SCHEMA.names if name in schema.names]


def _in_our_types(path: str, table: pa.Table, says_simulated: bool) -> pa.Table:
    """All columns of PART_SCHEMA, missing where the part lacks them."""
    columns = []
    for field in PART_SCHEMA:
        if field.name not in table.column_names:
            columns.append(pa.nulls(len(table), field.type))
            continue
        try:
            columns.append(table[field.name].cast(field.type))
        except pa.ArrowException as error:
            kind = table.schema.field(field.name).type
            problem = f"column '{field.name}' is of type {kind}"
            raise BadInput(path, problem, str(field.type), "record it again") from error
    found = pa.Table.from_arrays(columns, schema=PART_SCHEMA).combine_chunks()
    flag = pc.fill_null(found["is_simulated"], says_simulated)
    return found.set_column(PART_SCHEMA.get_field_index("is_simulated"), "is_simulated", flag)


def _chunk_of(part: pa.Table, places: Ints, now: datetime, slack_s: float) -> Chunk:
    """The executions of some rows. part: the columns of PART_SCHEMA; places: numbers of its rows in the file."""
    metrics, series = _nested(part, "metrics"), _nested(part, "telemetry")
    started, given = _times(part["started_at"]), _floats(part["duration_s"])
    ended, duration_s = completed_times(started, _times(part["ended_at"]), given)
    rows: dict[str, NDArray[Any]] = {name: pc.fill_null(part[name], "").to_numpy() for name in CHECKED}
    faults = vet(rows | {"started_at": started, "ended_at": ended, "duration_s": duration_s}, now, slack_s)
    faults = np.where(faults == "", first_reasons(len(part), [(_uneven(series, len(part)), UNEVEN)]), faults)
    is_good, metric_faults = faults == "", _metric_faults(metrics)
    refused = _refused(part, places, faults, metrics, metric_faults)
    if not is_good.any():
        return Chunk(pd.DataFrame(), refused, {})
    kept = metrics.filter(pa.array((metric_faults == "") & is_good[_rows(metrics)]))
    extra = {
        "ended_at": pa.array(ended),
        "duration_s": pa.array(duration_s, from_pandas=True),
        "n_metrics": np.bincount(_rows(kept), minlength=len(part)),
        "n_rows": np.ones(len(part), dtype=np.int64),
        "place": places,
    }
    columns = {name: extra[name] if name in extra else part[name] for name in EXECUTIONS_SCHEMA.names}
    executions = pa.table(columns, schema=EXECUTIONS_SCHEMA).filter(pa.array(is_good))
    logs = part.select(["tool", "log"]).append_column("row", pa.array(np.arange(len(part))))
    tables = {
        "metrics": kept,
        "telemetry": series.filter(pa.array(is_good[_rows(series)])),
        "logs": logs.filter(pc.and_(pa.array(is_good), pc.is_valid(logs["log"]))),
    }
    return Chunk(
        framed(executions), refused, {name: framed(_placed(t, name, part, places)) for name, t in tables.items()}
    )


def _nested(part: pa.Table, name: str) -> pa.Table:
    """The entries of a nested column as rows, `row` telling which row of the part they belong to."""
    lists = part[name].combine_chunks()
    lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists
    structs = lists.flatten()
    columns = {field.name: pc.struct_field(structs, field.name) for field in NESTED[name].value_type}
    return pa.table({"row": pc.list_parent_indices(lists).cast(pa.int64()), **columns})


def _placed(table: pa.Table, name: str, part: pa.Table, places: Ints) -> pa.Table:
    """Entries with the id and the place of their execution, in the types that are landed."""
    row = _rows(table)
    columns = {"execution_id": part["execution_id"].take(pa.array(row)), "place": pa.array(places[row])}
    columns |= {one: table[one] for one in table.column_names if one != "row"}
    columns |= {one: pc.fill_null(columns[one], "") for one in ("unit", "tool") if one in columns}
    if "samples" in columns:
        columns["samples"] = _without_nan(columns["samples"])
    return pa.table({one: columns[one] for one in SCHEMAS[name].names}, schema=SCHEMAS[name])


def _without_nan(column: pa.ChunkedArray) -> pa.ListArray:
    """Lists of numbers with NaN as missing."""
    flat = [pc.if_else(pc.is_nan(values), None, values) for values in (one.flatten() for one in column.chunks)]
    lengths = pc.list_value_length(column).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.chunked_array(flat, pa.float64()).combine_chunks())


def _metric_faults(metrics: pa.Table) -> Reasons:
    told = pd.DataFrame({"row": _rows(metrics), "metric": metrics["metric"].to_numpy()})
    is_number = np.isfinite(_floats(metrics["value"]))
    is_nameless = pc.is_null(metrics["metric"]).to_numpy()
    is_twice = told[is_number].duplicated().reindex(told.index, fill_value=False).to_numpy()
    return first_reasons(len(metrics), [(is_nameless, NO_NAME), (~is_number, NO_NUMBER), (is_twice, TWICE)])


def _refused(part: pa.Table, places: Ints, faults: Reasons, metrics: pa.Table, metric_faults: Reasons) -> pd.DataFrame:
    """The rows that cannot be used, and single metrics of the others."""
    bad = np.flatnonzero(faults != "")
    bad_metrics = np.flatnonzero((metric_faults != "") & (faults == "")[_rows(metrics)])
    shown = metrics.drop_columns(["row"])
    return refusals(
        [*places[bad], *places[_rows(metrics)[bad_metrics]]],
        [*faults[bad], *metric_faults[bad_metrics]],
        [*(_row(part, int(row)) for row in bad), *(_row(shown, int(row)) for row in bad_metrics)],
    )


def _uneven(series: pa.Table, n_rows: int) -> NDArray[np.bool_]:
    """Which rows of the part have a series with not as many times as samples."""
    n_times, n_samples = (
        pc.fill_null(pc.list_value_length(series[name]), -1).to_numpy() for name in ("at_s", "samples")
    )
    return np.isin(np.arange(n_rows), _rows(series)[(n_times != n_samples) | (n_times < 0)])


def _row(table: pa.Table, row: int) -> str:
    told = table.slice(row, 1).to_pylist()[0]
    shown = {name: value for name, value in told.items() if value is not None and name not in ("telemetry", "log")}
    return json.dumps(shown, default=str)


def _rows(table: pa.Table) -> Ints:
    return np.asarray(table["row"].to_numpy(), dtype=np.int64)


def _times(column: pa.ChunkedArray) -> NDArray[np.datetime64]:
    return np.asarray(column.to_numpy(), dtype="datetime64[us]")


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
