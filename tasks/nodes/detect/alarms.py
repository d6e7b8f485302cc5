"""Alarms about nodes: verdicts on executions become states by stated rules, for each node and aspect on its own.

    healthy    → suspected  when `flagged` of the last `last` executions, the newest among them, are flagged
    suspected  → confirmed  when `confirm` of the executions after that are flagged as well
    suspected, confirmed → cleared  when `clear` executions in a row are not flagged
    cleared    → suspected  by the same rule as before; executions before the clearing ones no longer count

The state after an execution depends on that and earlier ones alone, so looking again changes nothing. An execution
counts once, and not at all if others used the machine meanwhile (is_contaminated) or nothing could be said of it: such
executions neither raise nor confirm nor clear an alarm. Executions without a start come last, by their ids as in a
history (run-2 before run-10), and count only where no start is known at all: no later one would ever come after them.

An alarm that goes on is one alarm. A suspected node should run a fresh benchmark of that aspect: what it runs next
confirms the alarm or clears it. A confirmed one is to be left out."""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd

from tasks.nodes.node_words import GOING_ON, LEAST_DEVIATION, NO_REASON, WORD, reason_of_row
from tasks.nodes.params import AlarmParams
from tasks.nodes.type_tables import HOUR_S, Bools, Floats, Ints, hours_of
from tasks.quantities import utc_text
from tasks.warehouse.alarms import Alarm

State = Literal["healthy", "suspected", "confirmed", "cleared"]
DAY_S = 86_400.0
WINDOW_DAYS = 30.0  # executions longer ago raise no alarm together with the newest
NEVER = -1
OF_TIME = ["node", "n_executions", "mean_duration_s", "executions_per_day", "share"]


@dataclass(frozen=True)
class Episode:
    """One alarm, by places in the row of executions, from 0.

    first: the first flag behind it. raised: the execution that raised it. confirmed, cleared: NEVER if none has."""

    first: int
    raised: int
    confirmed: int = NEVER
    cleared: int = NEVER

    @property
    def state(self) -> State:
        """Of the alarm."""
        if self.cleared != NEVER:
            return "cleared"
        return "suspected" if self.confirmed == NEVER else "confirmed"


@dataclass(frozen=True)
class Followed:
    """states: after each execution. episodes: the alarms in their order; the last one may be going on."""

    states: tuple[State, ...]
    episodes: tuple[Episode, ...]


def follow(is_flagged: Bools, at_s: Floats, params: AlarmParams) -> Followed:
    """Go through the executions of one node and aspect that count.

    is_flagged: (n,) in time order. at_s: (n,) their times in seconds, NaN where unknown: those are never too old."""
    states: list[State] = []
    episodes: list[Episode] = []
    window: deque[int] = deque(maxlen=params.last)
    state: State = "healthy"
    n_fresh = n_clean = 0  # since the alarm was raised: flagged ones, and those without a flag in a row
    for at, flagged in enumerate(is_flagged.tolist()):
        if state in GOING_ON:
            n_clean, n_fresh = (0, n_fresh + 1) if flagged else (n_clean + 1, n_fresh)
            if n_clean >= params.clear:
                state, episodes[-1] = "cleared", replace(episodes[-1], cleared=at)
                window = deque(range(at - n_clean + 1, at + 1), maxlen=params.last)
            elif state == "suspected" and n_fresh >= params.confirm:
                state, episodes[-1] = "confirmed", replace(episodes[-1], confirmed=at)
        else:
            window.append(at)
            fresh = [place for place in window if not at_s[at] - at_s[place] > WINDOW_DAYS * DAY_S] if flagged else []
            behind = [place for place in fresh if is_flagged[place]]
            if len(behind) >= params.flagged and at + 1 >= params.min_executions:
                state, n_fresh, n_clean = "suspected", 0, 0
                episodes.append(Episode(behind[0], at))
        states.append(state)
    return Followed(tuple(states), tuple(episodes))


NEEDED = ("node", "aspect", "execution_id", "started_at", "probability", "is_flagged", "is_contaminated")
EXECUTIONS = ["node", "aspect", "execution_id", "started_at", "probability", "is_flagged", "state"]
BY_TIME = ["raised_at", "node", "aspect"]


@dataclass(frozen=True)
class Watched:
    """states: one row a node and aspect: node, aspect, state (healthy: no alarm so far), since and since_execution (of
    an alarm that goes on the first flagged one behind it, else what cleared the last one; missing without any),
    n_executions (that count), n_recent_flagged (of the last of them), n_left_out, last_at (start of the newest that
    counts), asks_for_benchmark (suspected).

    alarms: one row an alarm, by the time it was raised: node, aspect, state (suspected, confirmed or cleared),
    first_execution and first_at (the first flagged one behind it, and its start), raised_by and raised_at,
    confirmed_by and confirmed_at, cleared_by and cleared_at (execution and its start; missing if none),
    n_executions and n_flagged (from the first on until it was
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


def watch_nodes(judged: pd.DataFrame, params: AlarmParams) -> Watched:
    """Follow each node and aspect through its executions.

    judged: one row a verdict with the columns NEEDED, in any order; of an execution that is there twice the last row
    counts. probability: NaN where nothing could be said. Raises ValueError for a missing column."""
    if missing := [name for name in NEEDED if name not in judged.columns]:
        raise ValueError(f"judged executions without {', '.join(missing)}; expected the columns {', '.join(NEEDED)}")
    rows = judged[list(NEEDED)].assign(aspect=judged["aspect"].fillna("unknown"))
    rows = rows.drop_duplicates(["node", "aspect", "execution_id"], keep="last")
    rows = rows.assign(length=rows["execution_id"].astype("str").str.len())
    order = ["node", "aspect", "started_at", "length", "execution_id"]
    rows = rows.sort_values(order, na_position="last", ignore_index=True)
    rows = rows.assign(is_flagged=flagged(rows), series=rows.groupby(["node", "aspect"]).ngroup())
    has_start = rows["started_at"].notna()  # or none of its series has one
    is_placed = (has_start | ~has_start.groupby(rows["series"]).transform("any")).to_numpy(dtype=bool)
    counted = rows[counting(rows) & is_placed].reset_index(drop=True)
    n_series = int(rows["series"].max()) + 1 if len(rows) else 0
    starts = np.searchsorted(counted["series"].to_numpy(), np.arange(n_series + 1)).astype(np.int64)
    is_flagged, at_s = counted["is_flagged"].to_numpy(dtype=bool), hours_of(counted) * HOUR_S
    followed = [follow(is_flagged[a:b], at_s[a:b], params) for a, b in pairwise(starts)]
    states = [state for series in followed for state in series.states]
    return Watched(
        _states(rows, counted, followed, starts, params),
        _alarms(counted, followed, starts),
        counted.assign(state=pd.Series(states, dtype="str"))[EXECUTIONS],
    )


def counting(judged: pd.DataFrame) -> Bools:
    """Which executions count: judged, and not disturbed by others. (n,)"""
    disturbed = judged["is_contaminated"].astype("boolean").fillna(False).to_numpy(dtype=bool)
    return np.asarray(~disturbed & judged["probability"].notna().to_numpy())


def flagged(judged: pd.DataFrame) -> Bools:
    """Which executions count as flagged: (n,)."""
    return np.asarray(judged["is_flagged"].astype("boolean").fillna(False).to_numpy(dtype=bool))


def _states(
    rows: pd.DataFrame, counted: pd.DataFrame, followed: list[Followed], starts: Ints, params: AlarmParams
) -> pd.DataFrame:
    """One row a series; those without an execution that counts are there as well."""
    named = rows.drop_duplicates("series")[["node", "aspect"]].reset_index(drop=True)
    n_rows = np.bincount(rows["series"].to_numpy(dtype=np.int64), minlength=len(followed))
    n_counted = np.diff(starts)
    flags = np.append(0, np.cumsum(counted["is_flagged"].to_numpy(dtype=bool)))
    recent = np.maximum(starts[1:] - params.last, starts[:-1])
    state = pd.Series([series.states[-1] if series.states else "healthy" for series in followed], dtype="str")
    since = np.array([_since(series) for series in followed], dtype=np.int64)
    since = np.where(since == NEVER, NEVER, starts[:-1] + since)
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


def _since(followed: Followed) -> int:
    """The place of the first flag behind an alarm that goes on, else of what cleared the last one, or NEVER."""
    if not followed.episodes:
        return NEVER
    last = followed.episodes[-1]
    return last.first if last.cleared == NEVER else last.cleared


def _alarms(counted: pd.DataFrame, followed: list[Followed], starts: Ints) -> pd.DataFrame:
    """One row an episode."""
    episodes = [(at, episode) for at, series in enumerate(followed) for episode in series.episodes]
    of = np.array([at for at, _ in episodes], dtype=np.int64)
    local = [(episode.first, episode.raised, episode.confirmed, episode.cleared) for _, episode in episodes]
    places = np.array(local, dtype=np.int64).reshape(-1, 4)
    first, raised, confirmed, cleared = np.where(places == NEVER, NEVER, places + starts[of, None]).T
    end = np.where(cleared == NEVER, starts[of + 1], cleared + 1)
    probability, is_flagged = counted["probability"].to_numpy(dtype=np.float64), counted["is_flagged"].to_numpy(bool)
    behind = [probability[a:b][is_flagged[a:b]] for a, b in zip(first, end, strict=True)]
    columns = {
        "node": _taken(counted["node"], first),
        "aspect": _taken(counted["aspect"], first),
        "state": pd.Series([episode.state for _, episode in episodes], dtype="str"),
        "first_execution": _taken(counted["execution_id"], first),
        "first_at": _taken(counted["started_at"], first),
    }
    for name, place in {"raised": raised, "confirmed": confirmed, "cleared": cleared}.items():
        columns[f"{name}_by"] = _taken(counted["execution_id"], place)
        columns[f"{name}_at"] = _taken(counted["started_at"], place)
    columns |= {
        "n_executions": pd.Series(end - first, dtype="int64"),
        "n_flagged": pd.Series([len(values) for values in behind], dtype="int64"),
        "probability": pd.Series([np.median(values) for values in behind], dtype="float64"),
    }
    return pd.DataFrame(columns).sort_values(BY_TIME, na_position="last", kind="stable", ignore_index=True)


def _taken(values: pd.Series, places: Ints) -> pd.Series:
    """The values at these places, missing where NEVER: (k,)."""
    return values.reindex(places).reset_index(drop=True)


Kind = Literal["suspected-degradation", "confirmed-degradation", "cleared-degradation"]
KINDS: dict[State, Kind] = {
    "suspected": "suspected-degradation",
    "confirmed": "confirmed-degradation",
    "cleared": "cleared-degradation",
}
BY = ("first_execution", "raised_by", "confirmed_by", "cleared_by")
AT = ("first_at", "raised_at", "confirmed_at", "cleared_at")


def kind_of(alarm: Mapping[str, Any]) -> Kind:
    """What an alarm has come to: each is told once for every kind that it has been of."""
    return KINDS[alarm["state"]]


def subject_of(alarm: Mapping[str, Any]) -> str:
    """Names an alarm for good: node, aspect and the execution that raised it."""
    return f"{alarm['node']}/{alarm['aspect']}/{alarm['raised_by']}"


def message_of(alarm: Mapping[str, Any], reasons: Sequence[str], params: AlarmParams) -> str:
    """One line for a person: since when, what it rests on, and what comes next. reasons: metrics in words."""
    where = f"node {alarm['node']}, {alarm['aspect']}"
    since = f"since {when(alarm['first_at'], alarm['first_execution'])}"
    flags = f"{alarm['n_flagged']} of {alarm['n_executions']} executions flagged"
    why = "; ".join(reasons) or NO_REASON
    clear = f"{params.clear} executions in a row without a flag"
    if alarm["state"] == "suspected":
        return f"{where}: looks degraded {since}, {flags}; {why}; a fresh benchmark will tell, {clear} clear it"
    if alarm["state"] == "confirmed":
        by = f"confirmed {when(alarm['confirmed_at'], alarm['confirmed_by'])}"
        return f"{where}: is degraded {since}, {by}, {flags}; {why}; leave the node out until {clear} clear it"
    by = f"cleared {when(alarm['cleared_at'], alarm['cleared_by'])} by {clear}"
    return f"{where}: no longer degraded, {by}; it was so {since}, {flags}"


def evidence_of(alarm: Mapping[str, Any]) -> dict[str, Any]:
    """The figures behind an alarm, as JSON takes them; what has not happened is None."""
    names = {name: None if pd.isna(alarm[name]) else str(alarm[name]) for name in BY}
    times = {name: None if pd.isna(alarm[name]) else utc_text(_moment(alarm[name])) for name in AT}
    counts = {name: int(alarm[name]) for name in ("n_executions", "n_flagged")}
    about = {"node": str(alarm["node"]), "aspect": str(alarm["aspect"]), "state": str(alarm["state"])}
    return {**about, **names, **times, **counts, "probability": float(alarm["probability"])}


def when(at: Any, execution: str) -> str:
    """When an execution started, if anybody knows, and its name; `at` may be missing."""
    return f"the execution {execution}" if pd.isna(at) else f"{_moment(at):%Y-%m-%d %H:%M} UTC ({execution})"


def _moment(at: Any) -> datetime:
    moment: datetime = pd.Timestamp(at).to_pydatetime()
    return moment


MOST_REASONS = 3


@dataclass(frozen=True)
class Degradations:
    """watched: states, alarms and executions of each node and aspect. raised: the alarms as ops.alarms has them."""

    watched: Watched
    raised: tuple[Alarm, ...]


def degradations(
    source: str,
    judged: pd.DataFrame,
    reasons: pd.DataFrame,
    model_id: str,
    params: AlarmParams,
    *,
    announced: Collection[str] = (),
    still_open: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> Degradations:
    """Follow every node and aspect of a source; an alarm for each that is suspected or confirmed.

    judged: with the columns NEEDED. reasons: of flagged executions, as reasons_of gives them. announced: subjects of
    alarms that somebody was told of before; these are also told when they have cleared. An alarm that goes on keeps
    the subject that it was announced under, also where a new model would have raised it some executions earlier or
    later.
    still_open: node and aspect of those of them that nothing has cleared yet; where this model has no such alarm at all
    it is withdrawn."""
    watched = watch_nodes(judged, params)
    raised: list[Alarm] = []
    known: set[str] = set()
    for row in watched.alarms.to_dict("records"):
        alarm = {str(key): value for key, value in row.items()}
        about = f"{alarm['node']}/{alarm['aspect']}/"
        if alarm["state"] == "cleared" and not any(name.startswith(about) for name in announced):
            continue
        behind = _executions_of(watched, alarm)
        subjects = [subject_of({**alarm, "raised_by": name}) for name in behind["execution_id"].tolist()]
        alarm_subject = subject_of(alarm)
        subject = (
            alarm_subject
            if alarm_subject in announced
            else next((name for name in subjects if name in announced), alarm_subject)
        )
        if alarm["state"] == "cleared" and subject not in announced:
            continue
        known |= {subject} if alarm["state"] == "cleared" else {subject, *subjects}
        why = [] if alarm["state"] == "cleared" else _reasons(behind, reasons)
        message = message_of(alarm, why, params)
        evidence = {**evidence_of(alarm), "reasons": why, "model_id": model_id}
        raised.append(Alarm(WORD, source, kind_of(alarm), subject, message, evidence))
    raised += _withdrawn(source, still_open, known, model_id)
    return Degradations(watched, tuple(raised))


def _withdrawn(
    source: str, still_open: Mapping[str, tuple[str, str]], known: Collection[str], model_id: str
) -> list[Alarm]:
    """The end of the alarms that are not known any more, by subject."""
    kind = KINDS["cleared"]
    alarms = []
    for subject, (node, aspect) in sorted(still_open.items()):
        if subject not in known:
            message = f"node {node}, {aspect}: not degraded by model {model_id}, which is in use now: withdrawn"
            evidence = {"node": node, "aspect": aspect, "state": "cleared", "reasons": [], "model_id": model_id}
            alarms.append(Alarm(WORD, source, kind, subject, message, evidence))
    return alarms


def _executions_of(watched: Watched, alarm: dict[str, Any]) -> pd.DataFrame:
    """The executions of an alarm in time order: from the first flagged one behind it until it was cleared."""
    executions = watched.executions
    executions = executions[
        (executions["node"] == alarm["node"]) & (executions["aspect"] == alarm["aspect"])
    ].reset_index(drop=True)
    ids = executions["execution_id"].tolist()
    end = len(ids) if pd.isna(alarm["cleared_by"]) else ids.index(alarm["cleared_by"]) + 1
    behind: pd.DataFrame = executions.iloc[ids.index(alarm["first_execution"]) : end]
    return behind


def _reasons(behind: pd.DataFrame, reasons: pd.DataFrame) -> list[str]:
    """The metrics that say so most often among the flagged executions behind an alarm, as the latest of these shows."""
    flagged = behind.loc[behind["is_flagged"].to_numpy(dtype=bool), "execution_id"]
    order = {name: place for place, name in enumerate(flagged.tolist())}
    rows = reasons[reasons["execution_id"].isin(order)]
    is_clear = rows["deviation"] >= LEAST_DEVIATION
    rows = rows[is_clear] if is_clear.any() else rows
    rows = rows.assign(at=rows["execution_id"].map(order)).sort_values(["at", "place"], kind="stable")
    by_metric = (
        rows.groupby("metric")
        .agg(n=("at", "size"), place=("place", "mean"))
        .sort_values(["n", "place"], ascending=[False, True], kind="stable")
    )
    latest = rows.drop_duplicates("metric", keep="last").set_index("metric", drop=False)
    return [reason_of_row(latest.loc[name]).words() for name in by_metric.index[:MOST_REASONS]]


def machine_time(executions: pd.DataFrame) -> pd.DataFrame:
    """What watching costs, one row a node: node, n_executions, mean_duration_s, executions_per_day, share of its time.

    executions: node, started_at, duration_s, as in nodes.executions, in any order. The pace is that of the record: n
    executions that start within a time t follow each other every t / (n - 1). Unknown starts and durations are left
    out; NaN where fewer than two starts, or no duration, are known."""
    started_s = (executions["started_at"] - pd.Timestamp(0)).dt.total_seconds()
    rows = pd.DataFrame(
        {
            "node": executions["node"].astype(str),
            "started_s": started_s.astype("float64"),
            "duration_s": executions["duration_s"].astype("float64"),
        }
    )
    by_node = rows.groupby("node", sort=True)
    starts = by_node["started_s"]
    n_starts, span_s = starts.count().to_numpy(dtype=np.float64), (starts.max() - starts.min()).to_numpy()
    per_day = np.full(len(span_s), np.nan)
    np.divide((n_starts - 1) * DAY_S, span_s, out=per_day, where=span_s > 0)
    costs = pd.DataFrame(
        {
            "n_executions": by_node.size().astype("int64"),
            "mean_duration_s": by_node["duration_s"].mean(),
            "executions_per_day": per_day,
        }
    )
    share = costs["mean_duration_s"] * costs["executions_per_day"] / DAY_S
    return costs.assign(share=share).reset_index()[OF_TIME]
