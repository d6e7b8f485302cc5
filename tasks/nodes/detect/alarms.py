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
from typing import Any, Literal

import pandas as pd

from tasks.nodes.node_words import CLEARED_KIND, GOING_ON, LEAST_DEVIATION, NO_REASON, WORD, reason_of_row
from tasks.nodes.params import AlarmParams
from tasks.nodes.type_tables import HOUR_S, Bools, Floats, hours_of, is_contaminated, known
from tasks.quantities import utc_text
from tasks.warehouse.alarms import Alarm

State = Literal["healthy", "suspected", "confirmed", "cleared"]
DAY_S = 86_400.0
WINDOW_DAYS = 30.0  # executions longer ago raise no alarm together with the newest


@dataclass(frozen=True)
class Episode:
    """One alarm, by places in the row of executions, from 0.

    first: the first flag behind it. raised: the execution that raised it. confirmed, cleared: None if none has."""

    first: int
    raised: int
    confirmed: int | None = None
    cleared: int | None = None

    @property
    def state(self) -> State:
        """Of the alarm."""
        if self.cleared is not None:
            return "cleared"
        return "suspected" if self.confirmed is None else "confirmed"


def follow(is_flagged: Bools, at_s: Floats, params: AlarmParams) -> list[Episode]:
    """The alarms about one node and aspect in their order, by its executions that count; the last may be going on.

    is_flagged: (n,) in time order. at_s: (n,) their times in seconds, NaN where unknown: those are never too old."""
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
    return episodes


STATES = {
    "node": "str", "aspect": "str", "state": "str", "since": "datetime64[us]", "since_execution": "str",
    "n_executions": "int64", "n_recent_flagged": "int64", "n_left_out": "int64", "last_at": "datetime64[us]",
    "asks_for_benchmark": "bool",
}  # fmt: skip
ENDS = {"first": "first_execution", "raised": "raised_by", "confirmed": "confirmed_by", "cleared": "cleared_by"}
ALARMS: dict[str, Any] = {
    "node": "str", "aspect": "str", "state": "str", **dict.fromkeys(ENDS.values(), "str"),
    **{f"{end}_at": "datetime64[us]" for end in ENDS}, "executions": object, "flagged": object,
    "probability": "float64",
}  # fmt: skip


@dataclass(frozen=True)
class Watched:
    """states: one row a node and aspect: node, aspect, state (healthy: no alarm so far), since and since_execution (of
    an alarm that goes on the first flagged one behind it, else what cleared the last one; missing without any),
    n_executions (that count), n_recent_flagged (of the last of them), n_left_out, last_at (start of the newest that
    counts), asks_for_benchmark (suspected).

    alarms: one row an alarm, by the time it was raised: node, aspect, state (suspected, confirmed or cleared),
    first_execution and first_at (the first flagged one behind it, and its start), raised_by and raised_at,
    confirmed_by and confirmed_at, cleared_by and cleared_at (execution and its start; missing if none), executions (ids
    in time order, from the first on until it was cleared), flagged (those of them that are), probability (median of
    these). Node, aspect and raised_by name an alarm for good."""

    states: pd.DataFrame
    alarms: pd.DataFrame

    @property
    def excluded(self) -> tuple[str, ...]:
        """Nodes with a confirmed alarm in any aspect: no work should go there."""
        confirmed = self.states["node"][self.states["state"] == "confirmed"]
        return tuple(sorted({str(node) for node in confirmed}))


def watch_nodes(judged: pd.DataFrame, params: AlarmParams) -> Watched:
    """Follow each node and aspect through its executions.

    judged: one row a verdict, in any order, with node, aspect, execution_id, started_at, probability (NaN where nothing
    could be said), is_flagged and is_contaminated; of an execution that is there twice the last row counts."""
    rows = judged.assign(aspect=judged["aspect"].fillna("unknown"))
    rows = rows.drop_duplicates(["node", "aspect", "execution_id"], keep="last")
    rows = rows.assign(length=rows["execution_id"].astype("str").str.len())
    order = ["node", "aspect", "started_at", "length", "execution_id"]
    rows = rows.sort_values(order, na_position="last", ignore_index=True)
    rows = rows.assign(is_flagged=flagged(rows), counts=~is_contaminated(rows) & rows["probability"].notna())
    states, alarms = [], []
    for (node, aspect), series in rows.groupby(["node", "aspect"]):
        has_start = series["started_at"].notna()  # or none of the series has one
        own = series[series["counts"] & (has_start | (not has_start.any()))]
        is_flagged = own["is_flagged"].to_numpy(dtype=bool)
        episodes = follow(is_flagged, hours_of(own) * HOUR_S, params)
        about = {"node": node, "aspect": aspect}
        alarms += [about | _alarm(own, episode) for episode in episodes]
        last = episodes[-1] if episodes else None
        since = None if last is None else last.first if last.cleared is None else last.cleared
        states.append({
            **about, "state": last.state if last else "healthy",
            "since": _cell(own["started_at"], since), "since_execution": _cell(own["execution_id"], since),
            "n_executions": len(own), "n_recent_flagged": is_flagged[-params.last :].sum(),
            "n_left_out": len(series) - len(own), "last_at": own["started_at"].iloc[-1] if len(own) else pd.NaT,
            "asks_for_benchmark": last is not None and last.state == "suspected",
        })  # fmt: skip
    told = pd.DataFrame(alarms, columns=list(ALARMS)).astype(ALARMS)
    by_time = told.sort_values(["raised_at", "node", "aspect"], na_position="last", kind="stable", ignore_index=True)
    return Watched(pd.DataFrame(states, columns=list(STATES)).astype(STATES), by_time)


def flagged(judged: pd.DataFrame) -> Bools:
    """Which executions count as flagged: (n,)."""
    return known(judged["is_flagged"]).to_numpy(dtype=bool)


def _alarm(own: pd.DataFrame, episode: Episode) -> dict[str, Any]:
    """What Watched says of an alarm, without node and aspect. own: the executions that count."""
    behind = own.iloc[episode.first : None if episode.cleared is None else episode.cleared + 1]
    flags = behind[behind["is_flagged"]]
    ids = {"executions": behind["execution_id"].tolist(), "flagged": flags["execution_id"].tolist()}
    row = {"state": episode.state, "probability": flags["probability"].median(), **ids}
    for end, name in ENDS.items():
        place = getattr(episode, end)
        row |= {name: _cell(own["execution_id"], place), f"{end}_at": _cell(own["started_at"], place)}
    return row


def _cell(column: pd.Series, place: int | None) -> Any:
    """The value at a place; missing without one."""
    return None if place is None else column.iloc[place]


def message_of(alarm: Mapping[Any, Any], reasons: Sequence[str], params: AlarmParams) -> str:
    """One line for a person: since when, what it rests on, and what comes next. reasons: metrics in words."""
    where = f"node {alarm['node']}, {alarm['aspect']}"
    since = f"since {when(alarm['first_at'], alarm['first_execution'])}"
    flags = f"{len(alarm['flagged'])} of {len(alarm['executions'])} executions flagged"
    why = "; ".join(reasons) or NO_REASON
    clear = f"{params.clear} executions in a row without a flag"
    if alarm["state"] == "suspected":
        return f"{where}: looks degraded {since}, {flags}; {why}; a fresh benchmark will tell, {clear} clear it"
    if alarm["state"] == "confirmed":
        by = f"confirmed {when(alarm['confirmed_at'], alarm['confirmed_by'])}"
        return f"{where}: is degraded {since}, {by}, {flags}; {why}; leave the node out until {clear} clear it"
    by = f"cleared {when(alarm['cleared_at'], alarm['cleared_by'])} by {clear}"
    return f"{where}: no longer degraded, {by}; it was so {since}, {flags}"


def evidence_of(alarm: Mapping[Any, Any]) -> dict[str, Any]:
    """The figures behind an alarm, as JSON takes them; what has not happened is None."""
    names = {name: None if pd.isna(alarm[name]) else str(alarm[name]) for name in ENDS.values()}
    times = {f"{end}_at": alarm[f"{end}_at"] for end in ENDS}
    told = {name: None if pd.isna(at) else utc_text(_moment(at)) for name, at in times.items()}
    counts = {"n_executions": len(alarm["executions"]), "n_flagged": len(alarm["flagged"])}
    about = {name: str(alarm[name]) for name in ("node", "aspect", "state")}
    return {**about, **names, **told, **counts, "probability": float(alarm["probability"])}


def when(at: Any, execution: str) -> str:
    """When an execution started, if anybody knows, and its name; `at` may be missing."""
    return f"the execution {execution}" if pd.isna(at) else f"{_moment(at):%Y-%m-%d %H:%M} UTC ({execution})"


def _moment(at: Any) -> datetime:
    moment: datetime = pd.Timestamp(at).to_pydatetime()
    return moment


MOST_REASONS = 3


def degradations(
    source: str,
    judged: pd.DataFrame,
    reasons: pd.DataFrame,
    model_id: str,
    params: AlarmParams,
    *,
    announced: Collection[str],
    still_open: Mapping[str, tuple[str, str]],
) -> tuple[Watched, list[Alarm]]:
    """Follow every node and aspect of a source; an alarm, as in ops.alarms, for each that is suspected or confirmed.

    judged: as watch_nodes has it. reasons: of flagged executions, as reasons_of gives them. announced: subjects of
    alarms that somebody was told of before; these are also told when they have cleared. An alarm that goes on keeps
    the subject that it was announced under, also where a new model would have raised it some executions earlier or
    later.
    still_open: node and aspect of those of them that nothing has cleared yet; where this model has no such alarm at all
    it is withdrawn."""
    watched = watch_nodes(judged, params)
    raised: list[Alarm] = []
    known: set[str] = set()
    for alarm in watched.alarms.to_dict("records"):
        subjects = [f"{alarm['node']}/{alarm['aspect']}/{name}" for name in (alarm["raised_by"], *alarm["executions"])]
        subject = next((name for name in subjects if name in announced), subjects[0])
        is_over = alarm["state"] == "cleared"
        if is_over and subject not in announced:
            continue
        known |= {subject} if is_over else {subject, *subjects}
        why = [] if is_over else _reasons(alarm["flagged"], reasons)
        evidence = {**evidence_of(alarm), "reasons": why, "model_id": model_id}
        message, kind = message_of(alarm, why, params), f"{alarm['state']}-degradation"
        raised.append(Alarm(WORD, source, kind, subject, message, evidence))
    for subject, (node, aspect) in sorted(still_open.items()):
        if subject not in known:
            message = f"node {node}, {aspect}: not degraded by model {model_id}, which is in use now: withdrawn"
            evidence = {"node": node, "aspect": aspect, "state": "cleared", "reasons": [], "model_id": model_id}
            raised.append(Alarm(WORD, source, CLEARED_KIND, subject, message, evidence))
    return watched, raised


def _reasons(flagged: Sequence[str], reasons: pd.DataFrame) -> list[str]:
    """The metrics that say so most often among the flagged executions of an alarm, as the latest of these shows."""
    order = {name: place for place, name in enumerate(flagged)}
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


def time_shares(executions: pd.DataFrame) -> pd.Series:
    """What watching costs: the share of its time that each node runs benchmarks, by name.

    executions: node, started_at, duration_s, as in nodes.executions, in any order. The pace is that of the record: n
    executions that start within a time t follow each other every t / (n - 1). Unknown starts and durations are left
    out; NaN where fewer than two starts, or no duration, are known."""
    by_node = executions.groupby("node")
    starts = by_node["started_at"]
    span_s = (starts.max() - starts.min()).dt.total_seconds()
    shares: pd.Series = by_node["duration_s"].mean() * (starts.count() - 1) / span_s.where(span_s > 0)
    return shares
