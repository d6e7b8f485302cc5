"""whorl's own job log as Parquet: batches of rows, never a whole row group more than needed."""

import json
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import BadInput
from tasks.jobs.columns import LIST_COLUMNS
from tasks.jobs.readers.own_batch import Batch
from tasks.jobs.readers.own_columns import choose_columns
from tasks.jobs.readers.own_values import check_type
from tasks.read_limits import ReadLimits
from tasks.reading import PARQUET_FAULTS, damaged_parquet, no_refusals, open_plain

MAGIC = b"PAR1"
BATCH_ROWS = 65_536
LIST_BATCH_ROWS = 8_192  # where rows hold lists, of any length
LARGE_COLUMN_BYTES = 256 * 2**20  # a column of a row group that unpacks to more must not have shrunk too far


def parquet_batches(path: str, renamed: Mapping[str, str], limits: ReadLimits) -> Iterator[Batch]:
    """Batches of 65,536 rows, 8,192 where they hold lists.

    Raises BadInput for a damaged file, missing columns, wrong types and bombs."""
    with open_plain(path) as stream:
        try:
            yield from _batches(path, pq.ParquetFile(stream, pre_buffer=False), renamed, limits)
        except PARQUET_FAULTS as error:
            raise damaged_parquet(path, error) from error


def _batches(path: str, file: pq.ParquetFile, renamed: Mapping[str, str], limits: ReadLimits) -> Iterator[Batch]:
    schema, first = file.schema_arrow, 1
    chosen = choose_columns(path, schema.names, renamed)
    for ours, theirs in chosen.items():
        check_type(path, ours, theirs, schema.field(theirs).type)
    _check_size(path, file.metadata, limits)
    if not file.metadata.num_rows:
        raise BadInput(path, "no row in it", "at least one run", "export it again")
    n_rows = min(BATCH_ROWS, LIST_BATCH_ROWS) if set(LIST_COLUMNS) & set(chosen) else BATCH_ROWS
    for batch in file.iter_batches(n_rows, columns=list(chosen.values())):
        table = pa.Table.from_batches([batch]).select(list(chosen.values()))
        table.validate(full=True)  # text that is not UTF-8
        places = np.arange(first, first + table.num_rows)
        yield Batch(places, table.rename_columns(list(chosen)), no_refusals(), _row_at(table))
        first += table.num_rows


def _check_size(path: str, metadata: pq.FileMetaData, limits: ReadLimits) -> None:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if sum(group.total_byte_size for group in groups) > limits.max_bytes:
        raise BadInput(
            path,
            f"more than {limits.max_bytes:,} bytes unpacked",
            "a smaller file",
            "split it, or raise read.limits.max_bytes",
        )
    columns = (group.column(number) for group in groups for number in range(group.num_columns))
    for column in columns:
        n_bytes = column.total_uncompressed_size
        if n_bytes > LARGE_COLUMN_BYTES and n_bytes > limits.max_ratio * column.total_compressed_size:
            raise BadInput(
                path,
                f"column '{column.path_in_schema}' unpacks to more than {limits.max_ratio:g} times its size",
                "an ordinary log",
                "look at it by hand, or raise read.limits.max_ratio",
            )


def _row_at(table: pa.Table) -> Callable[[int], str]:
    """The row at a position as JSON."""

    def text(row: int) -> str:
        return json.dumps(
            {name: _value(table[name][row]) for name in table.column_names}, ensure_ascii=False, default=str
        )

    return text


def _value(scalar: pa.Scalar) -> object:
    """A value for JSON; times as text, or as what the file holds if no calendar has them."""
    try:
        value = scalar.as_py()
    except (OverflowError, ValueError):
        return _beyond_python(scalar)
    return value if value is None or isinstance(value, bool | int | float | str | list | dict) else str(value)


def _beyond_python(scalar: pa.Scalar) -> object:
    if isinstance(scalar, pa.ListScalar | pa.LargeListScalar | pa.FixedSizeListScalar):
        return [_value(one) for one in scalar.values]
    if isinstance(scalar, pa.StructScalar):
        return {name: _value(scalar[name]) for name in scalar}
    return f"{getattr(scalar, 'value', 'a value')} {scalar.type}"
