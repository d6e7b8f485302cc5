"""The records of an Airflow export: objects of the REST API's JSON, or lines of a CSV of the table task_instance.

JSON is cut into objects while it is read, so memory stays that of a few of them; `place` is the number of the object,
or the line of a CSV record."""

import codecs
import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tasks.errors import BadInput
from tasks.jobs.readers.airflow_fields import missing_fields
from tasks.read_limits import ReadLimits
from tasks.reading import open_checked, read_lines

BLOCK_BYTES = 1024 * 1024
LIST_KEY = '"task_instances"'
EXPECTED = 'an export of Airflow: {"task_instances": […]} or a CSV of the table task_instance with its header'
SEPARATORS = (",", ";", "\t", "|")
JSON_MARKS = (b"{", b"[")
SPACES = " \t\r\n"
GAP = SPACES + ","


@dataclass(frozen=True)
class Found:
    """One record, or why it is none. raw: the text of it."""

    place: int
    record: dict[str, Any] | None
    reason: str
    raw: str


def read_records(path: str, limits: ReadLimits) -> Iterator[Found]:
    """The records of an export, in its order. Raises BadInput for a file that is none."""
    with open_checked(path, limits) as stream:
        start = stream.read(BLOCK_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(JSON_MARKS):
        return _from_json(path, limits)
    return _from_csv(path, limits)


def _from_json(path: str, limits: ReadLimits) -> Iterator[Found]:
    place, decoder, text = 0, json.JSONDecoder(), _Text(path, limits)
    text.skip_to_list()
    while not text.is_at_end_of_list():
        place += 1
        start = text.buffer
        record = text.next_object(decoder)
        if isinstance(record, dict):
            yield Found(place, record, "", _shown(record))
        else:
            yield Found(place, None, "not an object; expected a task instance", start[:100])


class _Text:
    """A JSON text that is read block by block; what was used is forgotten."""

    def __init__(self, path: str, limits: ReadLimits) -> None:
        self.path, self.limits = path, limits
        self.blocks = self._decoded()
        self.buffer = ""

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
        """Read one more block; false at the end of the file."""
        block = next(self.blocks, None)
        self.buffer += block or ""
        return block is not None

    def skip_to_list(self) -> None:
        """Leave the buffer behind the bracket that opens the list of task instances."""
        while not self.buffer.lstrip(SPACES) and self.more():
            pass
        if self.buffer.lstrip(SPACES).startswith("["):
            self.buffer = self.buffer.lstrip(SPACES)[1:]
            return
        while LIST_KEY not in self.buffer and len(self.buffer) <= self.limits.max_line_bytes and self.more():
            pass
        _, found, rest = self.buffer.partition(LIST_KEY)
        self.buffer = rest
        while found and "[" not in self.buffer and self.more():
            pass
        before, bracket, rest = self.buffer.partition("[")
        if not found or not bracket or before.strip(SPACES) != ":":
            raise BadInput(
                self.path, "no list 'task_instances' in it", EXPECTED, "export /dags/~/dagRuns/~/taskInstances"
            )
        self.buffer = rest

    def is_at_end_of_list(self) -> bool:
        """Whether the list ends here; commas and blanks before the next record are skipped."""
        self.buffer = self.buffer.lstrip(GAP)
        while not self.buffer:
            if not self.more():
                raise self._cut_off()
            self.buffer = self.buffer.lstrip(GAP)
        return self.buffer[0] == "]"

    def next_object(self, decoder: json.JSONDecoder) -> object:
        """The next value of the list."""
        while True:
            try:
                value, end = decoder.raw_decode(self.buffer)
            except RecursionError as error:
                raise BadInput(self.path, "JSON that is nested too deeply", EXPECTED, "export it again") from error
            except ValueError as error:
                if len(self.buffer) > self.limits.max_line_bytes + BLOCK_BYTES:
                    raise BadInput(self.path, "JSON that cannot be read", EXPECTED, "export it again") from error
                if not self.more():
                    raise self._cut_off() from error
                continue
            self.buffer = self.buffer[end:]
            return value

    def _cut_off(self) -> BadInput:
        return BadInput(self.path, "the JSON is damaged or cut off", "a whole export", "export it again")


def _shown(record: dict[str, Any]) -> str:
    """A few fields, and no others: rendered fields and notes may hold secrets."""
    shown = (
        "dag_id",
        "task_id",
        "dag_run_id",
        "map_index",
        "try_number",
        "state",
        "start_date",
        "end_date",
        "duration",
    )
    return json.dumps({name: record[name] for name in shown if name in record}, default=str)


def _from_csv(path: str, limits: ReadLimits) -> Iterator[Found]:
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
            yield _csv_record(place, line, names, separator)
    if not names:
        raise BadInput(path, "only blank lines", EXPECTED, "export it again")


def _header(path: str, line: str) -> tuple[list[str], str]:
    separator = max(SEPARATORS, key=line.count)
    names = [name.strip().strip('"').lower() for name in line.split(separator)]
    lacks = missing_fields(set(names))
    if lacks:
        raise BadInput(path, f"the header lacks {', '.join(lacks)}", EXPECTED, "export these columns as well")
    return names, separator


def _csv_record(place: int, line: str, names: list[str], separator: str) -> Found:
    """One line is one record: a quoted field with a line feed in it is told, not guessed."""
    try:
        fields = next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error as error:
        return Found(place, None, f"not a line of CSV ({error}); leave out columns that hold line feeds", line)
    if len(fields) != len(names):
        return Found(place, None, f"{len(fields)} fields instead of {len(names)}", line)
    return Found(place, dict(zip(names, fields, strict=True)), "", line)
