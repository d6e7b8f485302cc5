"""Standard Workload Format: the job logs of the Parallel Workloads Archive.

One line a job, 18 numbers, -1 where one is missing; comments start with a semicolon. Definition:
https://www.cs.huji.ac.il/labs/parallel/workload/swf.html (version 2.2). What we decide where it leaves room:

- Lines hold 5 to 18 fields: as many as most of the first lines; other lines are refused. Where most have more than
  18 (MetaCentrum appends machines and resources), what is behind the 18th is left out.
- A job without a wait time began at its submit time (such logs say so in a note); its submission is unknown.
- Status 2, 3 and 4 are parts of an interrupted job, whose own line has status 0 or 1: they are refused.
- Status 5 without runtime and processors was cancelled in the queue: it never began.
- Without UnixStartTime times count from 1970: runtimes and distances hold, dates only if the log meant that."""

import logging
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.intake.cells import from_epoch_s
from tasks.intake.files import PART_OF_A_JOB, Chunk, all_refusals, read_lines, refusals, refused_rows
from tasks.jobs.columns import vet_runs
from tasks.jobs.params import ReadParams

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
BLANKS = " \t"
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
CODE = re.compile(r"-?[0-9]{1,9}")  # of a status
PLAIN_NUMBER = r"[+-]?[0-9]{1,18}(?:\.[0-9]{0,18})?"  # any other way to write one is looked at more closely
COMMENT = re.compile(r";+\s*([A-Za-z]+)\s*:\s*(.*?)\s*$")
KNOWN_COMMENTS = re.compile(r"^\s*;+\s*(?:Version|Computer|Installation|UnixStartTime|Max[A-Z]\w+)\s*:", re.MULTILINE)
QUEUE = re.compile(r"(\d+)\s+(\S.*)")
EXPECTED = f"Standard Workload Format: lines of {MIN_FIELDS} to {N_FIELDS} numbers, comments after ';'"
Placed = tuple[int, str]  # a line with its number in the file


def sniff(head: bytes, path: str) -> bool:  # noqa: ARG001
    """By the comments at its start, or by lines of 18 numbers."""
    text = head.decode("latin-1")
    lines = [line for line in text.split("\n")[:-1] or [text] if line.strip()]
    jobs = [line.split() for line in lines if not line.lstrip(BLANKS).startswith(";")][:LOOKED_AT]
    numeric = [words for words in jobs if _is_numeric(words)]
    if KNOWN_COMMENTS.search(text):
        return not jobs or 2 * len(numeric) > len(jobs)
    return 2 * sum(len(words) >= N_FIELDS for words in numeric) > len(jobs)


def read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """See Reader.read."""
    header, first_job, now = SwfHeader(), math.inf, datetime.now(UTC).replace(tzinfo=None)
    shape: Shape | None = None
    has_warned = False
    for block in read_lines(path, params.limits):
        lines = dict(zip(block.places, block.lines, strict=True))
        comments = [(place, line) for place, line in lines.items() if line.lstrip(BLANKS).startswith(";")]
        jobs = [(place, line) for place, line in lines.items() if line.strip()]
        jobs = [job for job in jobs if not job[1].lstrip(BLANKS).startswith(";")] if comments else jobs
        first_job = min([first_job, *(place for place, _ in jobs[:1])])
        header.add(path, comments, first_job)
        if not jobs and not block.refused:
            continue
        is_first = shape is None and bool(jobs)
        shape = find_shape(path, jobs) if is_first else shape
        places, values, refused = parse_jobs(jobs, shape or Shape())
        if is_first and header.unix_start_s is None:
            _warn_of_start(path, values)
        has_warned = has_warned or _warn_of_memory(path, values)
        chunk = _vetted(places, values, header, params, now)
        at, why = chunk.refused["place"], chunk.refused["reason"].to_list()
        vetoed = refusals(at, why, [lines[place] for place in at])
        yield Chunk(chunk.rows, all_refusals([refused_rows(block.refused), refused, vetoed]), {})
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


@dataclass
class SwfHeader:
    """What the comments say, as far as it is needed; grows while the file is read."""

    unix_start_s: float | None = None
    queues: dict[int, str] = field(default_factory=dict)

    def add(self, path: str, comments: Sequence[Placed], first_job: float) -> None:
        """Take in more comments. Raises BadInput if another start follows behind line `first_job`."""
        for place, text in comments:
            match = COMMENT.match(text.lstrip(BLANKS))
            name, value = (match[1].lower(), match[2]) if match else ("", "")
            if name == "unixstarttime" and NUMBER.fullmatch(value):
                if float(value) != self.unix_start_s and place > first_job:
                    problem = f"line {place} starts another log (UnixStartTime: {value})"
                    raise BadInput(path, problem, "one log", "split the file")
                self.unix_start_s = float(value)
            elif name == "queue" and (queue := QUEUE.fullmatch(value)):
                self.queues[int(queue[1])] = queue[2]


def _vetted(places: Any, values: Any, header: SwfHeader, params: ReadParams, now: datetime) -> Chunk:
    numbers: Numbers = dict(zip(FIELDS, values.T, strict=True))
    status = np.where(np.isnan(numbers["status"]), MISSING, numbers["status"])
    meanings = STATUS | {int(code): mapped for code, mapped in params.statuses.items() if CODE.fullmatch(code)}
    is_known = np.isin(status, list(meanings))
    is_part = np.isin(status, PARTS) & ~is_known
    with np.errstate(over="ignore"):  # what becomes infinite is refused
        rows = _runs(numbers, header, meanings).assign(place=places)
    parts = refusals(places[is_part], PART_OF_A_JOB, [""] * int(is_part.sum()))
    is_odd = ~is_part & ~is_known
    odd = refusals(
        places[is_odd], [f"status {code:g}; expected -1 to 5" for code in status[is_odd]], [""] * int(is_odd.sum())
    )
    chunk = vet_runs(rows[is_known], params, now)
    return Chunk(chunk.rows, all_refusals([chunk.refused, parts, odd]), {})


def _runs(numbers: Numbers, header: SwfHeader, meanings: Mapping[int, str]) -> pd.DataFrame:
    """The columns of jobs.runs that the format knows; times in UTC."""
    submit = (header.unix_start_s or 0.0) + numbers["submit_s"]
    wait, runtime, used = numbers["wait_s"], numbers["runtime_s"], numbers["used_cpus"]
    cpus = numbers["requested_cpus"]
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
            "status": _statuses(numbers["status"], meanings),
            "requested_cpus": cpus,
            "used_cpus": used,
            "requested_runtime_s": numbers["requested_s"],
            "requested_memory_bytes": numbers["requested_kb"] * KILOBYTE * np.where(np.isnan(cpus), used, cpus),
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


def _statuses(numbers: Any, meanings: Mapping[int, str]) -> Any:
    codes, distinct = pd.factorize(numbers)
    return pd.array([*(meanings.get(int(code)) for code in distinct), "unknown"], dtype="str").take(codes)


@dataclass(frozen=True)
class Shape:
    """How many numbers the lines of a log have, 5 to 18, and whether more follows (some logs append fields)."""

    n_fields: int = N_FIELDS
    has_more: bool = False


def _is_numeric(words: list[str]) -> bool:
    """Whether the fields of the format (and not what some logs append) are numbers."""
    return all(NUMBER.fullmatch(word) for word in words[:N_FIELDS])


def find_shape(path: str, jobs: Sequence[Placed]) -> Shape:
    """The shape of most of the first job lines; raises BadInput if they are no lines of numbers."""
    words = [line.split() for _, line in jobs[:LOOKED_AT]]
    counts = Counter(min(len(line), N_FIELDS + 1) for line in words if _is_numeric(line))
    n_fields, n_lines = counts.most_common(1)[0] if counts else (0, 0)
    if n_fields < MIN_FIELDS:
        problem = f"most of its first lines have {n_fields} numbers" if n_lines else "its first lines are not numbers"
        place, line = jobs[0]
        raise BadInput(path, f"{problem} (line {place}: {line[:60].strip()!r})", EXPECTED, "name another reader")
    return Shape(min(n_fields, N_FIELDS), has_more=n_fields > N_FIELDS)


def parse_jobs(jobs: Sequence[Placed], shape: Shape) -> tuple[Any, Any, pd.DataFrame]:
    """Line numbers, numbers (n_jobs, 18) with NaN for what is missing, and the lines that were refused."""
    good, bad = list[Placed](), list[tuple[int, str, str]]()
    more = r"(?:[ \t].*)?" if shape.has_more else r"[ \t]*"
    # a line in which nothing is wrong; lines that it does not match are looked at more closely
    is_plain = re.compile(rf"[ \t]*+{PLAIN_NUMBER}(?:[ \t]++{PLAIN_NUMBER}){{{shape.n_fields - 1}}}{more}").fullmatch
    for place, line in jobs:
        if is_plain(line):
            good.append((place, line))
        elif fault := _fault(line.split(), shape):
            bad.append((place, fault, line))
        else:
            good.append((place, " ".join(line.split())))  # loadtxt takes no carriage return inside a line
    values = np.full((len(good), N_FIELDS), np.nan)
    if good:
        known = range(shape.n_fields)
        values[:, known] = np.loadtxt([line for _, line in good], comments=None, usecols=known, ndmin=2)
    values[values == MISSING] = np.nan
    return np.array([place for place, _ in good], dtype="int64"), values, refused_rows(bad)


def _fault(words: list[str], shape: Shape) -> str:
    for position, word in enumerate(words[:N_FIELDS], 1):
        if not NUMBER.fullmatch(word):
            return f"field {position} is not a number"
        if not math.isfinite(float(word)):
            return f"field {position} is too large"
    if len(words) == shape.n_fields or (shape.has_more and len(words) > shape.n_fields):
        return ""
    return f"{len(words)} fields; the lines of this log have {shape.n_fields}{' or more' if shape.has_more else ''}"
