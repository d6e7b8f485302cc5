"""The lines of a log in Standard Workload Format: comments, and jobs as rows of numbers."""

import csv
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.reading import Block, no_refusals, refusals

FIELDS = (
    "job", "submit_s", "wait_s", "runtime_s", "used_cpus", "cpu_s", "used_kb", "requested_cpus", "requested_s",
    "requested_kb", "status", "user", "group", "app", "queue", "partition", "previous_job", "think_s",
)  # fmt: skip
N_FIELDS = len(FIELDS)
MIN_FIELDS = 5  # up to the processors: job, submit, wait, run, processors
LOOKED_AT = 1000  # job lines by which the number of fields is found
BLANKS = b" \t"
NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
PLAIN_NUMBER = rb"[+-]?[0-9]{1,18}(?:\.[0-9]{0,18})?"  # any other way to write one is looked at more closely
COMMENT = re.compile(r";+\s*([A-Za-z]+)\s*:\s*(.*?)\s*$")
KNOWN_COMMENTS = re.compile(rb"^\s*;+\s*(?:Version|Computer|Installation|UnixStartTime|Max[A-Z]\w+)\s*:", re.MULTILINE)
BLANK_LINE = re.compile(rb"(?:\A|\n)[ \t\r\v\f]*+\n")
QUEUE = re.compile(r"(\d+)\s+(\S.*)")
EXPECTED = f"Standard Workload Format: lines of {MIN_FIELDS} to {N_FIELDS} numbers, comments after ';'"


@dataclass(frozen=True)
class Shape:
    """How many numbers the lines of a log have, 5 to 18, and whether more follows (some logs append fields)."""

    n_fields: int = N_FIELDS
    has_more: bool = False


@dataclass(frozen=True)
class JobText:
    """The job lines of a block, each with its number in the file, and the comments between them."""

    places: Any
    data: bytes
    comments: list[tuple[int, str]]


@dataclass
class SwfHeader:
    """What the comments say, as far as it is needed; grows while the file is read."""

    unix_start_s: float | None = None
    queues: dict[int, str] = field(default_factory=dict)

    def add(self, path: str, comments: list[tuple[int, str]], first_job: float) -> None:
        """Take in more comments. Raises BadInput if another start follows behind line `first_job`."""
        for place, text in comments:
            match = COMMENT.match(text)
            if match and match[1].lower() == "unixstarttime" and NUMBER.fullmatch(match[2].encode()):
                start_s = float(match[2])
                if start_s != self.unix_start_s and place > first_job:
                    raise BadInput(
                        path,
                        f"line {place} starts another log (UnixStartTime: {match[2]})",
                        "one log",
                        "split the file",
                    )
                self.unix_start_s = start_s
            queue = QUEUE.fullmatch(match[2]) if match and match[1].lower() == "queue" else None
            if queue:
                self.queues[int(queue[1])] = queue[2]


def looks_like_swf(head: bytes) -> bool:
    """Whether a text begins with the comments of the format, or with lines of 18 numbers."""
    lines = [line for line in head.split(b"\n")[:-1] or [head] if line.strip()]
    jobs = [line.split() for line in lines if not line.lstrip(BLANKS).startswith(b";")][:LOOKED_AT]
    numeric = [words for words in jobs if _is_numeric(words)]
    if KNOWN_COMMENTS.search(head):
        return not jobs or 2 * len(numeric) > len(jobs)
    return 2 * sum(len(words) >= N_FIELDS for words in numeric) > len(jobs)


def _is_numeric(words: list[bytes]) -> bool:
    """Whether the fields of the format (and not what some logs append) are numbers."""
    return all(NUMBER.fullmatch(word) for word in words[:N_FIELDS])


def split_jobs(block: Block) -> JobText:
    """Tell job lines from comments and blank lines."""
    data = block.data
    n_lines = data.count(b"\n")
    if b";" not in data and not BLANK_LINE.search(data):
        return JobText(np.arange(block.first, block.first + n_lines), data, [])
    places, jobs, comments = [], [], []
    for place, line in enumerate(data.split(b"\n")[:-1], block.first):
        text = line.lstrip(BLANKS)
        if text.startswith(b";"):
            comments.append((place, text.decode()))
        elif text.strip():
            places.append(place)
            jobs.append(line)
    return JobText(np.array(places, dtype="int64"), b"".join(job + b"\n" for job in jobs), comments)


def find_shape(path: str, text: JobText) -> Shape:
    """The shape of most of the first job lines; raises BadInput if they are no lines of numbers."""
    lines = text.data.split(b"\n", LOOKED_AT)[:LOOKED_AT]
    words = [line.split() for line in lines if line.strip()]
    counts = Counter(min(len(line), N_FIELDS + 1) for line in words if _is_numeric(line))
    n_fields, n_lines = counts.most_common(1)[0] if counts else (0, 0)
    if n_fields < MIN_FIELDS:
        found = f"most of its first lines have {n_fields} numbers" if n_lines else "its first lines are not numbers"
        raise BadInput(path, f"{found} (line {text.places[0]}: {_start(lines[0])})", EXPECTED, "name another reader")
    return Shape(min(n_fields, N_FIELDS), has_more=n_fields > N_FIELDS)


def _start(line: bytes) -> str:
    return repr(line.decode()[:60].strip())


def parse_jobs(text: JobText, shape: Shape) -> tuple[Any, Any, pd.DataFrame]:
    """Line numbers, numbers (n_jobs, 18) with NaN for what is missing, and the lines that were refused."""
    table = _table(_cut(text.data) if shape.has_more else text.data, shape.n_fields)
    if table is None or len(table) != len(text.places):
        return _parse_one_by_one(text, shape)
    is_good = np.isfinite(table[:, : shape.n_fields]).all(axis=1) & np.isnan(table[:, shape.n_fields])
    if not is_good.all():
        return _parse_one_by_one(text, shape)
    return text.places, _completed(table, shape.n_fields), no_refusals()


def _cut(data: bytes) -> bytes:
    """The lines without what stands behind the fields of the format."""
    return b"".join(b" ".join(line.split(None, N_FIELDS)[:N_FIELDS]) + b"\n" for line in data.split(b"\n")[:-1])


def _parse_one_by_one(text: JobText, shape: Shape) -> tuple[Any, Any, pd.DataFrame]:
    """The same where some line is not as it should be: it is found, and the others are parsed at once again."""
    lines = text.data.split(b"\n")[:-1]
    is_plain = _plain_line(shape).fullmatch
    faults = ["" if is_plain(line) else _fault(line.split(), shape) for line in lines]
    bad = [row for row, fault in enumerate(faults) if fault]
    refused = refusals(text.places[bad].tolist(), [faults[row] for row in bad], [lines[row].decode() for row in bad])
    good = np.array([not fault for fault in faults], dtype=bool)
    left = b"".join(line + b"\n" for line, fault in zip(lines, faults, strict=True) if not fault)
    table = _table(_cut(left), shape.n_fields) if left else np.empty((0, shape.n_fields))
    if table is None or len(table) != good.sum():
        raise ValueError(f"lines {text.places[0]} to {text.places[-1]}: good lines that cannot be parsed")
    return text.places[good], _completed(table, shape.n_fields), refused


@lru_cache(maxsize=N_FIELDS * 2)
def _plain_line(shape: Shape) -> re.Pattern[bytes]:
    """A line in which nothing is wrong; lines that it does not match are looked at more closely."""
    number, more = PLAIN_NUMBER, rb"(?:[ \t].*)?" if shape.has_more else rb"[ \t]*"
    return re.compile(rb"[ \t]*+%s(?:[ \t]++%s){%d}%s" % (number, number, shape.n_fields - 1, more))


def _fault(words: list[bytes], shape: Shape) -> str:
    for position, word in enumerate(words[:N_FIELDS], 1):
        if not NUMBER.fullmatch(word):
            return f"field {position} is not a number"
        if not math.isfinite(float(word)):
            return f"field {position} is too large"
    if len(words) == shape.n_fields or (shape.has_more and len(words) > shape.n_fields):
        return ""
    return f"{len(words)} fields; the lines of this log have {shape.n_fields}{' or more' if shape.has_more else ''}"


def _table(data: bytes, n_fields: int) -> Any:
    """All lines at once, one column more than expected; None if one of them is not as it should be."""
    try:
        table = pd.read_csv(
            BytesIO(data), sep=r"\s+", header=None, names=list(range(n_fields + 1)), dtype="float64",
            quoting=csv.QUOTE_NONE,
        )  # fmt: skip
    except (ValueError, OverflowError):  # ParserError and EmptyDataError are ValueErrors too
        return None
    return table.to_numpy()


def _completed(table: Any, n_fields: int) -> Any:
    values = np.full((len(table), N_FIELDS), np.nan)
    values[:, :n_fields] = table[:, :n_fields]
    values[values == -1] = np.nan
    return values
