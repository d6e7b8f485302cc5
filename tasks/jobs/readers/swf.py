"""Standard Workload Format: the job logs of the Parallel Workloads Archive.

One line a job, 18 numbers, -1 where one is missing; comments start with a semicolon. Definition:
https://www.cs.huji.ac.il/labs/parallel/workload/swf.html (version 2.2). What we decide where it leaves room:

- Lines hold 5 to 18 fields: as many as most of the first lines; other lines are refused. Where most have more than
  18 (MetaCentrum appends machines and resources), what is behind the 18th is left out.
- A job without a wait time began at its submit time (such logs say so in a note); its submission is unknown.
- Status 2, 3 and 4 are parts of an interrupted job, whose own line has status 0 or 1: they are refused.
- Status 5 without runtime and processors was cancelled in the queue: it never began.
- Without UnixStartTime times count from 1970: runtimes and distances hold, dates only if the log meant that."""

import csv
import logging
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.intake.files import Block, Chunk, all_refusals, no_refusals, read_blocks, refusals
from tasks.intake.tally import PART_OF_A_JOB
from tasks.jobs.columns import vet_runs
from tasks.jobs.params import ReadParams
from tasks.times import from_epoch_s

logger = logging.getLogger(__name__)
STATUS = {-1: "unknown", 0: "failed", 1: "completed", 5: "cancelled"}
CANCELLED, MISSING = 5, -1
PARTS = (2, 3, 4)
KILOBYTE = 1024
LARGEST_KB = 4 * 2**30  # 4 TiB a processor: no machine has so much
PLAIN_EPOCH_S = 631_152_000  # 1990: without UnixStartTime, such submit times are seconds since 1970 themselves
EXACT_BELOW = 2**53  # larger job numbers lose digits
Numbers = dict[str, Any]  # arrays of one length by field
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
class SwfReader:
    """Reads .swf and .swf.gz."""

    name: str = "swf"
    version: int = 2  # 2: groups and partitions
    title: str = "Standard Workload Format (.swf, .swf.gz)"
    endings: tuple[str, ...] = (".swf", ".swf.gz")

    def sniff(self, head: bytes, path: str) -> bool:  # noqa: ARG002
        """By the comments at its start, or by lines of 18 numbers."""
        return bool(head) and looks_like_swf(head)

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """See Reader.read."""
        header, first_job, now = SwfHeader(), math.inf, datetime.now(UTC).replace(tzinfo=None)
        shape: Shape | None = None
        warned = False
        for block in read_blocks(path, params.limits):
            text = split_jobs(block)
            first_job = min([first_job, *text.places[:1]])
            header.add(path, text.comments, first_job)
            if not len(text.places) and not len(block.refused):
                continue
            is_first = shape is None and len(text.places) > 0
            shape = find_shape(path, text) if is_first else shape
            places, values, refused = parse_jobs(text, shape or Shape())
            if is_first and header.unix_start_s is None:
                _warn_of_start(path, values)
            warned = warned or _warn_of_memory(path, values)
            chunk = _vetted(places, values, header, params, now)
            vetoed = chunk.refused.assign(raw=_raws(block, chunk.refused["place"]))
            yield Chunk(chunk.rows, all_refusals([block.refused, refused, vetoed]), {})
        if shape is None:
            raise BadInput(path, "no job in it, only comments", EXPECTED, "export it again")


def _warn_of_start(path: str, values: Any) -> None:
    submits = values[:, FIELDS.index("submit_s")]
    if not (submits > PLAIN_EPOCH_S).any():
        logger.warning(
            "%s: no UnixStartTime in its comments, so its times count from 1970-01-01; "
            "add a line such as '; UnixStartTime: 749458803' at the top if you know the start",
            path,
        )


def _warn_of_memory(path: str, values: Any) -> bool:
    """Whether a warning was logged: that memory is more than machines have, so that its unit may be another one."""
    in_kb = values[:, [FIELDS.index("used_kb"), FIELDS.index("requested_kb")]]
    n_large = int((in_kb > LARGEST_KB).any(axis=1).sum())
    if n_large:
        logger.warning(
            "%s: %d jobs with more than %d TiB of memory a processor; the format counts kilobytes: if the log counts "
            "bytes, divide fields 7 and 10 by 1024",
            path, n_large, LARGEST_KB // 2**30,
        )  # fmt: skip
    return n_large > 0


def _raws(block: Block, places: pd.Series) -> pd.Series:
    lines = block.data.split(b"\n") if len(places) else []
    return pd.Series([lines[place - block.first].decode() for place in places], index=places.index, dtype="str")


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


def _vetted(places: Any, values: Any, header: SwfHeader, params: ReadParams, now: datetime) -> Chunk:
    numbers: Numbers = dict(zip(FIELDS, values.T, strict=True))
    status = np.where(np.isnan(numbers["status"]), MISSING, numbers["status"])
    is_part, is_known = np.isin(status, PARTS), np.isin(status, list(STATUS))
    with np.errstate(over="ignore"):  # what becomes infinite is refused
        rows = _runs(numbers, header).assign(place=places)
    parts = refusals(places[is_part], PART_OF_A_JOB, [""] * int(is_part.sum()))
    is_odd = ~is_part & ~is_known
    odd = refusals(
        places[is_odd], [f"status {code:g}; expected -1 to 5" for code in status[is_odd]], [""] * int(is_odd.sum())
    )
    chunk = vet_runs(rows[is_known], params, now)
    return Chunk(chunk.rows, all_refusals([chunk.refused, parts, odd]), {})


def _runs(numbers: Numbers, header: SwfHeader) -> pd.DataFrame:
    """The columns of jobs.runs that the format knows; times in UTC."""
    submit = (header.unix_start_s or 0.0) + numbers["submit_s"]
    wait, runtime, used = numbers["wait_s"], numbers["runtime_s"], numbers["used_cpus"]
    asked = numbers["requested_cpus"]
    never_began = (numbers["status"] == CANCELLED) & ~(runtime > 0) & ~(used > 0)
    is_start = np.isnan(wait) & ~never_began
    return pd.DataFrame(
        {
            "run_id": _ids(numbers["job"]),
            "name": _labels("app", numbers["app"], {}),
            "user_name": _labels("user", numbers["user"], {}),
            "queue": _labels("queue", numbers["queue"], header.queues),
            "account": _labels("group", numbers["group"], {}),
            "partition": _labels("partition", numbers["partition"], {}),
            "submitted_at": from_epoch_s(np.where(is_start, np.nan, submit)),
            "started_at": from_epoch_s(np.where(is_start, submit, np.where(never_began, np.nan, submit + wait))),
            "ended_at": from_epoch_s(np.where(never_began, submit + wait, np.nan)),
            "wait_s": np.where(never_began, np.nan, wait),
            "runtime_s": np.where(never_began, np.nan, runtime),
            "status": _statuses(numbers["status"]),
            "requested_cpus": asked,
            "used_cpus": used,
            "requested_runtime_s": numbers["requested_s"],
            "requested_memory_bytes": numbers["requested_kb"] * KILOBYTE * np.where(np.isnan(asked), used, asked),
            "cpu_s": numbers["cpu_s"] * used,  # the log has the average over the processors
            "peak_memory_bytes": numbers["used_kb"] * KILOBYTE * used,  # so it does here
        }
    )


def _ids(jobs: Any) -> pd.Series:
    is_whole = (np.abs(jobs) < EXACT_BELOW) & (jobs == np.floor(jobs))
    text = pd.Series(np.where(is_whole, jobs, 0).astype("int64")).astype("str").where(is_whole)
    return text.where(is_whole | ~(np.abs(jobs) < EXACT_BELOW), pd.Series(jobs).astype("str"))


def _labels(word: str, numbers: Any, names: dict[int, str]) -> Any:
    """`word number` for each number, or its name if it has one."""
    codes, distinct = pd.factorize(numbers)
    texts = [names.get(int(number), "") or f"{word} {number:.15g}" for number in distinct]
    return pd.array([*texts, None], dtype="str").take(codes)


def _statuses(numbers: Any) -> Any:
    codes, distinct = pd.factorize(numbers)
    return pd.array([*(STATUS.get(int(code)) for code in distinct), "unknown"], dtype="str").take(codes)


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
