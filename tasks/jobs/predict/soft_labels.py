"""Labels as sure as they are: each row once for every shape that its job may have, weighted by its probability."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from tasks.errors import BadInput
from tasks.jobs.pmf import Floats
from tasks.jobs.shapes import Labels


def soften(
    frame: pd.DataFrame, labels: Labels, posteriors: ArrayLike, weights: Floats | None, *, least: float
) -> tuple[pd.DataFrame, Labels, Floats]:
    """Rows, labels and weights for a classifier that takes one label a row: (m, p), (m,), (m,) with m >= n.

    labels: (n,), none missing; posteriors: (n, k), of which those below `least` count as 0. A row whose posterior is
    all missing keeps its label. A label from ten runs is often a coin toss between two shapes; learnt as certain, it
    is what a classifier learns by heart. Raises BadInput if sizes differ."""
    p = np.array(posteriors, dtype=float)
    if p.ndim != 2 or len(p) != len(labels) or (len(labels) and labels.max() >= p.shape[1]):
        raise BadInput("posteriors", f"shape {p.shape}", f"one row for each of the {len(labels)} rows, and all shapes")
    p[~(p >= least)] = 0.0  # missing, too
    is_unknown = p.sum(axis=1) == 0
    p[is_unknown, labels[is_unknown]] = 1.0
    p /= p.sum(axis=1, keepdims=True)
    rows, shapes = np.nonzero(p)
    shares = p[rows, shapes]
    return frame.iloc[rows], shapes, shares if weights is None else shares * weights[rows]
