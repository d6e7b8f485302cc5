"""Degradation of nodes: verdicts become states by stated rules, and alarms that name the metrics that say so."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tasks.nodes.fingerprint.alarm_params import AlarmParams
from tasks.nodes.fingerprint.alarm_words import evidence_of, kind_of, message_of, subject_of
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
) -> Degradations:
    """Follow every node and aspect of a source; an alarm for each that is suspected or confirmed.

    judged: as alarms.NEEDED. reasons: execution_id, metric, deviation, of flagged executions. told: subjects of alarms
    that somebody was told of before; of those it is also told when they have cleared."""
    watched = watch_nodes(judged, params)
    raised = []
    for row in watched.alarms.to_dict("records"):
        alarm = {str(key): value for key, value in row.items()}
        subject = subject_of(alarm)
        if alarm["state"] == "cleared" and subject not in told:
            continue
        why = [] if alarm["state"] == "cleared" else _reasons(watched, reasons, alarm)
        message = "; ".join([message_of(alarm), *([f"it shows in {', '.join(why)}"] if why else [])])
        evidence = {**evidence_of(alarm), "reasons": why, "model_id": model_id}
        raised.append(Alarm(WORD, source, kind_of(alarm), subject, message, evidence))
    return Degradations(watched, tuple(raised))


def _reasons(watched: Watched, reasons: pd.DataFrame, alarm: dict[str, Any]) -> list[str]:
    """The metrics that say so most often among the flagged executions since the first behind an alarm."""
    own = watched.executions
    own = own[(own["node"] == alarm["node"]) & (own["aspect"] == alarm["aspect"])].reset_index(drop=True)
    since = own.index[own["execution_id"] == alarm["first_execution"]]
    behind = own[(own.index >= since.min()) & own["is_flagged"]]
    said = reasons[reasons["execution_id"].isin(behind["execution_id"])]
    each = said.groupby("metric")["deviation"].agg(["size", "median"])
    ordered = each.sort_values(["size", "median"], ascending=[False, True]).head(MOST_REASONS)
    return [f"{_metric(str(name))} ({row['median']:+.1f} deviations)" for name, row in ordered.iterrows()]


def _metric(column: str) -> str:
    """`<type>/<metric>` in words: the metric of the benchmark."""
    kind, _, metric = column.rpartition("/")
    return f"{metric} of {kind.split('@')[0]}" if kind else metric
