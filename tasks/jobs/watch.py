"""The scheduled check for slow runs, late runs and jobs that drift; watching twice raises nothing new."""

import functools
import logging
from collections.abc import Hashable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.outlook.params import DriftParams, LateParams, OutlookParams
from tasks.jobs.params import WatchParams
from tasks.jobs.watch_champion import champion_in_use
from tasks.jobs.watch_drift import find_drifted
from tasks.jobs.watch_late import find_late
from tasks.jobs.watch_medians import Floats, Ints, medians_between
from tasks.quantities import duration, times
from tasks.utc import utc_text
from tasks.warehouse.alarms import Alarm, raise_alarms
from tasks.warehouse.connection import Connection, writing
from tasks.warehouse.place import Warehouse

logger = logging.getLogger(__name__)
LOOKED_AT = Path(__file__).with_name("watch.sql")
BEFORE = Path(__file__).with_name("watch_before.sql")
SLOW = """SELECT run_id, group_key, status, started_at, ended_at, runtime_s, history_median_s, n_history
    FROM temp.looked_at JOIN slow USING (place) ORDER BY ended_at, run_id"""
KIND = "slow-run"


def watch_source(
    warehouse: Warehouse,
    source: str,
    watch: WatchParams,
    late: LateParams,
    drift: DriftParams,
    outlook: OutlookParams,
    *,
    now: datetime | None = None,
) -> list[str]:
    """Raise an alarm for every slow run, late run and drifted job of a source; returns the ids of the new alarms.

    A run that was told of as slow or late is not told of as late. One that was late while it ran, and has ended slow,
    is told of as slow as well. now: time of the alarms, UTC; by default this machine's clock."""
    raised = watch_runs(warehouse, source, watch, now=now)
    champion = functools.cache(lambda: champion_in_use(warehouse, source))
    if late.is_watched:
        alarms = find_late(warehouse, source, watch, late, outlook, champion, told_by=(KIND,))
        raised += _raise(warehouse, alarms, now)
    if drift.is_watched:
        raised += _raise(warehouse, find_drifted(warehouse, source, watch, drift, champion), now)
    return raised


def watch_runs(warehouse: Warehouse, source: str, params: WatchParams, *, now: datetime | None = None) -> list[str]:
    """Raise an alarm for every slow run of the last days of a source's log; returns the ids of the new alarms.

    The days count back from the last end in the log, so a log that arrives late is watched as well. now: time of
    the alarm, UTC; by default this machine's clock. A source without runs raises nothing."""
    with writing(warehouse) as connection:
        slow = slow_runs(connection, source, params)
        alarms = [_alarm(source, run) for run in slow.to_dict("records")]
        raised = raise_alarms(connection, alarms, now=now)
    logger.info("%d slow runs in source %s, %d of them new", len(slow), source, len(raised))
    return raised


def slow_runs(connection: Connection, source: str, params: WatchParams) -> pd.DataFrame:
    """Runs at least outlier_ratio times the median of their job's earlier runs, or outlier_delta_s above it.

    Earlier runs are those that had ended before the run started, at least min_support of them.
    Columns: run_id, group_key, status, started_at, ended_at, runtime_s, history_median_s, n_history."""
    asked = {"source": source, "statuses": list(params.statuses), "look_back_days": params.look_back_days}
    connection.execute(LOOKED_AT.read_text(), asked)
    earlier = {"source": source, "statuses": list(params.history_statuses)}
    found = connection.execute(BEFORE.read_text(), earlier).fetchnumpy()
    job, place, runtime_s = (np.ma.getdata(found[name]) for name in ("job", "place", "runtime_s"))
    slow = _slow_places(job, place, runtime_s, params)
    connection.register("slow", slow)
    rows = connection.execute(SLOW).df()
    connection.unregister("slow")
    return rows


def _slow_places(job: Ints, place: Ints, runtime_s: Floats, params: WatchParams) -> pd.DataFrame:
    """place, history_median_s and n_history of the slow runs; arguments: of watch_before.sql, (n,)."""
    is_run = place > 0
    n_before: Ints = np.cumsum(~is_run)  # in the history of all jobs, where a run stands
    first = np.flatnonzero(np.diff(job, prepend=0))
    at_first: Ints = np.repeat(n_before[first] - ~is_run[first], np.diff(first, append=len(job)))
    is_asked = is_run & (n_before - at_first >= params.min_support)
    lows, highs = at_first[is_asked], n_before[is_asked]
    medians = medians_between(runtime_s[~is_run], lows, highs)
    asked_s = runtime_s[is_asked]
    is_long = (medians != 0) & (asked_s >= params.outlier_ratio * medians)
    is_slow = is_long | (asked_s > medians + params.outlier_delta_s)
    columns = {"place": place[is_asked], "history_median_s": medians, "n_history": highs - lows}
    return pd.DataFrame({name: values[is_slow] for name, values in columns.items()})


def _raise(warehouse: Warehouse, alarms: list[Alarm], now: datetime | None) -> list[str]:
    if not alarms:
        return []
    with writing(warehouse) as connection:
        return raise_alarms(connection, alarms, now=now)


def _alarm(source: str, run: Mapping[Hashable, Any]) -> Alarm:
    runtime_s, median_s, n_history = run["runtime_s"], run["history_median_s"], int(run["n_history"])
    against = f"{times(runtime_s / median_s)} the" if median_s else "more than the"
    message = (
        f"{run['group_key']}: run {run['run_id']} took {duration(runtime_s)}, "
        f"{against} median of its {n_history:,} earlier runs ({duration(median_s)})"
    )
    evidence = {
        "group_key": run["group_key"],
        "status": run["status"],
        "started_at": utc_text(run["started_at"]),
        "ended_at": utc_text(run["ended_at"]),
        "runtime_s": runtime_s,
        "history_median_s": median_s,
        "n_history": n_history,
    }
    return Alarm("jobs", source, KIND, str(run["run_id"]), message, evidence)
