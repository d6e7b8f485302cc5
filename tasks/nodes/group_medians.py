"""Medians and spreads of the rows of each group, missing values aside."""

import numpy as np
import pandas as pd

from tasks.nodes.type_tables import Floats, Ints

SD_OF_MAD = 1.4826  # of a normal distribution: deviation over median absolute deviation
SD_OF_MEAN = 1.2533  # and over mean absolute deviation, where more than half the values are the median itself


def group_medians(values: Floats, groups: Ints, n_groups: int) -> Floats:
    """Median of each column in each group: (n_groups, m); NaN without a value. values: (n, m). groups: (n,)."""
    found = pd.DataFrame(values).groupby(groups).median().reindex(range(n_groups))
    return found.to_numpy(dtype=np.float64)


def robust_deviation(values: Floats) -> Floats:
    """Each column's robust standard deviation, from its median absolute deviation: (m,). values: (n, m).

    Where that is 0, as more than half the values are alike, from the mean one. NaN for a column without values."""
    frame = pd.DataFrame(values)
    return _deviation(frame - frame.median())


def within_deviation(values: Floats, groups: Ints, n_groups: int) -> Floats:
    """The robust deviation of each column around the medians of the groups, all groups together: (m,).

    A group of one row lies on its own median and says nothing of the spread: it is left out."""
    sizes = np.bincount(groups, minlength=n_groups)
    apart = values - group_medians(values, groups, n_groups)[groups]
    return _deviation(pd.DataFrame(apart[sizes[groups] > 1]))


def _deviation(apart: pd.DataFrame) -> Floats:
    size = apart.abs()
    median = SD_OF_MAD * size.median().to_numpy(dtype=np.float64)
    mean = SD_OF_MEAN * size.mean().to_numpy(dtype=np.float64)
    return np.asarray(np.where(median == 0, mean, median))
