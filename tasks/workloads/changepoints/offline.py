"""The offline methods of ruptures behind the interface of find_changepoints: PELT, kernel, binary segmentation."""

from __future__ import annotations

from typing import Any

import numpy as np
import ruptures
from numpy.typing import NDArray

from tasks.workloads.changepoints.found import ChangePoints
from tasks.workloads.changepoints.params import ChangePointParams

Floats = NDArray[np.float64]


def find_offline(ready: Floats, params: ChangePointParams) -> ChangePoints:
    """The change points of a scaled series: means (PELT, binary segmentation) or distributions (kernel) differ.

    ready: (n, d), NaN where missing; a row counts if all its counters are there. They are found with a penalty of
    params.penalty log n for each change and counter; none has a probability."""
    rows = np.flatnonzero(~np.isnan(ready).any(axis=1))
    changes: list[int] = []
    if len(rows) >= 2 * params.min_segment and len(rows) > 1:
        samples = ready[rows]
        penalty = params.penalty * np.log(len(rows))
        if params.method != "kernel":  # the kernel sums over counters within one bounded similarity
            penalty *= ready.shape[1]
        changes = _detector(params).fit(samples).predict(pen=penalty)[:-1]
    indices = rows[np.array(changes, dtype=np.int64)]
    return ChangePoints(len(ready), indices, np.full(len(indices), np.nan), np.zeros(0), float("nan"), None)


def _detector(params: ChangePointParams) -> Any:
    if params.method == "pelt":
        return ruptures.Pelt(model="l2", min_size=params.min_segment, jump=1)
    if params.method == "kernel":
        return ruptures.KernelCPD(kernel="rbf", min_size=params.min_segment)
    return ruptures.Binseg(model="l2", min_size=params.min_segment, jump=1)
