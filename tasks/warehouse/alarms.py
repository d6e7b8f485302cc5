"""What watching found: rows of ops.alarms, each raised once, and announced until that has succeeded once."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from tasks.warehouse.connection import Connection, fetch, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import insert_rows

ID_CHARS = 16


@dataclass(frozen=True)
class Alarm:
    """One thing that a person should know. subject: what it happened to; evidence: the figures behind it."""

    word: str
    source: str
    kind: str
    subject: str
    message: str
    evidence: dict[str, Any]

    @property
    def alarm_id(self) -> str:
        """Hash of word, source, kind and subject: the same happening found twice is one alarm."""
        identity = json.dumps([self.word, self.source, self.kind, self.subject])
        return hashlib.sha256(identity.encode()).hexdigest()[:ID_CHARS]


def raise_alarms(connection: Connection, alarms: Sequence[Alarm], *, now: datetime | None = None) -> list[str]:
    """Write those alarms that are new, in one transaction; returns their ids in the given order."""
    raised_at = (now or datetime.now(UTC)).replace(tzinfo=None)
    by_id = {alarm.alarm_id: alarm for alarm in alarms}
    known = connection.execute(
        "SELECT alarm_id FROM ops.alarms WHERE list_contains($ids, alarm_id)", {"ids": list(by_id)}
    ).fetchall()
    new = {key: by_id[key] for key in by_id.keys() - {key for (key,) in known}}
    rows = [
        vars(alarm) | {"alarm_id": key, "evidence": json.dumps(alarm.evidence, sort_keys=True)}
        for key, alarm in sorted(new.items())
    ]
    with transaction(connection):
        insert_rows(connection, "ops.alarms", pd.DataFrame(rows), {"raised_at": raised_at})
    return [key for key in by_id if key in new]


def unannounced(warehouse: Warehouse, word: str, source: str) -> list[str]:
    """Ids of the alarms of a source that nobody was told of yet: new ones, and those of a run that was killed."""
    rows = fetch(
        warehouse,
        "SELECT alarm_id FROM ops.alarms WHERE word = $word AND source = $source AND announced_at IS NULL "
        "ORDER BY raised_at, alarm_id",
        {"word": word, "source": source},
    )
    return [str(alarm_id) for alarm_id in rows["alarm_id"]]


def mark_announced(warehouse: Warehouse, ids: Sequence[str]) -> None:
    """Write down that these alarms were sent out; the first time counts."""
    with writing(warehouse) as connection, transaction(connection):
        connection.execute(
            "UPDATE ops.alarms SET announced_at = $now WHERE announced_at IS NULL AND list_contains($ids, alarm_id)",
            {"now": datetime.now(UTC).replace(tzinfo=None), "ids": list(ids)},
        )


def read_alarms(warehouse: Warehouse, ids: Sequence[str] | None = None) -> pd.DataFrame:
    """Alarms, the latest first: those with these ids, or all of them."""
    return fetch(
        warehouse,
        """SELECT * FROM ops.alarms WHERE $ids IS NULL OR list_contains($ids, alarm_id)
        ORDER BY raised_at DESC, word, source, kind, subject""",
        {"ids": None if ids is None else list(ids)},
    )
