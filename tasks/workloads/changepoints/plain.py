"""Plain Bayesian online change point detection (Adams and MacKay 2007): levels only, values as they are.

The textbook model that ours is held against, and the one whose run lengths are the same as bayescd's."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from tasks.workloads.changepoints.online import Tables, filter_run_lengths
from tasks.workloads.changepoints.params import ChangePointParams, PriorParams
from tasks.workloads.changepoints.predictive import predictive_tables
from tasks.workloads.changepoints.standardise import checked

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# van den Burg and Williams 2020, default setting of BOCPD: lambda 100, a = b = kappa = 1, series scaled, MAP
PLAIN_RUN_LENGTH = 100
PLAIN_PRIOR = PriorParams(mean=0, kappa=1, alpha=1, noise=1, trend_share=0)
PLAIN = ChangePointParams(
    expected_run_length=PLAIN_RUN_LENGTH,
    prior=PLAIN_PRIOR,
    outlier_deviations=0,
    min_segment=1,
)


def plain_run_lengths(values: ArrayLike, params: ChangePointParams = PLAIN) -> Ints:
    """The most probable run length after each sample, of each counter on its own. values: (n, d), none missing.

    Values are taken as they are: params.scale and params.outlier_deviations are not used."""
    table = checked(values)
    expected = params.expected_run_length or PLAIN_RUN_LENGTH
    hazard = np.log([1 / expected, 1 - 1 / expected])
    tables = predictive_tables(params.prior or PLAIN_PRIOR, len(table)).arrays()
    return _of_each(table, tables, hazard, params.min_segment, params.prune_nats, params.max_run_lengths)


@njit(cache=True)
def _of_each(table: Floats, tables: Tables, hazard: Floats, min_segment: int, nats: float, cap: int) -> Ints:
    n, d = table.shape
    lengths = np.empty((n, d), np.int64)
    for counter in range(d):
        column = np.ascontiguousarray(table[:, counter : counter + 1])
        _, _, offsets, starts, kept, _, _ = filter_run_lengths(column, tables, hazard, min_segment, nats, cap)
        for t in range(n):
            low = offsets[t]
            lengths[t, counter] = t - starts[low + kept[low : offsets[t + 1]].argmax()] + 1
    return lengths
