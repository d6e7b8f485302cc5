"""Alarms about nodes from executions that were judged, by whatever: pure functions over frames.

The rules are those of alarm_states.py, for each node and aspect on its own. An execution counts once, and not at all if
others used the machine meanwhile (is_contaminated) or nothing could be said of it: such executions neither raise nor
confirm nor clear an alarm, and belong in no baseline. Executions without a start come last, by their ids, as in a
history (tasks/nodes/history.py): they are judged beside those whose time is known and stand beside none of them. Nor do
they count here beside them, as no later execution would ever come after them; where no start is known at all, the order
of the ids is what there is. An alarm that goes on is one alarm. A suspected node should run a
fresh benchmark of that aspect: what it runs next confirms the alarm or clears it. A confirmed one is to be left out."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from tasks.nodes.fingerprint.alarm_params import AlarmParams
from tasks.nodes.fingerprint.alarm_states import NEVER, Followed, follow
from tasks.nodes.type_tables import Bools, Floats, Ints

NEEDED = ("node", "aspect", "execution_id", "started_at", "probability", "is_flagged", "is_contaminated")
EXECUTIONS = ["node", "aspect", "execution_id", "started_at", "probability", "is_flagged", "state"]
BY_TIME = ["raised_at", "node", "aspect"]


@dataclass(frozen=True)
class Watched:
    """states: one row a node and aspect: node, aspect, state (healthy: no alarm so far), since and since_execution
    (what brought that state; missing while nothing has), n_executions (that count), n_recent_flagged (of the last of
    them), n_left_out, last_at (start of the newest that counts), asks_for_benchmark (suspected).

    alarms: one row an alarm, by the time it was raised: node, aspect, state (suspected, confirmed or cleared),
    first_execution (flagged, behind it), raised_by and raised_at, confirmed_by and confirmed_at, cleared_by and
    cleared_at (execution and its start; missing if none), n_executions and n_flagged (from the first on until it was
    cleared), probability (median of the flagged ones). Node, aspect and raised_by name an alarm for good.

    executions: those that count, in time order within node and aspect, with is_flagged as it counted and the state
    after each."""

    states: pd.DataFrame
    alarms: pd.DataFrame
    executions: pd.DataFrame

    @property
    def excluded(self) -> tuple[str, ...]:
        """Nodes with a confirmed alarm in any aspect: no work should go there."""
        confirmed = self.states["node"][self.states["state"] == "confirmed"]
        return tuple(sorted({str(node) for node in confirmed}))

    @property
    def asking(self) -> pd.DataFrame:
        """Nodes and aspects that should run a fresh benchmark: node, aspect."""
        return self.states.loc[self.states["asks_for_benchmark"], ["node", "aspect"]].reset_index(drop=True)


def watch_nodes(judged: pd.DataFrame, params: AlarmParams) -> Watched:
    """Follow each node and aspect through its executions.

    judged: one row a verdict with the columns NEEDED, in any order; of an execution that is there twice the last row
    counts. probability: NaN where nothing could be said. is_flagged: the judge's own verdict, used if params.threshold
    is 0. Raises ValueError for a missing column."""
    if missing := [name for name in NEEDED if name not in judged.columns]:
        raise ValueError(f"judged executions without {', '.join(missing)}; expected the columns {', '.join(NEEDED)}")
    rows = judged[list(NEEDED)].assign(aspect=judged["aspect"].fillna("unknown"))
    rows = rows.drop_duplicates(["node", "aspect", "execution_id"], keep="last")
    rows = rows.sort_values(["node", "aspect", "started_at", "execution_id"], na_position="last", ignore_index=True)
    rows = rows.assign(is_flagged=flagged(rows, params), series=rows.groupby(["node", "aspect"]).ngroup())
    counted = rows[counting(rows) & _is_placed(rows)].reset_index(drop=True)
    n_series = int(rows["series"].max()) + 1 if len(rows) else 0
    starts = np.searchsorted(counted["series"].to_numpy(), np.arange(n_series + 1)).astype(np.int64)
    is_flagged, at_s = counted["is_flagged"].to_numpy(dtype=bool), _seconds(counted["started_at"])
    found = [follow(is_flagged[a:b], at_s[a:b], params) for a, b in pairwise(starts)]
    states = [state for one in found for state in one.states]
    return Watched(
        _states(rows, counted, found, starts, params),
        _alarms(counted, found, starts),
        counted.assign(state=pd.Series(states, dtype="str"))[EXECUTIONS],
    )


def counting(judged: pd.DataFrame) -> Bools:
    """Which executions count: judged, and not disturbed by others. (n,)"""
    disturbed = judged["is_contaminated"].astype("boolean").fillna(False).to_numpy(dtype=bool)
    return np.asarray(~disturbed & judged["probability"].notna().to_numpy())


def _is_placed(rows: pd.DataFrame) -> Bools:
    """Which executions have a place in time: all with a start, and all of a series in which none has any. (n,)"""
    has_start = rows["started_at"].notna()
    return np.asarray(has_start | ~has_start.groupby(rows["series"]).transform("any"), dtype=bool)


def flagged(judged: pd.DataFrame, params: AlarmParams) -> Bools:
    """Which executions count as flagged: (n,)."""
    if params.threshold > 0:
        return np.asarray(judged["probability"].to_numpy(dtype=np.float64) > params.threshold)
    return np.asarray(judged["is_flagged"].astype("boolean").fillna(False).to_numpy(dtype=bool))


def baseline(judged: pd.DataFrame, params: AlarmParams) -> Bools:
    """Which executions may teach what is normal: those that count and are not flagged. (n,)"""
    return np.asarray(counting(judged) & ~flagged(judged, params))


def _states(
    rows: pd.DataFrame, counted: pd.DataFrame, found: list[Followed], starts: Ints, params: AlarmParams
) -> pd.DataFrame:
    """One row a series; those without an execution that counts are there as well."""
    named = rows.drop_duplicates("series")[["node", "aspect"]].reset_index(drop=True)
    n_rows = np.bincount(rows["series"].to_numpy(dtype=np.int64), minlength=len(found))
    n_counted = np.diff(starts)
    flags = np.append(0, np.cumsum(counted["is_flagged"].to_numpy(dtype=bool)))
    recent = np.maximum(starts[1:] - params.last, starts[:-1])
    state = pd.Series([one.states[-1] if one.states else "healthy" for one in found], dtype="str")
    changed = np.array([_last_change(one) for one in found], dtype=np.int64)
    since = np.where(changed == NEVER, NEVER, starts[:-1] + changed)
    return named.assign(
        state=state,
        since=_taken(counted["started_at"], since),
        since_execution=_taken(counted["execution_id"], since),
        n_executions=n_counted,
        n_recent_flagged=flags[starts[1:]] - flags[recent],
        n_left_out=n_rows - n_counted,
        last_at=_taken(counted["started_at"], np.where(n_counted > 0, starts[1:] - 1, NEVER)),
        asks_for_benchmark=state == "suspected",
    )


def _last_change(found: Followed) -> int:
    """The place of the execution that brought the present state; NEVER if there was no alarm."""
    if not found.episodes:
        return NEVER
    last = found.episodes[-1]
    return max(last.raised, last.confirmed, last.cleared)


def _alarms(counted: pd.DataFrame, found: list[Followed], starts: Ints) -> pd.DataFrame:
    """One row an episode."""
    each = [(at, episode) for at, one in enumerate(found) for episode in one.episodes]
    of = np.array([at for at, _ in each], dtype=np.int64)
    local = np.array([(one.first, one.raised, one.confirmed, one.cleared) for _, one in each], dtype=np.int64)
    places = local.reshape(-1, 4)
    first, raised, confirmed, cleared = np.where(places == NEVER, NEVER, places + starts[of, None]).T
    end = np.where(cleared == NEVER, starts[of + 1], cleared + 1)
    probability, is_flagged = counted["probability"].to_numpy(dtype=np.float64), counted["is_flagged"].to_numpy(bool)
    behind = [probability[a:b][is_flagged[a:b]] for a, b in zip(first, end, strict=True)]
    told = {
        "node": _taken(counted["node"], first),
        "aspect": _taken(counted["aspect"], first),
        "state": pd.Series([one.state for _, one in each], dtype="str"),
        "first_execution": _taken(counted["execution_id"], first),
    }
    for name, place in {"raised": raised, "confirmed": confirmed, "cleared": cleared}.items():
        told |= {
            f"{name}_by": _taken(counted["execution_id"], place),
            f"{name}_at": _taken(counted["started_at"], place),
        }
    told |= {
        "n_executions": pd.Series(end - first, dtype="int64"),
        "n_flagged": pd.Series([len(one) for one in behind], dtype="int64"),
        "probability": pd.Series([np.median(one) for one in behind], dtype="float64"),
    }
    return pd.DataFrame(told).sort_values(BY_TIME, na_position="last", kind="stable", ignore_index=True)


def _taken(values: pd.Series, places: Ints) -> pd.Series:
    """The values at these places, missing where NEVER: (k,)."""
    return values.reindex(places).reset_index(drop=True)


def _seconds(times: pd.Series) -> Floats:
    """(n,) since the epoch, NaN where unknown."""
    since = pd.to_datetime(times) - pd.Timestamp(0)
    return np.asarray(since.dt.total_seconds().to_numpy(dtype=np.float64))
