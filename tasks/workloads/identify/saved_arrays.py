"""Named arrays in one Parquet file, to the last bit."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.workloads.telemetry import FloatArray

SCHEMA = pa.schema([("name", pa.string()), ("shape", pa.list_(pa.int64())), ("values", pa.list_(pa.float64()))])


def write_arrays(file: Path, arrays: Mapping[str, FloatArray]) -> None:
    """One row an array, by name."""
    rows = [
        {"name": name, "shape": list(array.shape), "values": np.asarray(array, dtype=float).ravel()}
        for name, array in sorted(arrays.items())
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), file, compression="zstd")


def read_arrays(file: Path) -> dict[str, FloatArray]:
    """What write_arrays wrote. Raises ValueError for a file that holds something else."""
    table = pq.read_table(file)
    if not table.schema.equals(SCHEMA):
        raise ValueError(f"{file.name} has the columns {', '.join(table.column_names)}")
    found = {}
    for row in range(table.num_rows):
        values = np.array(table["values"][row].values.to_numpy(zero_copy_only=False), dtype=float)
        found[str(table["name"][row])] = values.reshape(table["shape"][row].as_py())
    return found
