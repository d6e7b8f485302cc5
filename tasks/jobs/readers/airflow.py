"""Airflow's task instances: the REST API's JSON, or the table task_instance of its database as CSV.

A run is one try of one task of one DAG run; what recurs is the task (dag_id.task_id). What we decide:

- upstream_failed, skipped and removed are cancelled: such a task never began. up_for_retry is a failed try.
- A task without a state is left out: nobody has decided yet whether it runs.
- A later export updates earlier rows: running becomes final under the same id (DAG run, task, map index, try).
- Times carry their offset; those of the database have none and are UTC.
- A failed task may have no duration (its process was lost): then end - start."""

import codecs
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pandas as pd

from tasks.errors import BadInput
from tasks.intake.files import (
    Chunk,
    all_refusals,
    csv_fields,
    open_checked,
    read_lines,
    refusals,
)
from tasks.intake.limits import ReadLimits
from tasks.jobs.columns import (
    status_of,
    unknown_status,
    vet_runs,
)
from tasks.jobs.params import ReadParams, Status
from tasks.jobs.readers.own_values import MISSING_WORDS

logger = logging.getLogger(__name__)
CHUNK_ROWS = 20_000
TIMES = ("submitted_at", "started_at", "ended_at")
COLUMNS = ("run_id", "name", "user_name", "queue", *TIMES, "runtime_s", "status", "place", "raw")
SEPARATORS = (",", ";", "\t", "|")
NAMES = ("dag_id", "task_id")  # never missing in the table: a task may be called None
Record = Mapping[str, Any]
Found = tuple[int, Record | str, str]  # place; the record, or why it is none; what of it may be shown
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
EXPECTED = 'an export of Airflow: {"task_instances": […]} or a CSV of the table task_instance with its header'
SHOWN = (
    "dag_id", "task_id", "dag_run_id", "run_id", "map_index", "try_number", "state", "start_date", "end_date",
    "duration",
)  # fmt: skip
BLOCK_BYTES = 1024 * 1024
LIST_KEY = '"task_instances"'  # inside a text its quotes would be escaped
BLANKS = re.compile(r"[ \t\r\n]*")
GAP = re.compile(r"[ \t\r\n,]*")
RAW_CHARS = 100  # of a value that is no object
JSON_MARKS, JSON_BLANKS = (b"{", b"["), " \t\r\n"


@dataclass(frozen=True)
class AirflowReader:
    """Reads exports of task instances of Airflow 2 and 3."""

    name: str = "airflow"
    version: int = 2  # 2: pseudonymised ids; words for missing values in CSV
    ids_hold_names: bool = True  # DAG, run and task
    title: str = "Airflow: task instances (JSON of the REST API, CSV of the table)"
    endings: tuple[str, ...] = (
        "task_instances.json", "task_instances.json.gz", "task_instance.csv", "task_instance.csv.gz",
    )  # fmt: skip

    def sniff(self, head: bytes, path: str) -> bool:  # noqa: ARG002
        """JSON with a list task_instances, or a header line with the columns of the table."""
        text = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").lstrip()
        if text.startswith("{"):
            return LIST_KEY in text
        if text.startswith("["):
            return all(f'"{name}"' in text for name in ("dag_id", "task_id", "try_number"))
        first = text.partition("\n")[0].lower().replace('"', "").strip()
        return any(not missing_fields({name.strip() for name in first.split(mark)}) for mark in SEPARATORS)

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """Chunks of some 20,000 task instances. Raises BadInput for a file that is no such export."""
        now, n_found, n_left_out = datetime.now(UTC).replace(tzinfo=None), 0, 0
        with open_checked(path, params.limits) as stream:
            start = stream.read(BLOCK_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
        records = (json_records if start.startswith(JSON_MARKS) else csv_records)(path, params.limits)
        while batch := list(islice(records, CHUNK_ROWS)):
            rows: list[dict[str, object]] = []
            bad: list[tuple[int, str, str]] = []
            for place, record, raw in batch:
                try:
                    if row := run_row(_record(record), params.statuses):
                        rows.append({**row, "place": place, "raw": raw})
                except ValueError as error:
                    bad.append((place, str(error), raw))
            n_found, n_left_out = n_found + len(batch), n_left_out + len(batch) - len(rows) - len(bad)
            frame = pd.DataFrame(rows, columns=list(COLUMNS)).astype({"place": "int64"})
            vetted = vet_runs(frame.assign(**{name: pd.to_datetime(frame[name]) for name in TIMES}), params, now)
            refused = refusals([place for place, _, _ in bad], [why for _, why, _ in bad], [raw for _, _, raw in bad])
            yield Chunk(vetted.rows, all_refusals([refused, vetted.refused]), {})
        if not n_found:
            raise BadInput(path, "no task instance in it", EXPECTED, "ask for another time span")
        if n_left_out:
            logger.info("%s: %d task instances have no state yet and are left out", path, n_left_out)


def _record(found: Record | str) -> Record:
    if isinstance(found, str):
        raise ValueError(found)
    return found


def csv_records(path: str, limits: ReadLimits) -> Iterator[Found]:
    """The lines below the header; one line is one record: a quoted field with a line feed in it is told, not guessed.

    Raises BadInput for a header that lacks a column."""
    names: list[str] = []
    separator = ","
    for lines in read_lines(path, limits):
        for place, reason, raw in lines.refused.itertuples(index=False):
            yield int(place), str(reason), str(raw)
        for place, line in zip(lines.places, lines.lines, strict=True):
            if not line.strip():
                continue
            if not names:
                separator = max(SEPARATORS, key=line.count)
                names = [name.strip().strip('"').lower() for name in line.split(separator)]
                if lacks := missing_fields(set(names)):
                    problem = f"the header lacks {', '.join(lacks)}"
                    raise BadInput(path, problem, EXPECTED, "export these columns as well")
                continue
            try:
                fields = csv_fields(line, separator, strict=True)
            except ValueError as error:
                yield place, f"not a line of CSV ({error}); leave out columns that hold line feeds", line
                continue
            if len(fields) != len(names):
                yield place, f"{len(fields)} fields instead of {len(names)}", line
                continue
            pairs = zip(names, fields, strict=True)
            record = {name: "" if name not in NAMES and field in MISSING_WORDS else field for name, field in pairs}
            yield place, record, shown(record)
    if not names:
        raise BadInput(path, "only blank lines", EXPECTED, "export it again")


def missing_fields(names: set[str]) -> list[str]:
    """What an export with these fields lacks."""
    lacks = [name for name in NEEDED if name not in names]
    return lacks if names & set(RUN_IDS) else [*lacks, RUN_IDS[0]]


def run_row(record: Record, mapped: Mapping[str, Status]) -> dict[str, object] | None:
    """One row of jobs.runs, or None for a task that nobody has scheduled yet. Raises ValueError for a wrong field.

    mapped: statuses of states, as the user says. Times without an offset are UTC, as Airflow's database holds them."""
    _refuse_halves(record)
    dag, task, run = _text(record, "dag_id"), _text(record, "task_id"), _text(record, _first(record, RUN_IDS))
    state = str(record.get("state") or "").strip().lower()
    status = status_of(state, mapped)
    if status is None and state not in NOT_YET:
        raise ValueError(unknown_status(state))
    map_index, tries = _whole(record, "map_index", WITHOUT_MAP), _whole(record, "try_number", 1)
    started, ended = _time(record, "start_date"), _time(record, "end_date")
    queued = _time(record, _first(record, QUEUED)) or _time(record, _first(record, SCHEDULED))
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


def shown(record: Mapping[str, Any]) -> str:
    """A few fields, and no others: rendered fields, notes and configurations may hold secrets."""
    return json.dumps({name: record[name] for name in SHOWN if name in record}, default=str)


def json_records(path: str, limits: ReadLimits) -> Iterator[Found]:
    """The entries of the list. Raises BadInput for a text that is damaged, or holds more than one list.

    Warns if the file is one page of many."""
    place, text = 0, _Text(path, limits)
    text.skip_to_list()
    while not text.is_at_end_of_list():
        place += 1
        record = text.next_value()
        if isinstance(record, dict):
            yield place, record, shown(record)
        else:
            yield place, "not an object; expected a task instance", json.dumps(record)[:RAW_CHARS]
    export = text.rest()
    total = export.get("total_entries")
    if type(total) is int and total > place:
        lacking = "%s: %s of %s task instances; export the other pages too (limit, offset)"
        logger.warning(lacking, path, f"{place:,}", f"{total:,}")
    elif export.get("next_cursor"):
        logger.warning("%s: one page of several; export the other pages too (next_cursor)", path)


class _Text:
    """A JSON text that is read block by block; `at`: up to where the buffer is used."""

    def __init__(self, path: str, limits: ReadLimits) -> None:
        self.path, self.limits = path, limits
        self.blocks, self.decoder = self._decoded(), json.JSONDecoder()
        self.buffer, self.at = "", 0
        self.before = ""  # what stands before the list

    def _decoded(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        with open_checked(self.path, self.limits) as stream:
            try:
                while block := stream.read(BLOCK_BYTES):
                    yield decoder.decode(block)
                decoder.decode(b"", final=True)
            except UnicodeDecodeError as error:
                raise BadInput(self.path, "not UTF-8 text", EXPECTED, "convert it to UTF-8") from error

    def more(self) -> bool:
        """Read one more block, and forget what was used; false at the end of the file."""
        block = next(self.blocks, None)
        self.buffer, self.at = self.buffer[self.at :] + (block or ""), 0
        return block is not None

    def skip(self, gap: re.Pattern[str]) -> bool:
        """Go on to the next character that is none of the gap; false at the end of the file."""
        while True:
            found = gap.match(self.buffer, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.buffer):
                return True
            if not self.more():
                return False

    def skip_over(self, mark: str) -> bool:
        """Go on behind the mark, if it comes next."""
        found = self.skip(BLANKS) and self.buffer[self.at] == mark
        self.at += found
        return found

    def skip_to_list(self) -> None:
        """Go on to behind the bracket that opens the list of task instances."""
        if self.skip_over("["):
            return
        while LIST_KEY not in self.buffer and len(self.buffer) <= self.limits.max_line_bytes and self.more():
            pass
        self.before, found, _ = self.buffer.partition(LIST_KEY)
        self.at = len(self.before) + len(found)
        if not (found and self.skip_over(":") and self.skip_over("[")):
            fix = "export /dags/~/dagRuns/~/taskInstances"
            raise BadInput(self.path, "no list 'task_instances' in it", EXPECTED, fix)

    def is_at_end_of_list(self) -> bool:
        """Whether the list ends here; commas and blanks before the next record are skipped, and so is its bracket."""
        if not self.skip(GAP):
            raise self._cut_off()
        return self.skip_over("]")

    def next_value(self) -> object:
        """The next value of the list."""
        while True:
            try:
                value, end = self._decoded_from(self.buffer, self.at)
            except ValueError as error:
                if len(self.buffer) - self.at > self.limits.max_line_bytes + BLOCK_BYTES:
                    raise BadInput(self.path, "JSON that cannot be read", EXPECTED, "export it again") from error
                if not self.more():
                    raise self._cut_off() from error
                continue
            if end == len(self.buffer) and self.more():  # a number may go on in the next block
                continue
            self.at = end
            return value

    def rest(self) -> dict[str, object]:
        """The object around the list, with an empty list in it; empty if there is none.

        Raises BadInput if it does not end, or if more than blanks follow it."""
        around = self._object_around() if self.before else {}
        if self.skip(BLANKS):
            raise self._more_text()
        return around

    def _object_around(self) -> dict[str, object]:
        before = f"{self.before.lstrip(JSON_BLANKS)}{LIST_KEY}: []"
        while True:
            rest = self.buffer[self.at :]
            try:
                value, end = self._decoded_from(before + rest, 0)
            except ValueError as error:
                if len(rest) > self.limits.max_line_bytes or not self.more():
                    raise self._cut_off() from error
                continue
            if LIST_KEY in (before + rest)[len(before) : end]:
                raise self._more_text()
            self.at += end - len(before)
            return value if isinstance(value, dict) else {}

    def _decoded_from(self, text: str, at: int) -> tuple[object, int]:
        try:
            return self.decoder.raw_decode(text, at)
        except RecursionError as error:
            raise BadInput(self.path, "JSON that is nested too deeply", EXPECTED, "export it again") from error

    def _cut_off(self) -> BadInput:
        return BadInput(self.path, "the JSON is damaged or cut off", "a whole export", "export it again")

    def _more_text(self) -> BadInput:
        return BadInput(self.path, "more text after the list", "one export a file", "split the file")
