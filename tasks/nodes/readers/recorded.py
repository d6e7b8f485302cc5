"""whorl's own recordings: Parquet parts with one row an execution, its metrics, telemetry and log nested in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tasks.errors import BadInput
from tasks.nodes.readers.recorded_rows import chunk_of
from tasks.nodes.readers.table_file import MAGIC, check_size, column_names
from tasks.nodes.reading_params import ReadParams
from tasks.nodes.recorded_parts import PART_SCHEMA, record_of
from tasks.reading import PARQUET_FAULTS, Chunk, damaged_parquet, open_plain

BATCH_ROWS = 4_096  # a row holds whole series
NEEDED = ("execution_id", "node", "benchmark", "aspect", "status", "metrics")
EXPECTED = "a part of whorl's recorder"


@dataclass(frozen=True)
class RecordedReader:
    """Reads executions-NNNN.parquet."""

    name: str = "recorded"
    version: int = 1
    title: str = "whorl's own recordings (executions-NNNN.parquet)"
    endings: tuple[str, ...] = (".parquet",)
    has_local_nodes: bool = False

    def sniff(self, head: bytes, path: str) -> bool:
        """Parquet with nested metrics and an execution id."""
        return head.startswith(MAGIC) and {"execution_id", "metrics"} <= set(column_names(head, path))

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """See Reader.read. Raises BadInput for a damaged part, and one with other columns."""
        now, first = datetime.now(UTC).replace(tzinfo=None), 1
        with open_plain(path) as stream:
            try:
                file = pq.ParquetFile(stream, pre_buffer=False)
                check_size(path, file.metadata, params.limits)
                names = _checked(path, file.schema_arrow)
                says_simulated = record_of(file.schema_arrow).get("is_simulated") is True
                for batch in file.iter_batches(BATCH_ROWS, columns=names):
                    table = pa.Table.from_batches([batch])
                    table.validate(full=True)
                    part = _in_our_types(path, table, says_simulated)
                    yield chunk_of(part, np.arange(first, first + len(part)), now, params.future_slack_s)
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
