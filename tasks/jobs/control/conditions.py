"""Under which conditions the changed runs really ran, beside those that the change assumes."""

import numpy as np
import pandas as pd

from tasks.jobs.control.edits import changed_columns
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.predict.feature_words import feature_of
from tasks.quantities import digits

COLUMNS = ["feature", "is_changed", "assumed", "met", "distance"]
MOST_NAMED = 3


def unlike_conditions(
    before: pd.DataFrame, after: pd.DataFrame, met: pd.DataFrame, training: pd.DataFrame, params: WhatIfParams
) -> pd.DataFrame:
    """Environment features whose mean over the changed runs of the pairs is not what the change assumes.

    before, after: features of the baselines, as they are and with the change made; met: those of the changed runs, row
    by row; training: gives the deviation of each feature. Named is what lies at least params.companion_sds of them
    apart. Columns: feature, is_changed (by the change), assumed, met, distance (above 0 if larger in the changed runs);
    the largest first."""
    changed = changed_columns(before, after)
    rows = []
    for name in [str(name) for name in after if feature_of(str(name)).kind == "environment"]:
        both = after[name].notna() & met[name].notna()
        sd = float(training[name].std())
        if not both.any() or not sd > 0:
            continue
        assumed, found = float(after.loc[both, name].mean()), float(met.loc[both, name].mean())
        distance = (found - assumed) / sd
        if abs(distance) >= params.companion_sds:
            rows.append((name, name in changed, assumed, found, distance))
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.sort_values("distance", key=np.abs, ascending=False, kind="stable", ignore_index=True)


def describe_conditions(table: pd.DataFrame) -> list[str]:
    """The features that are furthest from what the change assumes, in sentences."""
    return [_sentence(row) for _, row in table.head(MOST_NAMED).iterrows()]


def _sentence(row: pd.Series) -> str:
    assumes = "the change asks for" if row["is_changed"] else "the change leaves it at"
    return (
        f"The runs that were done again met another {row['feature']}: {digits(row['met'])} on average, where {assumes} "
        f"{digits(row['assumed'])}; what was measured holds the effect of both."
    )
