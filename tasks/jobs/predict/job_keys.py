"""What a job is: the key under which the last runs of a job tell most of the next one, chosen before the test."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.jobs.grouping import group_keys
from tasks.jobs.params import GroupParams, KeyPart
from tasks.jobs.predict.earlier import earlier_runs
from tasks.jobs.predict.peers import LEAST_RUNTIME_S, MOST_RUNS
from tasks.jobs.predict.pool import LEVELS, order_quantiles
from tasks.jobs.predict.predictor import told_as
from tasks.jobs.predict.preparation import assign_periods, with_ends
from tasks.jobs.shape_params import SplitParams

GIVEN = "as the log is grouped"
CANDIDATES: tuple[tuple[KeyPart, ...], ...] = (("name",), ("user", "name"), ("user", "cpus", "limit"), ("user", "cpus"))
MOST_SCORED = 5_000  # runs, evenly over time
LEAST_RECURRING = 0.5  # share of the runs whose job ran at least twice; below it the given key makes no jobs
LEAST_GAIN = 0.05  # of CRPS


@dataclass(frozen=True)
class KeyChoice:
    """by: parts of the key, empty for the given one; reason: in words; crps_s: of the history rule by key, in seconds,
    over the training runs (D2)."""

    by: tuple[KeyPart, ...]
    reason: str
    crps_s: Mapping[str, float]

    def regrouped(self, runs: pd.DataFrame) -> pd.DataFrame:
        """The runs with the group_key of this choice."""
        return runs.assign(group_key=_keys(runs, self.by)) if self.by else runs


def choose_key(runs: pd.DataFrame, split: SplitParams) -> KeyChoice:
    """The key of the jobs of a log. runs: of read_runs, index 0 … n - 1; those of D3 are not looked at.

    Another key than the given one is taken only where the given one makes hardly any recurring job, and the other's
    history rule (the last runs of the job that had ended before) has a CRPS lower by LEAST_GAIN. Raises BadInput as
    assign_periods does."""
    part = assign_periods(runs, split)
    known = with_ends(runs[(part != "D3").to_numpy()]).reset_index(drop=True)
    training = np.flatnonzero((part[part != "D3"] == "D2").to_numpy())
    rows = training[np.unique(np.linspace(0, len(training) - 1, min(MOST_SCORED, len(training))).astype(np.intp))]
    crps_s = {GIVEN: _crps_s(known, rows)}
    for by in CANDIDATES:
        crps_s[",".join(by)] = _crps_s(known.assign(group_key=_keys(known, by)), rows)
    best = min(crps_s, key=lambda name: crps_s[name])
    sizes = known["group_key"].value_counts()
    recurring = float(sizes[sizes >= 2].sum() / max(len(known), 1))
    told = f"history by {best} has a CRPS of {crps_s[best]:.4g} s before the test, {GIVEN} {crps_s[GIVEN]:.4g} s"
    if best == GIVEN:
        return KeyChoice((), told.split(",")[0], crps_s)
    if recurring >= LEAST_RECURRING or crps_s[best] > (1 - LEAST_GAIN) * crps_s[GIVEN]:
        return KeyChoice((), f"{told}; {recurring:.0%} of the runs recur as they are grouped, which stays", crps_s)
    by = next(one for one in CANDIDATES if ",".join(one) == best)
    return KeyChoice(by, f"{told}, where only {recurring:.0%} of the runs recur", crps_s)


def _keys(runs: pd.DataFrame, by: tuple[KeyPart, ...]) -> pd.Series:
    return group_keys(runs.drop(columns="group_key"), GroupParams(by=list(by)))


def _crps_s(runs: pd.DataFrame, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> float:
    """Mean CRPS of the (n + 1) rule over the last runs of each row's job; all earlier runs stand in for none."""
    earlier = earlier_runs(runs.iloc[rows], runs)
    log_s = np.log(np.maximum(earlier.values("runtime_s"), LEAST_RUNTIME_S))
    found = order_quantiles(earlier.latest(log_s, MOST_RUNS))
    first = runs["runtime_s"].to_numpy(dtype=float)[: max(int(rows[0]), 1)]
    all_runs = np.quantile(np.log(np.maximum(first, LEAST_RUNTIME_S)), LEVELS)
    told = told_as(np.where(np.isfinite(found), found, all_runs))
    return float(told.crps(runs["runtime_s"].to_numpy(dtype=float)[rows]).mean())
