"""Values that stand one by one or in several rows a sample, put side by side: samples by counters."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.sampled import Sampled
from tasks.workloads.telemetry import Counter, FloatArray


def side_by_side(
    counters: tuple[Counter, ...],
    at_s: FloatArray,
    places: NDArray[np.int64],
    cells: tuple[NDArray[np.int64], NDArray[np.int64], FloatArray],
    *,
    n_units: NDArray[np.int64] | None = None,
    **more: Any,
) -> Sampled:
    """A run from rows, each of which holds one or more values of one time.

    at_s, places: (n_rows,), time and number of each row. cells: row, counter and value of each value (n_values,).
    Values of one time and counter are added up; where fewer than n_units (n_counters,) of them stand, or one of them
    is NaN, the sum is missing. Values that must not be added up must not stand twice."""
    times, sample_of = np.unique(at_s, return_inverse=True)
    rows, columns, given = cells
    shape = (len(times), len(counters))
    values, n_given = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    np.add.at(values, (sample_of[rows], columns), given)
    np.add.at(n_given, (sample_of[rows], columns), 1)
    needed = np.ones(len(counters), dtype=np.int64) if n_units is None else n_units
    values[n_given < needed] = np.nan
    defaults: dict[str, Any] = {
        "is_total": np.zeros(len(counters), dtype=bool),
        "running_pct": np.full(len(counters), np.nan),
    }
    return Sampled(counters, times, values, places=places, sample_of=sample_of.astype(np.int64), **(defaults | more))
