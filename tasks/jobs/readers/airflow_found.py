"""A record of an Airflow export, as its JSON or CSV gives it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

EXPECTED = 'an export of Airflow: {"task_instances": […]} or a CSV of the table task_instance with its header'
SHOWN = (
    "dag_id", "task_id", "dag_run_id", "run_id", "map_index", "try_number", "state", "start_date", "end_date",
    "duration",
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """One record, or why it is none. raw: the text of it, as far as it may be shown."""

    place: int
    record: dict[str, Any] | None
    reason: str
    raw: str


def shown(record: Mapping[str, Any]) -> str:
    """A few fields, and no others: rendered fields, notes and configurations may hold secrets."""
    return json.dumps({name: record[name] for name in SHOWN if name in record}, default=str)
