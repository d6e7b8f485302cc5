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
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.swf_lines import (
    EXPECTED,
    FIELDS,
    Shape,
    SwfHeader,
    find_shape,
    looks_like_swf,
    parse_jobs,
    split_jobs,
)
from tasks.jobs.vetting import vet_runs
from tasks.reading import Block, Chunk, all_refusals, read_blocks, refusals
from tasks.tally import PART_OF_A_JOB
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


@dataclass(frozen=True)
class SwfReader:
    """Reads .swf and .swf.gz."""

    name: str = "swf"
    version: int = 1
    ids_hold_names: bool = False
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
