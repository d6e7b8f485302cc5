"""Executions of benchmarks with their metrics, in memory: what preprocessing, ranking and detection work on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tasks.nodes.execution import EXECUTION_COLUMNS

FLAGS = tuple(name for name, (kind, _) in EXECUTION_COLUMNS.items() if pa.types.is_boolean(kind))
METRICS = {"execution": pa.int64(), "metric": pa.string(), "value": pa.float64(), "unit": pa.string()}
VALUES = pa.list_(pa.float64())
TELEMETRY = {"execution": pa.int64(), "metric": pa.string(), "unit": pa.string(), "at_s": VALUES, "samples": VALUES}


@dataclass(frozen=True)
class History:
    """Executions in time order, with what they measured.

    executions: one row an execution, RangeIndex, ordered by started_at, then execution_id; the columns of
    nodes.executions. metrics: columns execution (int64, row number in `executions`), metric, value (float64, never
    missing) and unit (as the tool wrote it). telemetry: columns execution, metric, unit, at_s and samples (arrays;
    at_s in seconds after the start of the benchmark, negative before it); may be empty."""

    executions: pd.DataFrame
    metrics: pd.DataFrame
    telemetry: pd.DataFrame

    def where(self, is_kept: np.ndarray) -> "History":
        """The executions for which the mask (n_executions,) is true, renumbered, with their metrics and telemetry."""
        numbers = np.cumsum(is_kept) - 1
        return History(
            self.executions[is_kept].reset_index(drop=True),
            _renumbered(self.metrics, is_kept, numbers),
            _renumbered(self.telemetry, is_kept, numbers),
        )


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


def emulated_nodes(history: History) -> frozenset[str]:
    """The nodes of which some execution says that they are emulated."""
    is_emulated = history.executions["is_emulated"].astype("boolean").fillna(False).astype(bool)
    return frozenset(str(node) for node in history.executions.loc[is_emulated, "node"].unique())


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


def _renumbered(rows: pd.DataFrame, is_kept: np.ndarray, numbers: np.ndarray) -> pd.DataFrame:
    execution = rows["execution"].to_numpy(dtype=np.int64)
    kept = is_kept[execution]
    renumbered: pd.DataFrame = rows[kept].assign(execution=numbers[execution[kept]])
    return renumbered.reset_index(drop=True)


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
