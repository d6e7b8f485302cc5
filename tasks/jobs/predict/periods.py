"""History, training and test: a log split by time, as D1, D2 and D3 of the paper."""

from typing import Literal

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.predict.split_params import SplitParams

Period = Literal["D1", "D2", "D3"]
PERIODS: tuple[Period, ...] = ("D1", "D2", "D3")


def assign_periods(runs: pd.DataFrame, params: SplitParams) -> pd.Series:
    """D1 (history), D2 (training) or D3 (test) for each run, a categorical on the index of `runs`.

    runs: submitted_at, period. The periods of a recording are taken as they are if there are at least three, the
    first three in the order of their first submissions, later ones counting as D3; a run without one is given its
    place by its time. Otherwise the runs are split by submission, and runs submitted at the same moment stay together.
    Raises BadInput for fewer than three distinct times of submission. Source: Zhu et al. 2023, Table 1."""
    times = runs["submitted_at"]
    if params.use_periods and "period" in runs and runs["period"].nunique() >= len(PERIODS):
        starts = times.groupby(runs["period"]).min().sort_values(kind="stable")
        codes = np.searchsorted(starts.to_numpy()[: len(PERIODS)], times.to_numpy(), side="right") - 1
        codes = np.maximum(codes, 0)  # before the first period is history, too
        named = runs["period"].map({name: min(place, 2) for place, name in enumerate(starts.index)})
        codes = np.where(named.notna(), named.fillna(0), codes).astype(int)
    else:
        distinct = np.sort(times.unique())
        if len(distinct) < len(PERIODS):
            raise BadInput(
                "job log",
                f"runs of {len(distinct)} different times of submission",
                "at least three, for history, training and test",
                "give more of the log",
            )
        shares = np.array([params.history_share, params.history_share + params.training_share])
        at = np.sort(times.to_numpy())[np.minimum((shares * len(times)).astype(int), len(times) - 1)]
        # each period has at least one time of submission, however uneven the log
        first = min(max(int(np.searchsorted(distinct, at[0])), 1), len(distinct) - 2)
        second = min(max(int(np.searchsorted(distinct, at[1])), first + 1), len(distinct) - 1)
        codes = np.searchsorted(distinct[[first, second]], times.to_numpy(), side="right")
    return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(PERIODS)), index=runs.index, name="part")
