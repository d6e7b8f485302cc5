"""whorl's own recordings: Parquet parts with one row an execution, its metrics, telemetry and log nested in it.

Rows become executions, metrics, telemetry and logs; what cannot be used is refused, single metrics on their own."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.intake.files import Chunk, damaged_parquet, open_plain, parquet_faults, refusals
from tasks.intake.tables import MAGIC, check_size, column_names
from tasks.nodes.execution import PART_SCHEMA, Ints, chunk_of, entries_of, record_of, rows_of
from tasks.nodes.params import ReadParams
from tasks.nodes.readers.vetting import Reasons, completed_times, first_reasons, vet

CHECKED = ("execution_id", "node", "benchmark", "status", "aspect")
UNEVEN = "a series of telemetry with more times than samples, or fewer"
NO_NAME = "a metric without a name; expected one"
NO_NUMBER = "a value that is no finite number; expected one, or the metric among missing_metrics"
TWICE = "the metric stands there twice; the first counts"
BATCH_ROWS = 4_096  # a row holds whole series
NEEDED = ("execution_id", "node", "benchmark", "aspect", "status", "metrics")
EXPECTED = "a part of whorl's recorder"


def sniff(head: bytes, path: str) -> bool:
    """Parquet with nested metrics and an execution id."""
    return head.startswith(MAGIC) and {"execution_id", "metrics"} <= set(column_names(head, path))


def read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """As Reader.read says. Raises BadInput for a damaged part, and one with other columns."""
    first = 1
    with open_plain(path) as stream:
        try:
            file = pq.ParquetFile(stream, pre_buffer=False)
            check_size(path, file.metadata, params.limits, "execution")
            names = _checked(path, file.schema_arrow)
            is_simulated = record_of(file.schema_arrow).get("is_simulated") is True
            for batch in file.iter_batches(BATCH_ROWS, columns=names):
                table = pa.Table.from_batches([batch])
                table.validate(full=True)
                part = _in_our_types(path, table, is_simulated)
                yield _chunk_of(part, np.arange(first, first + len(part)))
                first += len(part)
        except parquet_faults() as error:
            raise damaged_parquet(path, error) from error


def _checked(path: str, schema: pa.Schema) -> list[str]:
    """The columns of a part that are read."""
    if missing := [name for name in NEEDED if name not in schema.names]:
        raise BadInput(path, f"no column {' and no '.join(missing)}", EXPECTED, "record it again")
    return [name for name in PART_SCHEMA.names if name in schema.names]


def _in_our_types(path: str, table: pa.Table, is_simulated: bool) -> pa.Table:
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
    typed = pa.Table.from_arrays(columns, schema=PART_SCHEMA).combine_chunks()
    flag = pc.fill_null(typed["is_simulated"], is_simulated)
    return typed.set_column(PART_SCHEMA.get_field_index("is_simulated"), "is_simulated", flag)


def _chunk_of(part: pa.Table, places: Ints) -> Chunk:
    """The executions of some rows. part: the columns of PART_SCHEMA; places: numbers of its rows in the file."""
    metrics, series = entries_of(part, "metrics"), entries_of(part, "telemetry")
    started, ended = (np.asarray(part[name].to_numpy(), dtype="datetime64[us]") for name in ("started_at", "ended_at"))
    ended, duration_s = completed_times(started, ended, _floats(part["duration_s"]))
    rows: dict[str, NDArray[Any]] = {name: pc.fill_null(part[name], "").to_numpy() for name in CHECKED}
    faults = vet(rows | {"started_at": started, "ended_at": ended, "duration_s": duration_s})
    n_times, n_samples = (
        pc.fill_null(pc.list_value_length(series[name]), -1).to_numpy() for name in ("at_s", "samples")
    )
    uneven = rows_of(series)[(n_times != n_samples) | (n_times < 0)]
    faults = np.where((faults == "") & np.isin(np.arange(len(part)), uneven), UNEVEN, faults)
    is_good, metric_faults = faults == "", _metric_faults(metrics)
    bad, bad_metrics = np.flatnonzero(~is_good), np.flatnonzero((metric_faults != "") & is_good[rows_of(metrics)])
    shown = metrics.drop_columns(["row"])
    refused = refusals(
        [*places[bad], *places[rows_of(metrics)[bad_metrics]]],
        [*faults[bad], *metric_faults[bad_metrics]],
        [*(_row(part, int(row)) for row in bad), *(_row(shown, int(row)) for row in bad_metrics)],
    )
    kept = metrics.filter(pa.array((metric_faults == "") & is_good[rows_of(metrics)]))
    for name, values in (("ended_at", pa.array(ended)), ("duration_s", pa.array(duration_s, from_pandas=True))):
        part = part.set_column(part.column_names.index(name), name, values)
    return chunk_of(part, places, kept, is_good, refused)


def _metric_faults(metrics: pa.Table) -> Reasons:
    frame = pd.DataFrame({"row": rows_of(metrics), "metric": metrics["metric"].to_numpy()})
    is_number = np.isfinite(_floats(metrics["value"]))
    is_nameless = pc.is_null(metrics["metric"]).to_numpy()
    is_twice = frame[is_number].duplicated().reindex(frame.index, fill_value=False).to_numpy()
    return first_reasons(len(metrics), [(is_nameless, NO_NAME), (~is_number, NO_NUMBER), (is_twice, TWICE)])


def _row(table: pa.Table, row: int) -> str:
    cells = table.slice(row, 1).to_pylist()[0]
    shown = {name: value for name, value in cells.items() if value is not None and name not in ("telemetry", "log")}
    return json.dumps(shown, default=str)


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
