"""Table 2 of the paper, read off the shapes of a trained model."""

import numpy as np
import pandas as pd

from tasks.jobs.pmf import quantiles
from tasks.jobs.shapes import ShapeSet

LEVELS = (0.25, 0.75, 0.95)


def shape_table(shapes: ShapeSet) -> pd.DataFrame:
    """One row a shape: outlier_percent (share of its open upper bin), p25_p75 and p95, to the width of a bin.

    A quantile among the outliers is the end of the bins: at least so much. The deviation is left out: of an open bin
    it cannot be told."""
    p25, p75, p95 = quantiles(shapes.centres, shapes.bins, LEVELS).T
    return pd.DataFrame({"outlier_percent": 100 * np.asarray(shapes.centres)[:, -1], "p25_p75": p75 - p25, "p95": p95})
