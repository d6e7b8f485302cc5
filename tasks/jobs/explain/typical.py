"""What is usual for a job and for all runs, to set a value beside."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from tasks.jobs.explain.against_job import MIN_RUNS

Whose = Literal["the job", "all runs"]
ALIKE = 0.1  # a tenth more or less is said to be as usual


@dataclass(frozen=True)
class Typical:
    """by_job: medians, a row a job of at least MIN_RUNS runs; overall: medians over the jobs' medians.

    is_within_job: a run is compared with its job only, also where its value is as usual there."""

    by_job: pd.DataFrame
    overall: pd.Series
    is_within_job: bool = False

    def beside(self, feature: str, value: float, job: str) -> tuple[float, Whose]:
        """The value to compare with: the job's usual one; that of all runs where the job's is unknown or the same."""
        own = float(self.by_job[feature].get(job, np.nan))
        if np.isnan(own) or (is_alike(value, own) and not self.is_within_job):
            return float(self.overall[feature]), "all runs"
        return own, "the job"


def typical_values(frame: pd.DataFrame, groups: Any) -> Typical:
    """Medians of features (n, p) by job and over all; groups: (n,). NaN where no run has the value.

    Each job counts once in the median over all, however often it ran; without such jobs it is that over runs."""
    grouped = frame.groupby(np.asarray(groups))
    by_job = grouped.median()[(grouped.size() >= MIN_RUNS).to_numpy()]
    return Typical(by_job, (by_job if len(by_job) else frame).median())


def is_alike(value: float, other: float) -> bool:
    """Whether two values differ by at most a tenth of the larger; two unknown ones are not alike."""
    return bool(abs(value - other) <= ALIKE * max(abs(value), abs(other)))
