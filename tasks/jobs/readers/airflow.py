"""Airflow's task instances: the REST API's JSON, or the table task_instance of its database as CSV.

A run is one try of one task of one DAG run; what recurs is the task (dag_id.task_id). What we decide:

- upstream_failed, skipped and removed are cancelled: such a task never began. up_for_retry is a failed try.
- A task without a state is left out: nobody has decided yet whether it runs.
- A later export updates earlier rows: running becomes final under the same id (DAG run, task, map index, try).
- Times carry their offset; those of the database have none and are UTC.
- A failed task may have no duration (its process was lost): then end - start."""

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa

from tasks.errors import BadInput
from tasks.intake.files import DELIMITERS, MISSING, UTF8_MARK, Chunk, all_refusals, refused_rows
from tasks.intake.tables import check_once, table_batches
from tasks.jobs.columns import status_of, unknown_status, vet_runs
from tasks.jobs.params import ReadParams, Status

logger = logging.getLogger(__name__)
TIMES = ("submitted_at", "started_at", "ended_at")
COLUMNS = ("run_id", "name", "user_name", "queue", *TIMES, "runtime_s", "status", "place", "raw")
NAMES = ("dag_id", "task_id")  # never missing: a task may be called None
Record = Mapping[str, Any]
NOT_YET = ("", "none", "null")  # no state: nobody has decided yet whether the task runs
NEEDED = ("dag_id", "task_id", "state", "start_date", "end_date")
RUN_IDS = ("dag_run_id", "run_id", "execution_date")  # the API, the database, and both before Airflow 2.2
QUEUED = ("queued_when", "queued_dttm")
SCHEDULED = ("scheduled_when", "scheduled_dttm")
WITHOUT_MAP = -1
SHOWN_CHARS = 60
ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?\s*(Z|[+-]\d\d(:?\d\d)?)?")
SHORT_OFFSET = re.compile(r"[+-]\d\d$")  # +00, as PostgreSQL writes it
EXPECTED = 'an export of Airflow: {"task_instances": […]} or a CSV of the table task_instance with its header'
SHOWN = (
    "dag_id", "task_id", "dag_run_id", "run_id", "map_index", "try_number", "state", "start_date", "end_date",
    "duration",
)  # fmt: skip
TOTAL, CURSOR = "../total_entries", "../next_cursor"
READ = (*SHOWN, *RUN_IDS, *QUEUED, *SCHEDULED, "pool", "queue", "unixname", TOTAL, CURSOR)


def sniff(head: bytes, path: str) -> bool:  # noqa: ARG001
    """JSON with a list task_instances, or a header line with the columns of the table."""
    text = head.removeprefix(UTF8_MARK).decode("utf-8", "replace").lstrip()
    if text.startswith("{"):
        return '"task_instances"' in text  # inside a text its quotes would be escaped
    if text.startswith("["):
        return all(f'"{name}"' in text for name in ("dag_id", "task_id", "try_number"))
    first = text.partition("\n")[0].lower().replace('"', "").strip()
    return any(not missing_fields({name.strip() for name in first.split(mark)}) for mark in DELIMITERS)


def read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """Chunks of task instances. Raises BadInput for a file that is no such export."""
    now, n_rows, n_left_out = datetime.now(UTC).replace(tzinfo=None), 0, 0
    last: Record = {}
    for batch in table_batches(path, params.limits, partial(_wanted, path), row="task instance"):
        rows: list[dict[str, object]] = []
        bad: list[tuple[int, str, str]] = []
        for place, cells in zip(batch.places.tolist(), batch.table.to_pylist(), strict=True):
            record = last = {name.lower(): _present(name.lower(), cell) for name, cell in cells.items()}
            try:
                if row := run_row(record, params.statuses):
                    rows.append({**row, "place": place, "raw": shown(record)})
            except ValueError as error:
                bad.append((place, str(error), shown(record)))
        n_rows, n_left_out = n_rows + len(batch.places), n_left_out + len(batch.places) - len(rows) - len(bad)
        frame = pd.DataFrame(rows, columns=list(COLUMNS)).astype({"place": "int64"})
        vetted = vet_runs(frame.assign(**{name: pd.to_datetime(frame[name]) for name in TIMES}), params, now)
        refused = all_refusals([batch.refused, refused_rows(bad), vetted.refused])
        yield Chunk(vetted.rows, refused, {}, names_in_ids=True)
    if n_left_out:
        logger.info("%s: %d task instances have no state yet and are left out", path, n_left_out)
    _warn_of_pages(path, last, n_rows)


def _wanted(path: str, sample: pa.Table) -> list[str]:
    names = [name for name in sample.column_names if name.lower() in READ]
    if lacks := missing_fields({name.lower() for name in names}):
        problem = f"the header lacks {', '.join(lacks)}"
        raise BadInput(path, problem, EXPECTED, "export these columns as well")
    check_once(path, sample.column_names, names)
    return names


def _present(name: str, cell: str | None) -> str | None:
    return cell if name in NAMES or (cell or "").strip().lower() not in MISSING else None


def _warn_of_pages(path: str, record: Record, n_rows: int) -> None:
    total = str(record.get(TOTAL) or "")
    if total.isdigit() and int(total) > n_rows:
        lacking = "%s: %s of %s task instances; export the other pages too (limit, offset)"
        logger.warning(lacking, path, f"{n_rows:,}", f"{int(total):,}")
    elif record.get(CURSOR):
        logger.warning("%s: one page of several; export the other pages too (next_cursor)", path)


def missing_fields(names: set[str]) -> list[str]:
    """What an export with these fields lacks."""
    lacks = [name for name in NEEDED if name not in names]
    return lacks if names & set(RUN_IDS) else [*lacks, RUN_IDS[0]]


def run_row(record: Record, mapped: Mapping[str, Status]) -> dict[str, object] | None:
    """One row of jobs.runs, or None for a task that nobody has scheduled yet. Raises ValueError for a wrong field.

    mapped: statuses of states, as the user says. Times without an offset are UTC, as Airflow's database holds them."""
    dag, task, run = _text(record, "dag_id"), _text(record, "task_id"), _text(record, *RUN_IDS)
    state = str(record.get("state") or "").strip().lower()
    status = status_of(state, mapped)
    if status is None and state not in NOT_YET:
        raise ValueError(unknown_status(state))
    map_index, tries = _whole(record, "map_index", WITHOUT_MAP), _whole(record, "try_number", 1)
    started, ended = _time(record, "start_date"), _time(record, "end_date")
    queued = _time(record, *QUEUED, *SCHEDULED)
    duration_s = _parsed(record, "duration", float, "a number of seconds")
    if status is None:
        return None
    if status == "pending":
        tries, started = max(tries, 1), None  # a queued first try is counted when it begins
    if state in ("upstream_failed", "skipped", "removed") and not duration_s:
        queued, started, duration_s = queued or started or ended, None, None
    mapped_to = f"[{map_index}]" if map_index != WITHOUT_MAP else ""
    return {
        "run_id": f"{dag}/{run}/{task}{mapped_to}/{max(tries, 1)}",
        "name": f"{dag}.{task}",
        "user_name": record.get("unixname") or None,
        "queue": "/".join(str(record[key]) for key in ("pool", "queue") if record.get(key)) or None,
        # a sensor that looks again keeps its first start, but is queued anew
        "submitted_at": min(queued, started) if queued and started else queued,
        "started_at": started,
        "ended_at": ended,
        "runtime_s": duration_s if ended and started else None,
        "status": status,
    }


def _first(record: Record, names: tuple[str, ...]) -> str:
    return next((name for name in names if record.get(name) not in (None, "")), names[0])


def _text(record: Record, *names: str) -> str:
    """The first of these fields that has a value."""
    value = record.get(name := _first(record, names))
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} '{_shown(value)}' is not a text")
    return value


def _whole(record: Record, name: str, default: int) -> int:
    number = _parsed(record, name, int, "a whole number")
    if number is not None and number < WITHOUT_MAP:
        raise ValueError(f"{name} '{_shown(record[name])}' is too small; expected -1 or more")
    return default if number is None else int(number)


def _parsed(record: Record, name: str, parse: Callable[[str], float], what: str) -> float | None:
    value = record.get(name)
    if value in (None, ""):
        return None
    try:
        return parse(str(value))
    except ValueError as error:
        raise ValueError(f"{name} '{_shown(value)}' is not {what}") from error


def _time(record: Record, *names: str) -> pd.Timestamp | None:
    """The first of these fields that has a value, in UTC."""
    value = record.get(name := _first(record, names))
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
    return str(value)[:SHOWN_CHARS]


def shown(record: Mapping[str, Any]) -> str:
    """A few fields, and no others: rendered fields, notes and configurations may hold secrets."""
    return json.dumps({name: record[name] for name in SHOWN if name in record}, default=str)
