"""The time that the next run stays under with 50, 90, 95 or 99 %: what to set a time limit to."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.distribution import Predicted
from tasks.jobs.outlook.params import OutlookParams


def time_limits(predicted: Predicted, keys: Sequence[str], params: OutlookParams) -> pd.DataFrame:
    """Predicted time limits, one row an instance in the given order: group_key and `under_<percent>_s` by level.

    keys: (n,) group keys. Seconds, rising with the level within a row: the smallest time that a run stays at or under
    with that probability. Unlike `exceedance.bound` they take the prediction as it is, without the one step further
    out that few past runs ask for. Raises BadInput if keys are not one an instance."""
    if len(keys) != predicted.n:
        raise BadInput("keys", f"{len(keys)} of them", f"one for each of the {predicted.n} instances")
    levels = sorted(set(params.levels))
    asked = np.broadcast_to(levels, (predicted.n, len(levels)))
    times = predicted.quantile(asked) if predicted.n else np.zeros((0, len(levels)))
    times = np.maximum.accumulate(times, axis=1)  # quantiles of a mixture are found to 1e-8 only
    limits = pd.DataFrame(times, columns=[level_column("under", level) for level in levels])
    limits.insert(0, "group_key", np.asarray(keys, dtype=object))
    return limits


def level_column(name: str, level: float) -> str:
    """under_95_s for "under" and 0.95, left_99.9_s for "left" and 0.999."""
    return f"{name}_{100 * level:.10g}_s"
