"""What to expect: the next run of a job, and a run that goes on.

The next run, from the job's own runs, is taken as exchangeable with them: as likely to fall into any gap between them.
A run that goes on is done by d with P(T <= d | T > e) = 1 - S(d) / S(e) after e seconds, S(t) = P(T > t). Where S(e) is
next to nothing the prediction has nothing to say, though the run goes on; so beyond t_L, the time that a run stays
under with probability L = BEYOND_LEVEL, S is at least that of a power law: S(t) >= (1 - L) (t_L / t)^a.
Such a tail has no scale of its own: the longer a run has lasted, the longer it may still last. Measured on runs that
took longer than all of 20 earlier runs of their job, a = 1 / mean log(runtime / longest so far) (Hill's estimate) was
2.7 (285 runs of a recording) and 2.0 (230 runs of NASA iPSC/860): TAIL_INDEX. The power law is ours."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadSetting, NotFound
from tasks.jobs.distribution import Empirical, Floats
from tasks.jobs.params import OutlookParams, SummaryParams
from tasks.jobs.scores import wilson
from tasks.jobs.summary import find_group
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

CONFIDENCE = 0.9
LEVELS = (0.5, 0.9, 0.95, 0.99)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
ROUNDING = 1e-9  # 1 / (1 - 0.9) is a little more than 10 in binary
SHORTEST_S = 1e-3  # where the power law begins at the earliest: a job predicted to take no time has no scale
NEAREST = 1e-15  # of a level to 0 and 1
BEYOND_LEVEL = 0.99
REST = 1 - BEYOND_LEVEL
TAIL_INDEX = 2.0
REACHED = 0.95  # of the time limit: a run that took so long and did not finish was stopped by it
NONE_STOPPED = np.array([])


@dataclass(frozen=True)
class Chance:
    """How often runs exceeded time_s: k of n, as a share, with the Wilson interval from low to high.

    n_stopped: of the k, those that their time limit stopped later than that."""

    time_s: float
    k: int
    n: int
    share: float
    low: float
    high: float
    n_stopped: int = 0


@dataclass(frozen=True)
class Bound:
    """The time that the next run stays under with probability `level`; None if n_needed runs are not there."""

    level: float
    time_s: float | None
    n_needed: int


@dataclass(frozen=True)
class NextRun:
    """What the n finished runs of a job say of its next run. quantiles_s: level to seconds."""

    group_key: str
    n: int
    quantiles_s: dict[float, float]
    bounds: list[Bound]
    chance: Chance | None


def next_run(
    warehouse: Warehouse, source: str, job: str, params: SummaryParams, *, time_s: float | None = None
) -> NextRun:
    """Answer for one job, named by its key or a unique part of it; with time_s also the chance to exceed it.

    A run that its time limit stopped is a censored observation: stopped after time_s it has exceeded that, stopped
    before it says nothing. Raises NotFound if no or several jobs fit, or the job has no finished run; BadSetting for a
    time that cannot be."""
    group_key = find_group(warehouse, source, job)
    rows = fetch(
        warehouse,
        """SELECT runtime_s, list_contains($statuses, status) AS is_finished FROM jobs.runs
        WHERE source = $source AND group_key = $group_key AND isfinite(runtime_s) AND what_if IS NULL
        AND status NOT IN ('running', 'pending')
        AND (is_finished OR status = 'timeout' OR runtime_s >= $reached * requested_runtime_s) ORDER BY runtime_s""",
        {"source": source, "group_key": group_key, "statuses": list(params.statuses), "reached": REACHED},
    )
    runtimes_s = rows.loc[rows["is_finished"], "runtime_s"].to_numpy(dtype=np.float64)
    stopped_s = rows.loc[~rows["is_finished"], "runtime_s"].to_numpy(dtype=np.float64)
    if not len(runtimes_s):
        raise NotFound(
            f"job {group_key!r} of source {source!r} has no finished run (status {' or '.join(params.statuses)}); "
            "count other runs with summary.statuses"
        )
    return NextRun(
        group_key=group_key,
        n=len(runtimes_s),
        quantiles_s={level: float(np.quantile(runtimes_s, level)) for level in QUANTILES},
        bounds=[bound(runtimes_s, level) for level in LEVELS],
        chance=None if time_s is None else chance_to_exceed(runtimes_s, time_s, stopped_s),
    )


def chance_to_exceed(
    runtimes_s: NDArray[np.float64], time_s: float, stopped_s: NDArray[np.float64] = NONE_STOPPED
) -> Chance:
    """Share of runs longer than time_s, with its Wilson interval. runtimes_s: (n,), n at least 1; stopped_s: of others
    that were stopped by their limits. Raises BadSetting if time_s is no time."""
    if not (math.isfinite(time_s) and time_s >= 0):
        raise BadSetting(f"time {time_s:g} s: expected a number of seconds, 0 or more")
    n_stopped = int(np.sum(stopped_s > time_s))
    n, k = len(runtimes_s) + n_stopped, int(np.sum(runtimes_s > time_s)) + n_stopped
    return Chance(time_s, k, n, k / n, *wilson(k, n, CONFIDENCE), n_stopped)


def bound(runtimes_s: NDArray[np.float64], level: float) -> Bound:
    """The time that the next run stays under with probability `level`: order statistic ceil((n + 1) level).

    It is one step further out than the plain quantile, since the next run is one more draw: of n exchangeable runs
    the k-th is not exceeded by the next with probability at least k / (n + 1). runtimes_s: (n,).
    No time if n < 1 / (1 - level); level: between 0 and 1."""
    n, n_needed = len(runtimes_s), math.ceil(1 / (1 - level) - ROUNDING)
    if n < n_needed:
        return Bound(level, None, n_needed)
    rank = math.ceil((n + 1) * level - ROUNDING)  # from 1; at most n, since n >= n_needed
    return Bound(level, float(np.sort(runtimes_s)[rank - 1]), n_needed)


@dataclass(frozen=True)
class PredictedChance:
    """predicted: chance that the next run takes longer than time_s; history: how often past runs did; agrees: whether
    the chance lies in the Wilson interval of the history."""

    time_s: float
    predicted: float
    history: Chance
    agrees: bool


def chance_beside_history(time_s: float, chance_of: Callable[[float], Any], runtimes_s: Floats) -> PredictedChance:
    """The predicted chance to exceed time_s, and the share of past runs, (n,) seconds and at least one, that did.

    Raises BadSetting if time_s is no time."""
    past = chance_to_exceed(runtimes_s, time_s)
    predicted = float(chance_of(time_s))
    return PredictedChance(time_s, predicted, past, past.low <= predicted <= past.high)


class _Survival:
    """P(runtime > t) of n instances, at least that of the power law beyond begins_s, (n,)."""

    def __init__(self, predicted: Empirical) -> None:
        self.predicted = predicted
        self.begins_s = np.maximum(predicted.quantile(BEYOND_LEVEL), SHORTEST_S)

    def at(self, t: Floats) -> Floats:
        """t: one, or (n,); returns (n,)."""
        return np.maximum(1 - self.predicted.cdf(t), self._power_law(t))

    def is_beyond(self, t: Floats) -> NDArray[np.bool_]:
        """Where the power law is above what was predicted: longer than anything expected."""
        return np.asarray(self._power_law(t) > 1 - self.predicted.cdf(t))

    def time_of(self, survival: Floats) -> Floats:
        """Seconds: the smallest t with at(t) <= survival; survival: (n, m), between 0 and 1."""
        in_tail = self.begins_s[:, None] * (REST / np.maximum(survival, np.finfo(float).tiny)) ** (1 / TAIL_INDEX)
        predicted_s = self.predicted.quantile(np.clip(1 - survival, NEAREST, 1 - NEAREST))
        return np.where(survival < REST, np.maximum(predicted_s, in_tail), predicted_s)

    def _power_law(self, t: Floats) -> Floats:
        """At most REST, so below what was predicted for every t before begins_s."""
        return np.asarray(REST * (self.begins_s / np.maximum(t, self.begins_s)) ** TAIL_INDEX)


def chances_in_time(predicted: Empirical, elapsed_s: Any, deadline_s: Any) -> Floats:
    """P(runtime <= deadline_s | runtime > elapsed_s): (n,).

    elapsed_s: how long each run goes already, deadline_s: since its start as well; one for all or (n,), 0 or more. A
    deadline at or before elapsed_s has passed: 0. At elapsed 0 it is the predicted cdf, except that beyond the time of
    BEYOND_LEVEL it can be up to REST less."""
    elapsed, deadline, survival = np.asarray(elapsed_s), np.asarray(deadline_s), _Survival(predicted)
    # at elapsed 0 a predicted run of 0 s is still possible: T >= 0 excludes nothing
    left = np.where(elapsed > 0, survival.at(elapsed), 1.0)
    chance = np.clip(1 - survival.at(deadline) / left, 0.0, 1.0)
    return np.where((deadline <= elapsed) & (elapsed > 0), 0.0, chance)


def remaining_s(predicted: Empirical, elapsed_s: Any, levels: Sequence[float]) -> Floats:
    """Seconds from now that a run still takes at most, with each of these probabilities, given that it runs elapsed_s
    already, one for all or (n,): (n, n_levels), 0 or more, rising with the level."""
    elapsed, survival = np.broadcast_to(elapsed_s, predicted.n), _Survival(predicted)
    left = np.where(elapsed > 0, survival.at(elapsed), 1.0)[:, None]
    return np.asarray(np.maximum(survival.time_of((1 - np.array(levels)) * left) - elapsed[:, None], 0.0))


def running_outlook(
    running: pd.DataFrame,
    predicted: Empirical,
    now: pd.Timestamp,
    params: OutlookParams,
    *,
    deadlines_at: pd.Series | None = None,
) -> pd.DataFrame:
    """What to expect of each running job, on the index of `running`.

    running: run_id, group_key, started_at (UTC, never missing); row i is instance i of predicted. now: UTC.
    deadlines_at: when each should be done, missing where there is none. Columns: run_id, group_key, elapsed_s,
    chance_so_long (that a run takes longer than this one has so far), is_beyond (longer than anything expected: what
    follows is the power law), left_<level>_s for each of params.levels, and chance_in_time (missing without a
    deadline). A start after now, as clocks have it, counts as just started."""
    started_at = pd.to_datetime(running["started_at"])
    elapsed = np.maximum(np.asarray((now - started_at).dt.total_seconds(), dtype=np.float64), 0.0)
    survival, levels = _Survival(predicted), sorted(set(params.levels))
    left = np.maximum.accumulate(remaining_s(predicted, elapsed, levels), axis=1)
    outlook = running[["run_id", "group_key"]].assign(
        elapsed_s=elapsed, chance_so_long=survival.at(elapsed), is_beyond=survival.is_beyond(elapsed)
    )
    for place, level in enumerate(levels):
        outlook[f"left_{100 * level:.10g}_s"] = left[:, place]
    outlook["chance_in_time"] = np.nan
    if deadlines_at is not None:
        due = (pd.to_datetime(deadlines_at.reindex(running.index)) - started_at).dt.total_seconds().to_numpy(np.float64)
        has_deadline = np.flatnonzero(np.isfinite(due))
        due, elapsed = due[has_deadline], elapsed[has_deadline]
        chances = chances_in_time(predicted.rows(has_deadline), elapsed, np.maximum(due, 0))
        outlook.iloc[has_deadline, -1] = np.where(due <= elapsed, 0.0, chances)
    return outlook
