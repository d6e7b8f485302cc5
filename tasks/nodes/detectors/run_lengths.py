"""The one place where nodes use the change points of workloads."""

import numpy as np

from tasks.nodes.type_tables import Floats
from tasks.workloads.changepoints.finding import find_changepoints
from tasks.workloads.changepoints.params import ChangePointParams, PriorParams


def recent_change(series: Floats, expected_run_length: float, recent: int) -> Floats:
    """Probability, after each sample, that a segment began within the last `recent` samples, the first aside: (n,).

    series: (n,) in deviations of its noise, NaN where nothing was measured; such samples are given 0. The filtered
    run-length posterior: later samples change nothing, neither do lines, scales or outliers of the whole series, which
    are switched off. Source: Adams & MacKay 2007."""
    params = ChangePointParams(
        expected_run_length=expected_run_length,
        prior=PriorParams(noise=1.0, trend_share=0.0),
        scale="none",
        outlier_deviations=0.0,
    )
    found = np.zeros(len(series))
    posterior = find_changepoints(series, params).run_lengths
    if posterior is None:
        return found
    for at, row in enumerate(posterior.rows):
        part = slice(posterior.offsets[at], posterior.offsets[at + 1])
        starts = posterior.starts[part]
        is_recent = (starts > posterior.rows[0]) & (row - starts < recent)
        found[row] = posterior.probabilities[part][is_recent].sum()
    return found
