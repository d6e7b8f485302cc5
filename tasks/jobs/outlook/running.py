"""A job that is running: its chance to be done in time, and how long it still takes, given how long it runs already.

With S(t) = P(T > t) the chance to be done by d is P(T <= d | T > e) = 1 - S(d) / S(e) after e seconds. Where S(e) is
next to nothing the prediction has nothing to say, though the run goes on; so beyond t_L, the time that a run stays
under with probability L = BEYOND_LEVEL, S is at least that of a power law: S(t) >= (1 - L) (t_L / t)^a.
Such a tail has no scale of its own: the longer a run has lasted, the longer it may still last. Measured on runs that
took longer than all of 20 earlier runs of their job, a = 1 / mean log(runtime / longest so far) (Hill's estimate) was
2.7 (285 runs of a recording) and 2.0 (230 runs of NASA iPSC/860): TAIL_INDEX. The power law is ours."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.jobs.distribution import Floats, Predicted, checked_levels
from tasks.jobs.outlook.exceeding import one_each
from tasks.jobs.outlook.limits import level_column
from tasks.jobs.outlook.params import OutlookParams

SHORTEST_S = 1e-3  # where the power law begins at the earliest: a job predicted to take no time has no scale
NEAREST = 1e-15  # of a level to 0 and 1
BEYOND_LEVEL = 0.99
REST = 1 - BEYOND_LEVEL
TAIL_INDEX = 2.0


@dataclass(frozen=True)
class Survival:
    """P(runtime > t) of n instances, with the power law beyond begins_s; begins_s: (n,)."""

    predicted: Predicted
    begins_s: Floats

    def at(self, t: Floats) -> Floats:
        """(n,) or (n, m), in the shape of t."""
        return np.maximum(self._as_predicted(t), self._power_law(t))

    def is_beyond(self, t: Floats) -> NDArray[np.bool_]:
        """Where the power law is above what was predicted: longer than anything expected."""
        return np.asarray(self._power_law(t) > self._as_predicted(t))

    def time_of(self, survival: Floats) -> Floats:
        """Seconds: the smallest t with at(t) <= survival; survival: (n, m), between 0 and 1."""
        levels = np.clip(1 - survival, NEAREST, 1 - NEAREST)
        begins_s = self.begins_s[:, None]
        in_tail = begins_s * (REST / np.maximum(survival, np.finfo(float).tiny)) ** (1 / TAIL_INDEX)
        found = self.predicted.quantile(levels)
        return np.where(survival < REST, np.maximum(found, in_tail), found)

    def _as_predicted(self, t: Floats) -> Floats:
        return np.clip(1 - self.predicted.cdf(t), 0.0, 1.0)

    def _power_law(self, t: Floats) -> Floats:
        """At most REST, so below what was predicted for every t before begins_s."""
        begins_s = self.begins_s[:, None] if t.ndim == 2 else self.begins_s
        return np.asarray(REST * (begins_s / np.maximum(t, begins_s)) ** TAIL_INDEX)


def survival_of(predicted: Predicted) -> Survival:
    """The predicted distributions with their tail."""
    begins_s = np.maximum(predicted.quantile(BEYOND_LEVEL), SHORTEST_S)
    return Survival(predicted, begins_s)


def chances_in_time(predicted: Predicted, elapsed_s: Any, deadline_s: Any) -> Floats:
    """P(runtime <= deadline_s | runtime > elapsed_s): (n,) or (n, m), in the shape of deadline_s, (n,) for one.

    elapsed_s: how long each run goes already, one for all or (n,); deadline_s: since its start as well, one for all,
    (n,) or (n, m). A deadline at or before elapsed_s has passed: 0. At elapsed 0 it is the predicted cdf, except that
    beyond the time of BEYOND_LEVEL it can be up to REST less. Raises BadSetting for what is no time."""
    elapsed, deadline = one_each("elapsed", elapsed_s, predicted.n), one_each("deadline", deadline_s, predicted.n)
    if elapsed.ndim == 2:
        raise BadInput("elapsed", f"shape {elapsed.shape}", f"one time, or ({predicted.n},): a run has one age")
    survival = survival_of(predicted)
    left = survival.at(elapsed)
    elapsed, left = (elapsed[:, None], left[:, None]) if deadline.ndim == 2 else (elapsed, left)
    # at elapsed 0 a predicted run of 0 s is still possible: T >= 0 excludes nothing
    left = np.where(elapsed > 0, left, 1.0)
    chance = np.clip(1 - survival.at(deadline) / left, 0.0, 1.0)
    return np.where((deadline <= elapsed) & (elapsed > 0), 0.0, chance)


def remaining_s(predicted: Predicted, elapsed_s: Any, q: Any) -> Floats:
    """Seconds from now that a run still takes at most, with probability q, given that it runs elapsed_s already.

    elapsed_s: one for all or (n,); q: one level, (n,) or (n, m); the answer has the shape of q. 0 or more, rising
    with q. Raises BadSetting for what is no time, ValueError for a level outside (0, 1)."""
    elapsed, levels = one_each("elapsed", elapsed_s, predicted.n), checked_levels(q, predicted.n)
    survival = survival_of(predicted)
    left = np.where(elapsed > 0, survival.at(elapsed), 1.0)[:, None]
    wide = levels if levels.ndim == 2 else levels[:, None]
    times = survival.time_of((1 - wide) * left) - elapsed[:, None]
    return np.asarray(np.maximum(times, 0.0).reshape(levels.shape))


def running_outlook(
    running: pd.DataFrame,
    predicted: Predicted,
    now: pd.Timestamp,
    params: OutlookParams,
    *,
    deadlines_at: pd.Series | None = None,
) -> pd.DataFrame:
    """What to expect of each running job, on the index of `running`.

    running: run_id, group_key, started_at (UTC); row i is instance i of predicted. now: UTC. deadlines_at: when each
    should be done, missing where there is none. Columns: run_id, group_key, elapsed_s, chance_so_long (that a run
    takes longer than this one has so far), is_beyond (longer than anything expected: what follows is the power law),
    left_<level>_s for each of params.levels, and chance_in_time (missing without a deadline). A start after now, as
    clocks have it, counts as just started. Raises BadInput for missing columns or starts, or another number of rows."""
    missing = [name for name in ("run_id", "group_key", "started_at") if name not in running]
    if missing or len(running) != predicted.n:
        problem = f"no column {', '.join(missing)}" if missing else f"{len(running)} rows, {predicted.n} predictions"
        raise BadInput("running jobs", problem, "run_id, group_key and started_at, one row a prediction")
    if running["started_at"].isna().any():
        run_id = running.loc[running["started_at"].isna(), "run_id"].iloc[0]
        raise BadInput("running jobs", f"run {run_id} has no start", "the start of each", "leave out pending runs")
    started_at = pd.to_datetime(running["started_at"])
    elapsed = np.maximum(np.asarray((now - started_at).dt.total_seconds(), dtype=np.float64), 0.0)
    survival, levels = survival_of(predicted), sorted(set(params.levels))
    left = remaining_s(predicted, elapsed, np.broadcast_to(levels, (len(elapsed), len(levels))))
    outlook = running[["run_id", "group_key"]].assign(
        elapsed_s=elapsed, chance_so_long=survival.at(elapsed), is_beyond=survival.is_beyond(elapsed)
    )
    for place, level in enumerate(levels):
        outlook[level_column("left", level)] = np.maximum.accumulate(left, axis=1)[:, place]
    outlook["chance_in_time"] = np.nan
    if deadlines_at is not None:
        due = (pd.to_datetime(deadlines_at.reindex(running.index)) - started_at).dt.total_seconds().to_numpy(np.float64)
        has_deadline = np.flatnonzero(np.isfinite(due))
        chances = chances_in_time(predicted.rows(has_deadline), elapsed[has_deadline], np.maximum(due[has_deadline], 0))
        is_past = due[has_deadline] <= elapsed[has_deadline]
        outlook.iloc[has_deadline, -1] = np.where(is_past, 0.0, chances)
    return outlook
