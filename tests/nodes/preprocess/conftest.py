"""Small histories written by hand."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.history import History
from tests.nodes.synthetic import no_telemetry

Value = float | tuple[float, str]


@pytest.fixture(scope="session")
def history_of() -> Callable[..., History]:
    """A function that makes a history of executions: for each its metrics, a value or (value, unit) by name.

    benchmark, template_hash, is_stressed, duration_s: of all, or a list with one for each."""

    def make(
        measured: Sequence[Mapping[str, Value]],
        *,
        benchmark: str | Sequence[str] = "own-tool",
        template_hash: str | Sequence[str] = "",
        is_stressed: Any = None,
        duration_s: Any = 2.0,
    ) -> History:
        n_executions = len(measured)
        executions = pd.DataFrame(
            {
                "execution_id": [f"{at:05}" for at in range(n_executions)],
                "node": "a",
                "machine_type": None,
                "aspect": "cpu",
                "benchmark": pd.Series(benchmark, index=range(n_executions), dtype=object),
                "template_hash": pd.Series(template_hash, index=range(n_executions), dtype=object),
                "started_at": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n_executions), unit="min"),
                "duration_s": pd.Series(duration_s, index=range(n_executions), dtype=float),
                "status": "completed",
                "is_stressed": pd.Series(is_stressed, index=range(n_executions), dtype=object),
            }
        )
        rows = [
            (at, metric, *(told if isinstance(told, tuple) else (told, "")))
            for at, metrics in enumerate(measured)
            for metric, told in metrics.items()
        ]
        metrics = pd.DataFrame(rows, columns=["execution", "metric", "value", "unit"])
        metrics = metrics.astype({"execution": "int64", "metric": "str", "value": "float64", "unit": "str"})
        return History(executions, metrics, no_telemetry())

    return make
