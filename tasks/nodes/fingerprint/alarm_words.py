"""Alarms about nodes in words, and as what ops.alarms keeps of them. Rows are those of Watched.alarms."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import pandas as pd

from tasks.nodes.fingerprint.alarm_states import State
from tasks.quantities import share
from tasks.utc import utc_text

Kind = Literal["suspected-degradation", "confirmed-degradation", "cleared-degradation"]
KINDS: dict[State, Kind] = {
    "suspected": "suspected-degradation",
    "confirmed": "confirmed-degradation",
    "cleared": "cleared-degradation",
}
BY = ("first_execution", "raised_by", "confirmed_by", "cleared_by")
AT = ("raised_at", "confirmed_at", "cleared_at")


def kind_of(alarm: Mapping[str, Any]) -> Kind:
    """What an alarm has come to: each is told once for every kind that it has been of."""
    return KINDS[alarm["state"]]


def subject_of(alarm: Mapping[str, Any]) -> str:
    """Names an alarm for good: node, aspect and the execution that raised it."""
    return f"{alarm['node']}/{alarm['aspect']}/{alarm['raised_by']}"


def message_of(alarm: Mapping[str, Any]) -> str:
    """One line for a person."""
    where = f"node {alarm['node']}, {alarm['aspect']}"
    flags = f"{alarm['n_flagged']} of {alarm['n_executions']} executions flagged from {alarm['first_execution']} on"
    sure = f"median probability {share(float(alarm['probability']))}"
    if alarm["state"] == "suspected":
        by = f"{alarm['raised_by']}{_when(alarm['raised_at'])}"
        return f"{where}: looks degraded since {by}; {flags}, {sure}; a fresh benchmark will tell"
    if alarm["state"] == "confirmed":
        by = f"{alarm['confirmed_by']}{_when(alarm['confirmed_at'])}"
        return f"{where}: is degraded, confirmed by {by}; {flags}, {sure}; leave the node out"
    by = f"{alarm['cleared_by']}{_when(alarm['cleared_at'])}"
    return f"{where}: no longer degraded, cleared by {by}; {flags}, {sure}"


def evidence_of(alarm: Mapping[str, Any]) -> dict[str, Any]:
    """The figures behind an alarm, as JSON takes them; what has not happened is None."""
    names = {name: None if pd.isna(alarm[name]) else str(alarm[name]) for name in BY}
    times = {name: None if pd.isna(alarm[name]) else utc_text(_moment(alarm[name])) for name in AT}
    counts = {name: int(alarm[name]) for name in ("n_executions", "n_flagged")}
    told = {"node": str(alarm["node"]), "aspect": str(alarm["aspect"]), "state": str(alarm["state"])}
    return {**told, **names, **times, **counts, "probability": float(alarm["probability"])}


def _when(at: Any) -> str:
    return "" if pd.isna(at) else f" at {_moment(at):%Y-%m-%d %H:%M} UTC"


def _moment(at: Any) -> datetime:
    moment: datetime = pd.Timestamp(at).to_pydatetime()
    return moment
