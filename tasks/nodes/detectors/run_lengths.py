"""The one place where nodes use the change points of workloads."""

import numpy as np
from numba import njit

from tasks.nodes.type_tables import Floats, Ints
from tasks.workloads.changepoints.online import filter_run_lengths
from tasks.workloads.changepoints.params import ChangePointParams, PriorParams
from tasks.workloads.changepoints.predictive import predictive_tables
from tasks.workloads.changepoints.standardise import checked

PRIOR = PriorParams(noise=1.0, trend_share=0.0)
LIMITS = ChangePointParams()  # of run lengths that are kept


def recent_change(series: Floats, expected_run_length: float, recent: int) -> Floats:
    """Probability, after each sample, that a segment began within the last `recent` samples, the first aside: (n,).

    series: (n,) in deviations of its noise, NaN where nothing was measured; such samples are given 0. The filtered
    run-length posterior: later samples change nothing. Lines, scales and outliers of a whole series, which
    find_changepoints heeds, are none here, nor is anything looked at from its end. Raises BadInput for infinite values.
    Source: Adams & MacKay 2007."""
    found = np.zeros(len(series))
    rows = np.flatnonzero(~np.isnan(series))
    if not len(rows):
        return found
    hazard = 1 / expected_run_length
    _, _, offsets, starts, probabilities, _, _ = filter_run_lengths(
        checked(series)[rows],
        predictive_tables(PRIOR, len(rows)).arrays(),
        np.log([hazard, 1 - hazard]),
        LIMITS.min_segment,
        LIMITS.prune_nats,
        LIMITS.max_run_lengths,
    )
    found[rows] = _of_recent(rows, offsets, starts, probabilities, recent)
    return found


@njit(cache=True)
def _of_recent(rows: Ints, offsets: Ints, starts: Ints, probabilities: Floats, recent: int) -> Floats:
    """What of each sample's posterior lies in segments that began in the last rows: (k,). rows: (k,) of the samples."""
    found = np.zeros(len(rows))
    for at in range(len(rows)):
        for entry in range(offsets[at], offsets[at + 1]):
            if starts[entry] > 0 and rows[at] - rows[starts[entry]] < recent:
                found[at] += probabilities[entry]
    return found
