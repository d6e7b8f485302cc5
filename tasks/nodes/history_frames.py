"""Tables of executions, metrics and telemetry as the frames of a History."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tasks.nodes.columns import EXECUTION_COLUMNS

FLAGS = tuple(name for name, (kind, _) in EXECUTION_COLUMNS.items() if pa.types.is_boolean(kind))
METRICS = {"execution": pa.int64(), "metric": pa.string(), "value": pa.float64(), "unit": pa.string()}
VALUES = pa.list_(pa.float64())
TELEMETRY = {"execution": pa.int64(), "metric": pa.string(), "unit": pa.string(), "at_s": VALUES, "samples": VALUES}


def executions_frame(executions: pa.Table, source: str) -> pd.DataFrame:
    """One row an execution: texts as str, flags as boolean, dose_level as Int64, missing_metrics as lists."""
    told = executions.drop_columns(["missing_metrics"])
    frame = told.to_pandas().astype({**dict.fromkeys(FLAGS, "boolean"), "dose_level": "Int64"})
    frame = frame.assign(started_at=_times(told["started_at"]), ended_at=_times(told["ended_at"]))
    texts = {name: "str" for name, (kind, _) in EXECUTION_COLUMNS.items() if pa.types.is_string(kind)}
    missing = _lists(executions["missing_metrics"])
    whole: pd.DataFrame = frame.astype(texts).assign(missing_metrics=missing, source=source)
    return whole


def metrics_frame(metrics: pa.Table) -> pd.DataFrame:
    """Columns execution, metric, value, unit, ordered by execution and metric."""
    frame: pd.DataFrame = _ordered(metrics, METRICS).to_pandas()
    return frame.astype({"metric": "str", "unit": "str", "value": "float64"})


def telemetry_frame(telemetry: pa.Table) -> pd.DataFrame:
    """Columns execution, metric, unit, at_s, samples (arrays), ordered by execution and metric."""
    frame: pd.DataFrame = _ordered(telemetry, TELEMETRY).to_pandas()
    return frame.astype({"metric": "str", "unit": "str"})


def numbered(parts: Sequence[tuple[pa.Table, pa.ChunkedArray, NDArray[np.int64]]], schema: pa.Schema) -> pa.Table:
    """The rows of several parts with the number of their execution; those of executions without a number left out.

    parts: rows with the place of their execution, the places of the part's executions, and the number of each of
    these in order, -1 for none."""
    found = []
    for rows, places, numbers in parts:
        if not len(rows):
            continue
        known = places.to_numpy()
        order = np.argsort(known, kind="stable")
        at = order[np.searchsorted(known[order], rows["place"].to_numpy())]
        execution = numbers[at]
        found.append(rows.append_column("execution", pa.array(execution)).filter(pa.array(execution >= 0)))
    empty = schema.empty_table().append_column("execution", pa.array([], pa.int64()))
    return pa.concat_tables([empty, *found])


def _ordered(rows: pa.Table, kinds: dict[str, pa.DataType]) -> pa.Table:
    told = pa.table({name: rows[name].cast(kind) for name, kind in kinds.items()})
    execution = told["execution"].to_numpy()
    if (np.diff(execution) > 0).all():  # one row each: in order
        return told
    return told.take(pc.sort_indices(told, [("execution", "ascending"), ("metric", "ascending")]))


def _times(column: pa.ChunkedArray) -> NDArray[np.datetime64]:
    return np.asarray(column.to_numpy(), dtype="datetime64[us]")


def _lists(column: pa.ChunkedArray) -> pd.Series:
    nothing: list[str] = []
    if column.null_count == len(column):
        return pd.Series([nothing] * len(column), dtype=object)
    return pd.Series([nothing if one is None else one for one in column.to_pylist()], dtype=object)
