"""The runs of each job before and since a moment, and the stretches of time that they fall into."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.jobs.distribution import Floats
from tasks.jobs.outlook.params import DriftParams

DAY_S = 86_400.0
RESOLUTION = 10  # the smallest possible p-value is at most this part of the false discovery rate
NEEDED = ("group_key", "submitted_at", "runtime_s")


@dataclass(frozen=True)
class Sides:
    """The runs of one job, by submission: runtime_s, is_after (since the moment), stretch (of time): (n,) each."""

    group_key: str
    runtime_s: Floats
    is_after: NDArray[np.bool_]
    stretch: NDArray[np.int64]

    @property
    def before(self) -> Floats:
        """Runtimes before the moment."""
        return self.runtime_s[~self.is_after]

    @property
    def after(self) -> Floats:
        """Runtimes since the moment."""
        return self.runtime_s[self.is_after]

    @property
    def n_stretches(self) -> tuple[int, int]:
        """How many stretches the runs before and the runs since are of."""
        before, after = (len(np.unique(self.stretch[side])) for side in (~self.is_after, self.is_after))
        return before, after

    @property
    def n_deals(self) -> int:
        """In how many ways the stretches can be dealt: the p-value of a change is 1 / n_deals at least."""
        before, after = self.n_stretches
        return math.comb(before + after, after)


def split_runs(
    runs: pd.DataFrame, params: DriftParams, *, since_at: pd.Timestamp | None = None
) -> tuple[pd.Timestamp | None, list[Sides], int]:
    """The moment, the jobs that can be compared, by key, and how many have too few runs. As in `drift.find_drift`.

    Too few are also runs in so few stretches that not even the clearest change could be told from luck."""
    if missing := [name for name in NEEDED if name not in runs]:
        raise BadInput("runs", f"no column {', '.join(missing)}", f"a frame with {', '.join(NEEDED)}")
    is_there = np.isfinite(runs["runtime_s"].to_numpy(dtype=np.float64, na_value=np.nan))
    runs = runs.loc[is_there, list(NEEDED)].dropna(subset=["group_key", "submitted_at"])
    if runs.empty:
        return since_at, [], 0
    moment = since_at
    if moment is None:
        moment = runs["submitted_at"].max() - pd.Timedelta(days=params.since_days)
    begin = moment - pd.Timedelta(days=params.before_days)
    runs = runs[runs["submitted_at"] >= begin].sort_values(["group_key", "submitted_at", "runtime_s"])
    stretch = _stretches(runs["submitted_at"], moment, params)
    times, (codes, keys) = runs["runtime_s"].to_numpy(dtype=np.float64), pd.factorize(runs["group_key"])
    ends = np.cumsum(np.bincount(codes, minlength=len(keys)))
    firsts = np.searchsorted(codes, np.arange(len(keys)))
    is_after = (runs["submitted_at"] >= moment).to_numpy()
    sides = []
    for key, first, end in zip(keys, firsts, ends, strict=True):
        middle = first + int((~is_after[first:end]).sum())
        if middle - first >= params.min_before and end - middle >= params.min_after:
            chosen = slice(max(first, middle - params.max_runs), middle), slice(max(middle, end - params.max_runs), end)
            found = [np.concatenate([array[part] for part in chosen]) for array in (times, is_after, stretch)]
            one = Sides(str(key), found[0], found[1], found[2])
            if one.n_deals >= RESOLUTION / params.false_discovery_rate:
                sides.append(one)
    return moment, sides, len(keys) - len(sides)


def _stretches(submitted_at: pd.Series, moment: pd.Timestamp, params: DriftParams) -> NDArray[np.int64]:
    """Number of the stretch of time of each run, counted from the moment; without stretches each run is its own."""
    since = (submitted_at - moment).dt.total_seconds().to_numpy(dtype=np.float64)
    last = float(since.max(initial=0.0))
    if params.n_stretches == 0 or last <= 0:
        return np.arange(len(since))
    n_after = max(params.n_stretches, int(np.ceil(last / (params.stretch_days * DAY_S))))
    whole = np.floor(since * n_after / last).astype(np.int64)
    return np.asarray(np.minimum(whole, n_after - 1))  # the last run of the log is no stretch of its own
