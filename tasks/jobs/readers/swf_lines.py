"""The lines of a log in Standard Workload Format: comments, and jobs as rows of numbers."""

import csv
import re
from collections import Counter
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.reading import Block, refusals

FIELDS = (
    "job", "submit_s", "wait_s", "runtime_s", "used_cpus", "cpu_s", "used_kb", "requested_cpus", "requested_s",
    "requested_kb", "status", "user", "group", "app", "queue", "partition", "previous_job", "think_s",
)  # fmt: skip
N_FIELDS = len(FIELDS)
MIN_FIELDS = 5  # up to the processors: job, submit, wait, run, processors
LOOKED_AT = 1000  # job lines by which the number of fields is found
BLANKS = b" \t"
NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
COMMENT = re.compile(r";+\s*([A-Za-z]+)\s*:\s*(.*?)\s*$")
KNOWN_COMMENTS = re.compile(rb"^\s*;+\s*(?:Version|Computer|Installation|UnixStartTime|Max[A-Z]\w+)\s*:", re.MULTILINE)
QUEUE = re.compile(r"(\d+)\s+(\S.*)")
EXPECTED = f"Standard Workload Format: lines of {MIN_FIELDS} to {N_FIELDS} numbers, comments after ';'"


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
    """Whether a text begins with the comments of the format, or with lines of exactly 18 numbers."""
    lines = [line for line in head.split(b"\n")[:-1] or [head] if line.strip()]
    jobs = [line.split() for line in lines if not line.lstrip(BLANKS).startswith(b";")][:LOOKED_AT]
    n_numeric = sum(all(NUMBER.fullmatch(word) for word in words) for words in jobs)
    if KNOWN_COMMENTS.search(head):
        return not jobs or 2 * n_numeric > len(jobs)
    return 2 * sum(len(words) == N_FIELDS for words in jobs) > len(jobs) and 2 * n_numeric > len(jobs)


def split_jobs(block: Block) -> JobText:
    """Tell job lines from comments and blank lines."""
    data = block.data
    n_lines = data.count(b"\n")
    if b";" not in data and b"\n\n" not in data and not data.startswith(b"\n") and not len(block.refused):
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


def count_fields(path: str, text: JobText) -> int:
    """How many fields most of the first job lines have; raises BadInput if they are no lines of numbers."""
    lines = text.data.split(b"\n", LOOKED_AT)[:LOOKED_AT]
    words = [line.split() for line in lines if line.strip()]
    counts = Counter(len(line) for line in words if all(NUMBER.fullmatch(word) for word in line))
    n_fields, n_lines = counts.most_common(1)[0] if counts else (0, 0)
    if not MIN_FIELDS <= n_fields <= N_FIELDS:
        found = f"most of its first lines have {n_fields} numbers" if n_lines else "its first lines are not numbers"
        raise BadInput(path, f"{found} (line {text.places[0]}: {_start(lines[0])})", EXPECTED, "name another reader")
    return n_fields


def _start(line: bytes) -> str:
    return repr(line.decode()[:60].strip())


def parse_jobs(text: JobText, n_fields: int) -> tuple[Any, Any, pd.DataFrame]:
    """Line numbers, numbers (n_jobs, 18) with NaN for what is missing, and the lines that were refused."""
    table = _table(text.data, n_fields)
    if table is None or len(table) != len(text.places):
        return _parse_one_by_one(text, n_fields)
    is_good = np.isfinite(table[:, :n_fields]).all(axis=1) & np.isnan(table[:, n_fields])
    if not is_good.all():
        return _parse_one_by_one(text, n_fields)
    return text.places, _completed(table, n_fields), refusals([], [], [])


def _parse_one_by_one(text: JobText, n_fields: int) -> tuple[Any, Any, pd.DataFrame]:
    lines = text.data.split(b"\n")[:-1]
    faults = [_fault(line, n_fields) for line in lines]
    bad = [row for row, fault in enumerate(faults) if fault]
    is_good = np.array([not fault for fault in faults], dtype=bool)
    refused = refusals(text.places[bad].tolist(), [faults[row] for row in bad], [lines[row].decode() for row in bad])
    values = [[float(word) for word in line.split()] for line, fault in zip(lines, faults, strict=True) if not fault]
    table = np.array(values, dtype="float64").reshape(len(values), n_fields)
    return text.places[is_good], _completed(table, n_fields), refused


def _fault(line: bytes, n_fields: int) -> str:
    words = line.split()
    for position, word in enumerate(words[:N_FIELDS], 1):
        if not NUMBER.fullmatch(word):
            return f"field {position} is not a number"
    return "" if len(words) == n_fields else f"{len(words)} fields; the lines of this log have {n_fields}"


def _table(data: bytes, n_fields: int) -> Any:
    """All lines at once, one column more than expected; None if one of them is not as it should be."""
    try:
        table = pd.read_csv(
            BytesIO(data), sep=r"\s+", header=None, names=list(range(n_fields + 1)), dtype="float64",
            quoting=csv.QUOTE_NONE,
        )  # fmt: skip
    except ValueError:  # ParserError and EmptyDataError are ValueErrors too
        return None
    return table.to_numpy()


def _completed(table: Any, n_fields: int) -> Any:
    values = np.full((len(table), N_FIELDS), np.nan)
    values[:, :n_fields] = table[:, :n_fields]
    values[values == -1] = np.nan
    return values
