"""What the earlier runs of a job say of a run: the prediction where no model was trained."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tasks.jobs.empirical import Empirical, gather_history
from tasks.warehouse.connection import Connection

EARLIER = Path(__file__).with_name("watch_history.sql")
MOST_RUNS = 500  # the latest that stand for a job
ROUNDING = 1e-9  # 1 / (1 - 0.95) is a little more than 20 in binary


@dataclass(frozen=True)
class Earlier:
    """at: (n,) places of the runs that have enough earlier runs; n_history: (n,) how many; predicted: of these n."""

    at: list[int]
    n_history: list[int]
    predicted: Empirical | None


def fetch_earlier(connection: Connection, source: str, keys: Sequence[str], statuses: Sequence[str]) -> pd.DataFrame:
    """Finished runs of these jobs with one of these statuses: group_key, ended_at, runtime_s, by job and end."""
    asked = {"source": source, "group_keys": sorted(set(keys)), "statuses": list(statuses)}
    return connection.execute(EARLIER.read_text(), asked).df()


def predict_by_history(runs: pd.DataFrame, earlier: pd.DataFrame, level: float) -> Earlier:
    """The runtimes of the job's own runs that had ended before each run was submitted, the last MOST_RUNS of them.

    runs: group_key, submitted_at; earlier: of fetch_earlier. Left out is a run with fewer than 1 / (1 - level) earlier
    ones: that many are needed before one of them can stand for the time that is exceeded with 1 - level."""
    n_needed = math.ceil(1 / (1 - level) - ROUNDING)
    jobs = {
        str(key): (of_job["ended_at"].to_numpy(), of_job["runtime_s"].to_numpy(dtype=float))
        for key, of_job in earlier.groupby("group_key", sort=False)
    }
    at: list[int] = []
    found = []
    for row, (key, submitted_at) in enumerate(zip(runs["group_key"], runs["submitted_at"].to_numpy(), strict=True)):
        if key in jobs:
            ended_at, runtime_s = jobs[key]
            n_known = int(np.searchsorted(ended_at, submitted_at))  # strictly before
            if n_known >= n_needed:
                at.append(row)
                found.append(runtime_s[max(0, n_known - MOST_RUNS) : n_known])
    if not found:
        return Earlier([], [], None)
    sizes = [len(values) for values in found]
    history = gather_history(np.concatenate(found), np.repeat(np.arange(len(found)), sizes))
    return Earlier(at, sizes, Empirical(history, np.arange(len(found))))
