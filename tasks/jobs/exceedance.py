"""The next run of one job, from its own finished runs: how likely it is to exceed a time, and what it stays under.

The runs are taken as exchangeable: what comes next is as likely to fall into any gap between them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from tasks.errors import BadSetting, NotFound
from tasks.jobs.params import SummaryParams
from tasks.jobs.summary import find_group
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

CONFIDENCE = 0.9
LEVELS = (0.5, 0.9, 0.95, 0.99)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
ROUNDING = 1e-9  # 1 / (1 - 0.9) is a little more than 10 in binary


@dataclass(frozen=True)
class Chance:
    """How often runs exceeded time_s: k of n, as a share, with the Wilson interval from low to high."""

    time_s: float
    k: int
    n: int
    share: float
    low: float
    high: float


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
    warehouse: Warehouse,
    source: str,
    job: str,
    params: SummaryParams,
    *,
    time_s: float | None = None,
    levels: tuple[float, ...] = LEVELS,
) -> NextRun:
    """Answer for one job, named by its key or a unique part of it; with time_s also the chance to exceed it.

    Raises NotFound if no or several jobs fit, or the job has no finished run; BadSetting for a time or level
    that cannot be."""
    group_key = find_group(warehouse, source, job)
    rows = fetch(
        warehouse,
        """SELECT runtime_s FROM jobs.runs WHERE source = $source AND group_key = $group_key
        AND list_contains($statuses, status) AND isfinite(runtime_s) AND what_if IS NULL ORDER BY runtime_s""",
        {"source": source, "group_key": group_key, "statuses": list(params.statuses)},
    )
    runtimes_s = rows["runtime_s"].to_numpy(dtype=np.float64)
    if not len(runtimes_s):
        raise NotFound(
            f"job {group_key!r} of source {source!r} has no finished run (status {' or '.join(params.statuses)}); "
            "count other runs with summary.statuses"
        )
    return NextRun(
        group_key=group_key,
        n=len(runtimes_s),
        quantiles_s={level: float(np.quantile(runtimes_s, level)) for level in QUANTILES},
        bounds=[bound(runtimes_s, level) for level in levels],
        chance=None if time_s is None else chance_to_exceed(runtimes_s, time_s),
    )


def chance_to_exceed(runtimes_s: NDArray[np.float64], time_s: float, *, confidence: float = CONFIDENCE) -> Chance:
    """Share of runs longer than time_s, with its Wilson interval; runtimes_s: (n,), n at least 1.

    Raises BadSetting if time_s is no time."""
    if not (math.isfinite(time_s) and time_s >= 0):
        raise BadSetting(f"time {time_s:g} s: expected a number of seconds, 0 or more")
    n, k = len(runtimes_s), int(np.sum(runtimes_s > time_s))
    interval = binomtest(k, n).proportion_ci(confidence, method="wilson")
    return Chance(time_s, k, n, k / n, float(interval.low), float(interval.high))


def bound(runtimes_s: NDArray[np.float64], level: float) -> Bound:
    """The time that the next run stays under with probability `level`: order statistic ceil((n + 1) level).

    It is one step further out than the plain quantile, since the next run is one more draw: of n exchangeable runs
    the k-th is not exceeded by the next with probability at least k / (n + 1). runtimes_s: (n,).
    No time if n < 1 / (1 - level). Raises BadSetting for a level outside (0, 1)."""
    if not 0 < level < 1:
        raise BadSetting(f"level {level:g}: expected a probability between 0 and 1, such as 0.95")
    n, n_needed = len(runtimes_s), math.ceil(1 / (1 - level) - ROUNDING)
    if n < n_needed:
        return Bound(level, None, n_needed)
    rank = math.ceil((n + 1) * level - ROUNDING)  # from 1; at most n, since n >= n_needed
    return Bound(level, float(np.sort(runtimes_s)[rank - 1]), n_needed)
