"""The fields of an Airflow task instance, as the API and the table of its database name them, and what they mean."""

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from tasks.jobs.params import Status
from tasks.jobs.statuses import status_of, unknown_status

Record = Mapping[str, Any]

NOT_YET = ("", "none", "null")  # no state: nobody has decided yet whether the task runs
NEEDED = ("dag_id", "task_id", "state", "start_date", "end_date")
RUN_IDS = ("dag_run_id", "run_id", "execution_date")  # the API, the database, and both before Airflow 2.2
QUEUED = ("queued_when", "queued_dttm")
SCHEDULED = ("scheduled_when", "scheduled_dttm")
WITHOUT_MAP = -1
TEXTS = ("dag_id", "task_id", *RUN_IDS, "state", "pool", "queue", "unixname")
SHOWN_CHARS = 60
ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?\s*(Z|[+-]\d\d(:?\d\d)?)?")
SHORT_OFFSET = re.compile(r"[+-]\d\d$")  # +00, as PostgreSQL writes it


def missing_fields(names: set[str]) -> list[str]:
    """What an export with these fields lacks."""
    lacks = [name for name in NEEDED if name not in names]
    return lacks if names & set(RUN_IDS) else [*lacks, RUN_IDS[0]]


def run_row(record: Record, place: int, mapped: Mapping[str, Status]) -> dict[str, object] | None:
    """One row of jobs.runs, or None for a task that nobody has scheduled yet. Raises ValueError for a wrong field.

    mapped: statuses of states, as the user says. Times without an offset are UTC, as Airflow's database holds them."""
    _refuse_halves(record)
    dag, task, run = _text(record, "dag_id"), _text(record, "task_id"), _text(record, _first(record, RUN_IDS))
    state = str(record.get("state") or "").strip().lower()
    status = status_of(state, mapped)
    if status is None and state not in NOT_YET:
        raise ValueError(unknown_status(state))
    map_index = _whole(record, "map_index", WITHOUT_MAP)
    tries = _whole(record, "try_number", 1)
    started, ended = _time(record, "start_date"), _time(record, "end_date")
    queued = _time(record, _first(record, QUEUED)) or _time(record, _first(record, SCHEDULED))
    duration_s = _seconds(record, "duration")
    if status is None:
        return None
    if status == "pending":
        tries, started = max(tries, 1), None  # a queued first try is counted when it begins
    if state in ("upstream_failed", "skipped", "removed") and not duration_s:
        queued, started, duration_s = queued or started or ended, None, None
    return {
        "run_id": _run_id(dag, run, task, map_index, tries),
        "name": f"{dag}.{task}",
        "user_name": record.get("unixname") or None,
        "queue": "/".join(str(record[key]) for key in ("pool", "queue") if record.get(key)) or None,
        # a sensor that looks again keeps its first start, but is queued anew
        "submitted_at": min(queued, started) if queued and started else queued,
        "started_at": started,
        "ended_at": ended,
        "runtime_s": duration_s if ended and started else None,
        "status": status,
        "place": place,
    }


def _run_id(dag: str, run: str, task: str, map_index: int, tries: int) -> str:
    mapped = f"[{map_index}]" if map_index != WITHOUT_MAP else ""
    return f"{dag}/{run}/{task}{mapped}/{max(tries, 1)}"


def _refuse_halves(record: Record) -> None:
    """JSON can hold one half of a character that takes two (a lone surrogate); no file and no database can."""
    for name in TEXTS:
        value = record.get(name)
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise ValueError(f"{name} holds half a character; expected whole ones") from error


def _first(record: Record, names: tuple[str, ...]) -> str:
    return next((name for name in names if record.get(name) not in (None, "")), names[0])


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} '{_shown(value)}' is not a text")
    return value


def _whole(record: Record, name: str, default: int) -> int:
    value = record.get(name)
    if value in (None, ""):
        return default
    try:
        number = int(str(value))
    except ValueError as error:
        raise ValueError(f"{name} '{_shown(value)}' is not a whole number") from error
    if number < WITHOUT_MAP:
        raise ValueError(f"{name} '{_shown(value)}' is too small; expected -1 or more")
    return number


def _seconds(record: Record, name: str) -> float | None:
    value = record.get(name)
    if value in (None, ""):
        return None
    try:
        return float(str(value))
    except ValueError as error:
        raise ValueError(f"{name} '{_shown(value)}' is not a number of seconds") from error


def _time(record: Record, name: str) -> pd.Timestamp | None:
    value = record.get(name)
    if value in (None, ""):
        return None
    text = str(value).strip()
    try:
        if not ISO.fullmatch(text):
            raise ValueError(text)
        at = pd.Timestamp(f"{text}:00" if SHORT_OFFSET.search(text[len("2026-01-01") :]) else text)
        return (at.tz_convert("UTC").tz_localize(None) if at.tzinfo else at).as_unit("us")
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name} '{_shown(value)}' is not a time (YYYY-MM-DDTHH:MM:SS+00:00)") from error


def _shown(value: object) -> str:
    return str(value)[:SHOWN_CHARS].encode(errors="backslashreplace").decode()  # half a character as \ud800
