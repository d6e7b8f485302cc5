"""What a reader finds in a file: runs as they were sampled, before spacing, totals and gaps are seen to."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.workloads.telemetry import Conditions, Counter, FloatArray


@dataclass(frozen=True)
class Sampled:
    """One run as the file has it.

    part: what tells the run from others of the file, "" where there is one; is_id: part is the run's whole id.
    labels: those of workload, input, round and machine that the file gives.
    at_s: shape (n_samples,), seconds after started_at, in any order. values: (n_samples, n_counters), NaN: missing.
    is_total: (n_counters,), true for running totals, which are not rates yet.
    places: (n_rows,), the rows of the file from 1; sample_of: (n_rows,), the sample that each row is of.
    running_pct: (n_counters,), share of the time that perf counted, NaN elsewhere. refused: columns with reasons."""

    counters: tuple[Counter, ...]
    at_s: FloatArray
    values: FloatArray
    is_total: NDArray[np.bool_]
    places: NDArray[np.int64]
    sample_of: NDArray[np.int64]
    running_pct: FloatArray
    part: str = ""
    is_id: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    started_at: datetime | None = None
    refused: tuple[str, ...] = ()
    is_simulated: bool = False
    conditions: Conditions | None = None


@dataclass(frozen=True)
class Reading:
    """One file: its runs, and the rows that were refused (place, reason, raw); understood: of its columns, in words."""

    runs: list[Sampled]
    refused: pd.DataFrame
    understood: tuple[str, ...] = ()


def one_row_a_sample(counters: tuple[Counter, ...], at_s: FloatArray, values: FloatArray, **more: Any) -> Sampled:
    """A run of a table in which each sample is one row; `places` must be among the keywords."""
    n_samples, n_counters = values.shape
    given: dict[str, Any] = {
        "is_total": np.zeros(n_counters, dtype=bool),
        "sample_of": np.arange(n_samples, dtype=np.int64),
        "running_pct": np.full(n_counters, np.nan),
    }
    return Sampled(counters, at_s, values, **(given | more))
