"""Alarms as Prefect events `whorl.<word>.alarm`: an automation can mail them or send them to a webhook."""

import json
import uuid
from typing import Any

import pandas as pd
from prefect.events import emit_event

from tasks.quantities import utc_text
from tasks.warehouse.alarms import mark_announced, read_alarms
from tasks.warehouse.place import Warehouse

MAX_EVENTS = 20  # a person reads twenty mails of one run, not five hundred


def announce(warehouse: Warehouse, ids: list[str]) -> int:
    """Emit one event for each alarm, the latest first; returns how many were emitted.

    After MAX_EVENTS of one run a last event says how many more there are: all of them stand in ops.alarms."""
    if not ids:
        return 0
    found = read_alarms(warehouse, ids=ids, limit=len(ids))
    for alarm in found.head(MAX_EVENTS).to_dict("records"):
        _emit({str(key): value for key, value in alarm.items()})
    more = len(found) - MAX_EVENTS
    if more > 0:
        _emit(_rest(found, more))
    mark_announced(warehouse, ids)  # killed before this line, the next run emits the same events again
    return min(len(found), MAX_EVENTS + 1)


def _emit(alarm: dict[str, Any]) -> None:
    emit_event(
        event=f"whorl.{alarm['word']}.alarm",
        resource={
            "prefect.resource.id": f"whorl.alarm.{alarm['alarm_id']}",
            "prefect.resource.name": str(alarm["subject"]),
            "whorl.source": str(alarm["source"]),
            "whorl.kind": str(alarm["kind"]),
        },
        payload={
            "message": alarm["message"],
            "evidence": json.loads(alarm["evidence"]),
            "source": alarm["source"],
            "kind": alarm["kind"],
            "subject": alarm["subject"],
            "raised_at": utc_text(pd.Timestamp(alarm["raised_at"])),
        },
        id=uuid.uuid5(uuid.NAMESPACE_URL, f"whorl:alarm:{alarm['alarm_id']}"),  # emitted again, it is the same event
    )


def _rest(found: pd.DataFrame, more: int) -> dict[str, Any]:
    first = found.iloc[0]
    ids = ",".join(sorted(found["alarm_id"]))
    return {
        "alarm_id": f"more-{uuid.uuid5(uuid.NAMESPACE_URL, ids).hex[:16]}",
        "word": first["word"],
        "source": first["source"],
        "kind": "more",
        "subject": f"{more} more alarms",
        "message": f"{more} more alarms of source {first['source']}: see the table of the run, or ops.alarms",
        "evidence": json.dumps({"n_alarms": len(found)}),
        "raised_at": first["raised_at"],
    }
