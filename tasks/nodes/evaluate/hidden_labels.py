"""A history without what is known of stress: what learns cannot look at what it is not told."""

from dataclasses import replace

import numpy as np
import pandas as pd

from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.history import History
from tasks.nodes.type_tables import Bools

CLAIMS, LABELS = ("is_stressed", "stress_wanted"), ("dose", "dose_level")


def blinded(history: History, is_seen: Bools) -> History:
    """The history without what is known of stress where the mask (n_executions,) is false."""
    executions = history.executions
    seen = pd.Series(is_seen, index=executions.index)
    hidden = {name: executions[name].where(seen) for name in LABELS if name in executions.columns}
    hidden |= {name: executions[name].astype("boolean").where(seen) for name in CLAIMS if name in executions.columns}
    return replace(history, executions=executions.assign(**hidden))


def as_told(history: History, params: EvaluateParams) -> History:
    """What learns and chooses thresholds is told: everything, or nothing of stress (params.without_labels)."""
    return blinded(history, np.zeros(len(history.executions), dtype=bool)) if params.without_labels else history
