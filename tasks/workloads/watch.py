"""The scheduled check of what runs: an alarm where it is not what should run, or unknown.

Looks at one machine, one after the other, are judged against what should have run; the same deviation going on is one
episode, and one alarm."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import pandas as pd

from tasks.quantities import digits, share, utc_text
from tasks.warehouse.alarms import Alarm, raise_alarms
from tasks.warehouse.connection import fetch, writing
from tasks.warehouse.place import Warehouse
from tasks.workloads.params import WatchParams

logger = logging.getLogger(__name__)
WORD = "workloads"
MOST_LOOKS = 10_000  # of a machine: how far back an episode is followed
# The last identification of each run, in the order in which they ran, those without a time first.
HISTORY = """
WITH said AS (
    SELECT * FROM workloads.identifications WHERE source = $source
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY identified_at DESC, model_id DESC) = 1
),
final AS (
    SELECT said.* EXCLUDE (source), coalesce(runs.machine, '') AS machine, runs.started_at,
        runs.workload AS label
    FROM said JOIN workloads.runs AS runs ON runs.source = $source AND runs.run_id = said.run_id
    QUALIFY row_number() OVER (
        PARTITION BY machine ORDER BY started_at DESC NULLS LAST, said.run_id DESC) <= $most
)
SELECT * FROM final ORDER BY machine, started_at NULLS FIRST, run_id
"""
Kind = Literal["as-expected", "unexpected-workload", "unknown-workload"]


@dataclass(frozen=True)
class Look:
    """One identified run on a machine. workload: None where it was unknown, or too unsure to count.

    label: what it says of itself, None for a run that was only looked at."""

    run_id: str
    started_at: datetime | None
    workload: str | None
    label: str | None = None


@dataclass(frozen=True)
class Verdict:
    """What a look means. expected: what may run, empty if nobody could say. since: first look of the same episode."""

    look: Look
    kind: Kind
    expected: tuple[str, ...]
    since: Look


def verdicts_of(looks: Sequence[Look], expected: Sequence[str]) -> list[Verdict]:
    """Judge the looks at one machine, in their order.

    expected: workloads that may run. If empty, a run with a label should be of it, and any other of what the last look
    found that was known and had no label: a change is told once and then counts as usual. An unknown workload is always
    an episode, which goes on until something known runs."""
    found: list[Verdict] = []
    confirmed: str | None = None
    for look in looks:
        usual = look.label or confirmed
        may_run = tuple(expected) or ((usual,) if usual is not None else ())
        kind = _kind(look, may_run)
        before = found[-1] if found else None
        goes_on = before is not None and (before.kind, before.look.workload) == (kind, look.workload)
        found.append(Verdict(look, kind, may_run, before.since if before is not None and goes_on else look))
        if look.label is None:
            confirmed = look.workload or confirmed
    return found


def _kind(look: Look, may_run: Sequence[str]) -> Kind:
    if look.workload is None:
        return "unknown-workload"
    return "as-expected" if not may_run or look.workload in may_run else "unexpected-workload"


def watch_runs(
    warehouse: Warehouse, source: str, run_ids: Sequence[str], params: WatchParams, *, now: datetime | None = None
) -> list[str]:
    """Raise an alarm for those of these identified runs that are not what should run; returns ids of the new alarms.

    The same deviation on the same machine, look after look, is one alarm. now: time of the alarms, UTC."""
    asked = set(run_ids)
    history = fetch(warehouse, HISTORY, {"source": source, "most": MOST_LOOKS})
    alarms: dict[str, Alarm] = {}
    for machine, rows in history.groupby("machine", sort=True):
        found = {str(row["run_id"]): _named(row) for row in rows.to_dict("records")}
        looks = [_look(row, params) for row in found.values()]
        for verdict in verdicts_of(looks, params.expected):
            if verdict.look.run_id in asked and verdict.kind != "as-expected":
                alarm = _alarm(source, str(machine), verdict, found[verdict.look.run_id])
                alarms.setdefault(alarm.alarm_id, alarm)
    if not alarms:
        return []
    with writing(warehouse) as connection:
        raised = raise_alarms(connection, list(alarms.values()), now=now)
    logger.info(
        "%d deviations among %d runs of source %s, %d of them new", len(alarms), len(asked), source, len(raised)
    )
    return raised


def _named(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): value for key, value in row.items()}


def _look(row: Mapping[str, Any], params: WatchParams) -> Look:
    is_sure = bool(row["is_known"]) and row["confidence"] >= params.min_confidence
    started_at = None if pd.isna(row["started_at"]) else pd.Timestamp(row["started_at"]).to_pydatetime()
    label = None if pd.isna(row["label"]) else str(row["label"])
    return Look(str(row["run_id"]), started_at, str(row["workload"]) if is_sure else None, label)


def _alarm(source: str, machine: str, verdict: Verdict, row: Mapping[str, Any]) -> Alarm:
    """The alarm of an episode: its subject is the run that it began with, so that it is raised once."""
    look, since = verdict.look, verdict.since
    where = f" on {machine}" if machine else ""
    when = f" at {since.started_at:%Y-%m-%d %H:%M} UTC" if since.started_at else ""
    should = " or ".join(name for name in verdict.expected if name != row["workload"])
    instead = f", not {should}" if should else ""
    sure = f"{share(float(row['confidence']))} sure"
    nearest = f"{row['nearest']} (distance {digits(float(row['nearest_distance']), 3)})"
    if verdict.kind == "unexpected-workload":
        what = f"{look.workload} runs{where}{instead}: {sure}"
    elif row["is_known"]:
        what = f"it is unsure what runs{where}{instead}: most likely {row['workload']}, {sure}"
    else:
        what = f"an unknown workload runs{where}{instead}: nearest is {nearest}"
    message = f"{what}; since run {since.run_id}{when}"
    evidence = {
        "run_id": look.run_id,
        "machine": machine or None,
        "label": None if pd.isna(row["label"]) else row["label"],
        "expected": list(verdict.expected),
        "workload": None if pd.isna(row["workload"]) else row["workload"],
        "is_known": bool(row["is_known"]),
        "confidence": float(row["confidence"]),
        "unknown_score": float(row["unknown_score"]),
        "nearest": row["nearest"],
        "nearest_distance": float(row["nearest_distance"]),
        "reasons": [str(reason) for reason in row["reasons"]],
        "model_id": row["model_id"],
        "since_run_id": since.run_id,
        "started_at": utc_text(since.started_at) if since.started_at else None,
        "known_at": utc_text(look.started_at) if look.started_at else None,
    }
    return Alarm(WORD, source, verdict.kind, since.run_id, message, evidence)
