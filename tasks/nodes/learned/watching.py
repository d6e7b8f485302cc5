"""Degradation of nodes: verdicts become states by stated rules, and alarms that name the metrics that say so."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pandas as pd

from tasks.nodes.detect.reasons import reason_of_row
from tasks.nodes.fingerprint.alarm_params import AlarmParams
from tasks.nodes.fingerprint.alarm_words import KINDS, evidence_of, kind_of, message_of, subject_of
from tasks.nodes.fingerprint.alarms import Watched, watch_nodes
from tasks.nodes.learned.names import WORD
from tasks.warehouse.alarms import Alarm

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
    told: Collection[str] = (),
    still_open: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> Degradations:
    """Follow every node and aspect of a source; an alarm for each that is suspected or confirmed.

    judged: as alarms.NEEDED. reasons: of flagged executions, as detect/reasons.py has them. told: subjects of alarms
    that somebody was told of before; of those it is also told when they have cleared. An alarm that goes on keeps the
    name that it was told under, also where a new model would have raised it some executions earlier or later.
    still_open: node and aspect of those of them that nothing has cleared yet; where this model has no such alarm at all
    it is withdrawn."""
    watched = watch_nodes(judged, params)
    raised: list[Alarm] = []
    known: set[str] = set()
    for row in watched.alarms.to_dict("records"):
        alarm = {str(key): value for key, value in row.items()}
        about = f"{alarm['node']}/{alarm['aspect']}/"
        if alarm["state"] == "cleared" and not any(one.startswith(about) for one in told):
            continue
        behind = _executions_of(watched, alarm)
        subjects = [subject_of({**alarm, "raised_by": one}) for one in behind["execution_id"].tolist()]
        subject = known_as(subject_of(alarm), subjects, told)
        if alarm["state"] == "cleared" and subject not in told:
            continue
        known |= {subject} if alarm["state"] == "cleared" else {subject, *subjects}
        why = [] if alarm["state"] == "cleared" else _reasons(behind, reasons)
        message = "; ".join([message_of(alarm), *([f"it shows in {', '.join(why)}"] if why else [])])
        evidence = {**evidence_of(alarm), "reasons": why, "model_id": model_id}
        raised.append(Alarm(WORD, source, kind_of(alarm), subject, message, evidence))
    raised += _withdrawn(source, still_open, known, model_id)
    return Degradations(watched, tuple(raised))


def known_as(own: str, subjects: list[str], told: Collection[str]) -> str:
    """The subject of an alarm: its own, or one that somebody was told of before.

    subjects: what it would be called if another of its executions had raised it, in time order."""
    return own if own in told else next((one for one in subjects if one in told), own)


def _withdrawn(
    source: str, still_open: Mapping[str, tuple[str, str]], known: Collection[str], model_id: str
) -> list[Alarm]:
    """The end of the alarms that are not known any more, by subject."""
    kind = KINDS["cleared"]
    found = []
    for subject, (node, aspect) in sorted(still_open.items()):
        if subject not in known:
            message = f"node {node}, {aspect}: not degraded by model {model_id}, which is in use now: withdrawn"
            evidence = {"node": node, "aspect": aspect, "state": "cleared", "reasons": [], "model_id": model_id}
            found.append(Alarm(WORD, source, kind, subject, message, evidence))
    return found


def _executions_of(watched: Watched, alarm: dict[str, Any]) -> pd.DataFrame:
    """The executions of an alarm in time order: from the first flagged one behind it until it was cleared."""
    own = watched.executions
    own = own[(own["node"] == alarm["node"]) & (own["aspect"] == alarm["aspect"])].reset_index(drop=True)
    ids = own["execution_id"].tolist()
    end = len(ids) if pd.isna(alarm["cleared_by"]) else ids.index(alarm["cleared_by"]) + 1
    behind: pd.DataFrame = own.iloc[ids.index(alarm["first_execution"]) : end]
    return behind


def _reasons(behind: pd.DataFrame, reasons: pd.DataFrame) -> list[str]:
    """The metrics that say so most often among the flagged executions behind an alarm, as the latest of these shows."""
    flagged = behind.loc[behind["is_flagged"].to_numpy(dtype=bool), "execution_id"]
    order = {name: place for place, name in enumerate(flagged.tolist())}
    said = reasons[reasons["execution_id"].isin(order)]
    said = said.assign(at=said["execution_id"].map(order)).sort_values(["at", "place"], kind="stable")
    each = (
        said.groupby("metric")
        .agg(n=("at", "size"), place=("place", "mean"))
        .sort_values(["n", "place"], ascending=[False, True], kind="stable")
    )
    latest = said.drop_duplicates("metric", keep="last").set_index("metric", drop=False)
    return [reason_of_row(latest.loc[name]).words() for name in each.index[:MOST_REASONS]]
