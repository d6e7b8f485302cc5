"""Airflow's task instances: the REST API's JSON, or the table task_instance of its database as CSV.

A run is one try of one task of one DAG run; what recurs is the task (dag_id.task_id). What we decide:

- upstream_failed, skipped and removed are cancelled: such a task never began. up_for_retry is a failed try.
- A task without a state is left out: nobody has decided yet whether it runs.
- A later export updates earlier rows: running becomes final under the same id (DAG run, task, map index, try).
- Times carry their offset; those of the database have none and are UTC.
- A failed task may have no duration (its process was lost): then end - start."""

import codecs
import csv
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.columns import (
    status_of,
    unknown_status,
    vet_runs,
)
from tasks.jobs.params import (
    ReadParams,
    Status,
)
from tasks.jobs.readers.own_values import MISSING_WORDS
from tasks.read_limits import ReadLimits
from tasks.reading import Chunk, all_refusals, open_checked, read_lines, refusals

logger = logging.getLogger(__name__)
CHUNK_ROWS = 20_000
COLUMNS = (
    "run_id", "name", "user_name", "queue", "submitted_at", "started_at", "ended_at", "runtime_s", "status", "place",
)  # fmt: skip
SEPARATORS = (",", ";", "\t", "|")
NAMES = ("dag_id", "task_id")  # never missing in the table: a task may be called None
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
JSON_MARKS = (b"{", b"[")


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
        records = read_records(path, params.limits)
        while batch := list(islice(records, CHUNK_ROWS)):
            chunk, n_without_state = _chunk(batch, params, now)
            n_found, n_left_out = n_found + len(batch), n_left_out + n_without_state
            yield chunk
        if not n_found:
            raise BadInput(path, "no task instance in it", EXPECTED, "ask for another time span")
        if n_left_out:
            logger.info("%s: %d task instances have no state yet and are left out", path, n_left_out)


@dataclass(frozen=True)
class Found:
    """One record, or why it is none. raw: the text of it, as far as it may be shown."""

    place: int
    record: dict[str, Any] | None
    reason: str
    raw: str


def _chunk(batch: list[Found], params: ReadParams, now: datetime) -> tuple[Chunk, int]:
    rows: list[dict[str, object]] = []
    bad: list[tuple[int, str, str]] = []
    n_left_out = 0
    for found in batch:
        if found.record is None:
            bad.append((found.place, found.reason, found.raw))
            continue
        try:
            row = run_row(found.record, found.place, params.statuses)
        except ValueError as error:
            bad.append((found.place, str(error), found.raw))
            continue
        rows += [row] if row else []
        n_left_out += row is None
    vetted = vet_runs(_frame(rows), params, now)
    raws = {found.place: found.raw for found in batch}
    vetoed = vetted.refused.assign(raw=[raws[place][:500] for place in vetted.refused["place"]])
    told = refusals([place for place, _, _ in bad], [why for _, why, _ in bad], [raw for _, _, raw in bad])
    return Chunk(vetted.rows, all_refusals([told, vetoed]), {}), n_left_out


def _frame(rows: list[dict[str, object]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    times = {name: pd.to_datetime(frame[name]) for name in ("submitted_at", "started_at", "ended_at")}
    return frame.assign(**times, place=frame["place"].astype("int64"))


def csv_records(path: str, limits: ReadLimits) -> Iterator[Found]:
    """The lines below the header. Raises BadInput for a header that lacks a column."""
    names: list[str] = []
    separator = ","
    for lines in read_lines(path, limits):
        for place, reason, raw in lines.refused.itertuples(index=False):
            yield Found(int(place), None, str(reason), str(raw))
        for place, line in zip(lines.places, lines.lines, strict=True):
            if not line.strip():
                continue
            if not names:
                names, separator = _header(path, line)
                continue
            yield _record(place, line, names, separator)
    if not names:
        raise BadInput(path, "only blank lines", EXPECTED, "export it again")


def _header(path: str, line: str) -> tuple[list[str], str]:
    separator = max(SEPARATORS, key=line.count)
    names = [name.strip().strip('"').lower() for name in line.split(separator)]
    lacks = missing_fields(set(names))
    if lacks:
        raise BadInput(path, f"the header lacks {', '.join(lacks)}", EXPECTED, "export these columns as well")
    return names, separator


def _record(place: int, line: str, names: list[str], separator: str) -> Found:
    """One line is one record: a quoted field with a line feed in it is told, not guessed."""
    try:
        fields = next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error as error:
        return Found(place, None, f"not a line of CSV ({error}); leave out columns that hold line feeds", line)
    if len(fields) != len(names):
        return Found(place, None, f"{len(fields)} fields instead of {len(names)}", line)
    pairs = zip(names, fields, strict=True)
    record = {name: "" if name not in NAMES and field in MISSING_WORDS else field for name, field in pairs}
    return Found(place, record, "", shown(record))


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
            yield Found(place, record, "", shown(record))
        else:
            raw = json.dumps(record)[:RAW_CHARS]
            yield Found(place, None, "not an object; expected a task instance", raw)
    _tell_other_pages(path, place, text.rest())


def _tell_other_pages(path: str, n_found: int, export: dict[str, object]) -> None:
    total = export.get("total_entries")
    if type(total) is int and total > n_found:
        logger.warning(
            "%s: %s of %s task instances; export the other pages too (limit, offset)",
            path, f"{n_found:,}", f"{total:,}",
        )  # fmt: skip
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
            self.at = _end_of(gap, self.buffer, self.at)
            if self.at < len(self.buffer):
                return True
            if not self.more():
                return False

    def skip_to_list(self) -> None:
        """Go on to behind the bracket that opens the list of task instances."""
        if self.skip(BLANKS) and self.buffer[self.at] == "[":
            self.at += 1
            return
        while LIST_KEY not in self.buffer and len(self.buffer) <= self.limits.max_line_bytes and self.more():
            pass
        self.before, found, _ = self.buffer.partition(LIST_KEY)
        self.at = len(self.before) + len(found)
        if found and self.skip(BLANKS) and self.buffer[self.at] == ":":
            self.at += 1
            if self.skip(BLANKS) and self.buffer[self.at] == "[":
                self.at += 1
                return
        raise BadInput(self.path, "no list 'task_instances' in it", EXPECTED, "export /dags/~/dagRuns/~/taskInstances")

    def is_at_end_of_list(self) -> bool:
        """Whether the list ends here; commas and blanks before the next record are skipped, and so is its bracket."""
        if not self.skip(GAP):
            raise self._cut_off()
        is_end = self.buffer[self.at] == "]"
        self.at += is_end
        return is_end

    def next_value(self) -> object:
        """The next value of the list."""
        while True:
            try:
                value, end = self.decoder.raw_decode(self.buffer, self.at)
            except RecursionError as error:
                raise self._too_deep() from error
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
        around: dict[str, object] = {}
        if self.before:
            around = self._object_around()
        if self.skip(BLANKS):
            raise self._more_text()
        return around

    def _object_around(self) -> dict[str, object]:
        start = f"{self.before}{LIST_KEY}: []"
        while True:
            rest = self.buffer[self.at :]
            text = start + rest
            try:
                value, end = self.decoder.raw_decode(text, _end_of(BLANKS, text, 0))
            except RecursionError as error:
                raise self._too_deep() from error
            except ValueError as error:
                if len(rest) > self.limits.max_line_bytes or not self.more():
                    raise self._cut_off() from error
                continue
            if LIST_KEY in text[len(start) : end]:
                raise self._more_text()
            self.at += end - len(start)
            return value if isinstance(value, dict) else {}

    def _cut_off(self) -> BadInput:
        return BadInput(self.path, "the JSON is damaged or cut off", "a whole export", "export it again")

    def _too_deep(self) -> BadInput:
        return BadInput(self.path, "JSON that is nested too deeply", EXPECTED, "export it again")

    def _more_text(self) -> BadInput:
        return BadInput(self.path, "more text after the list", "one export a file", "split the file")


def _end_of(gap: re.Pattern[str], text: str, at: int) -> int:
    found = gap.match(text, at)
    return found.end() if found else at


def read_records(path: str, limits: ReadLimits) -> Iterator[Found]:
    """The records of an export, in its order. Raises BadInput for a file that is none."""
    with open_checked(path, limits) as stream:
        start = stream.read(BLOCK_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    return (json_records if start.startswith(JSON_MARKS) else csv_records)(path, limits)
