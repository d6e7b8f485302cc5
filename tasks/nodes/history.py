"""Executions of benchmarks with their metrics, in memory: what preprocessing, ranking and detection work on."""

from dataclasses import dataclass

import numpy as np
import pandas as pd


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


def _renumbered(rows: pd.DataFrame, is_kept: np.ndarray, numbers: np.ndarray) -> pd.DataFrame:
    execution = rows["execution"].to_numpy(dtype=np.int64)
    kept = is_kept[execution]
    renumbered: pd.DataFrame = rows[kept].assign(execution=numbers[execution[kept]])
    return renumbered.reset_index(drop=True)
