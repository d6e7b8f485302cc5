"""The records of the JSON that Airflow's REST API gives: an object with a list task_instances, or the list alone.

The text is cut into objects while it is read, so memory stays that of a few of them; `place` is the number of the
object. One file is one page: what follows the list is read as well, and tells whether there are more pages."""

import codecs
import json
import logging
import re
from collections.abc import Iterator

from tasks.errors import BadInput
from tasks.jobs.readers.airflow_found import EXPECTED, Found, shown
from tasks.read_limits import ReadLimits
from tasks.reading import open_checked

logger = logging.getLogger(__name__)

BLOCK_BYTES = 1024 * 1024
LIST_KEY = '"task_instances"'  # inside a text its quotes would be escaped
BLANKS = re.compile(r"[ \t\r\n]*")
GAP = re.compile(r"[ \t\r\n,]*")
RAW_CHARS = 100  # of a value that is no object


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
