"""Scores of several types on one scale, so that one threshold serves all."""

import numpy as np

from tasks.nodes.group_medians import SD_OF_MAD
from tasks.nodes.type_tables import Bools, Floats


def levelled(scores: Floats, is_normal: Bools) -> Floats:
    """Scores of one type by the median and the robust deviation of the normal training executions: (n,).

    scores: (n,), NaN where nothing could be said: these become 0, the middle of what is normal."""
    own = scores[is_normal & ~np.isnan(scores)]
    if not len(own):
        return np.nan_to_num(scores, nan=0.0)
    centre = np.median(own)
    spread = SD_OF_MAD * np.median(np.abs(own - centre))
    return np.nan_to_num((scores - centre) / (spread or 1.0), nan=0.0)


def power_mean(deviations: Floats, power: float, largest: float) -> Floats:
    """(mean_j |z_j|^p)^(1/p) over the metrics that are there: (n,), NaN without any. deviations: (n, m)."""
    is_there = ~np.isnan(deviations)
    cut = np.where(is_there, np.minimum(np.abs(deviations), largest), 0.0)
    n_there = is_there.sum(axis=1)
    total = (cut**power).sum(axis=1)
    mean = np.divide(total, n_there, out=np.full(len(deviations), np.nan), where=n_there > 0)
    return np.asarray(mean ** (1 / power))
