"""The first principal component as a score of nodes: the plain baseline that looks at all metrics alike."""

from dataclasses import dataclass

import numpy as np

from tasks.nodes.group_medians import robust_deviation
from tasks.nodes.type_tables import Floats


@dataclass(frozen=True)
class FirstComponent:
    """centre, scale: (m,) medians and robust deviations of the training nodes. loadings: (m,) of length 1, their sum
    not negative: more of an oriented metric is better. share: of the variance."""

    centre: Floats
    scale: Floats
    loadings: Floats
    share: float

    def score(self, values: Floats) -> Floats:
        """Place of each row on the component: (n,). values: (n, m) oriented; what is missing counts as the centre."""
        return np.asarray(_ready(values, self.centre, self.scale) @ self.loadings)


LIMIT = 5.0  # robust deviations at which a value is cut: one odd node must not be the component


def fit_first_component(values: Floats) -> FirstComponent:
    """The direction in which the rows differ most, each column by its median and robust deviation.

    values: (n, m) oriented so that more is better, NaN where missing; columns without spread have loading 0. Raises
    ValueError if there is no column with spread."""
    centre = np.array([_median(column) for column in values.T])
    scale = robust_deviation(values)
    scale = np.where(np.isnan(scale), 0.0, scale)
    if not (scale > 0).any():
        raise ValueError(f"{values.shape[1]} metrics of {len(values)} nodes, none of which varies")
    ready = _ready(values, centre, scale)
    ready = ready - ready.mean(axis=0)
    _, strengths, directions = np.linalg.svd(ready, full_matrices=False)
    loadings = directions[0]
    # orientation fixes the sign, which a singular vector does not have; a sum of 0 is left to its first column
    sign = np.sign(loadings.sum()) or np.sign(loadings[np.flatnonzero(loadings)[0]])
    return FirstComponent(centre, scale, loadings * sign, float(strengths[0] ** 2 / (strengths**2).sum()))


def _median(column: Floats) -> float:
    own = column[~np.isnan(column)]
    return float(np.median(own)) if len(own) else 0.0


def _ready(values: Floats, centre: Floats, scale: Floats) -> Floats:
    apart = np.divide(values - centre, scale, out=np.zeros_like(values), where=scale > 0)
    return np.asarray(np.clip(np.nan_to_num(apart, nan=0.0), -LIMIT, LIMIT))
