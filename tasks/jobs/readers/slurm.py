"""Slurm's accounting: the output of `sacct --parsable2` (or --parsable), with a header line or without."""

import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.slurm_fields import is_state, memory_bytes
from tasks.jobs.readers.slurm_layout import BAR, STEP_MARK, Layout, find_layout, sacct_fields_in
from tasks.jobs.readers.slurm_rows import STEP_PEAK, job_rows, read_numbers, run_ids
from tasks.jobs.readers.slurm_table import join_blocks, raw_lines, read_table, split_before_last_job
from tasks.reading import HEAD_BYTES, Block, Chunk, all_refusals, read_blocks, refusals
from tasks.times import check_zone

logger = logging.getLogger(__name__)

CHUNK_BYTES, CHUNK_LINES = 16 * 2**20, 50_000  # each chunk costs some fixed time
SNIFFED_LINES = 20
ENOUGH_FIELDS = 3  # names of sacct's fields, job id among them, that tell a header from other text
LAYOUT_LINES = 1000  # the commonest number of fields in these counts
BUNDLE_MARK = "_["  # 123_[5-9]: tasks of a job array that have not begun
SOME_JOB_ID = re.compile(r"\d+(_(\d+|\[.+\])|\+\d+)?(\.\w+)?")
SOME_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*|\d{9,11}|Unknown|None")
SOME_DURATION = re.compile(r"(\d+-)?\d\d:\d\d:\d\d")


class SlurmReader:
    """Job rows from sacct; job steps (123.batch) are no runs, but lend the job their peak memory."""

    name = "slurm"
    version = 1
    ids_hold_names: bool = False
    title = "Slurm: sacct --parsable2"
    endings = ("sacct", "sacct.gz", "sacct.log", "sacct.log.gz", "sacct.txt", "sacct.txt.gz")

    def sniff(self, head: bytes, path: str) -> bool:  # noqa: ARG002
        """A header with a job id and other fields of sacct, or lines with an id, a time and a state."""
        lines = _filled_lines(head)[:SNIFFED_LINES]
        if not lines or b"\x00" in head:
            return False
        return len(sacct_fields_in(lines[0])) >= ENOUGH_FIELDS or sum(map(_looks_like_a_job, lines)) * 2 > len(lines)

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """Chunks of some 50,000 jobs, in the order of the file: a later line of a job is its newer state.

        Raises BadInput if the fields do not fit, or if times name no zone and params.time_zone is empty;
        BadSetting for a wrong params.time_zone or params.sacct_fields."""
        check_zone(params.time_zone or "UTC")
        now, cluster, n_left_out = datetime.now(UTC).replace(tzinfo=None), "", 0
        for block, layout in _batches(path, params):
            table, miscounted = read_table(block, layout)
            cluster = cluster or _commonest_cluster(table)
            jobs = _jobs(table)
            n_left_out += len(table) - len(jobs)
            chunk = job_rows(jobs, params, now, path=path, cluster=cluster)
            places = chunk.refused["place"]
            refused = refusals(places, chunk.refused["reason"].to_list(), raw_lines(block, places))
            yield Chunk(chunk.rows, all_refusals([miscounted, refused]), {})
        if n_left_out:
            logger.info("%s: %d lines are job steps or array tasks that have not begun", path, n_left_out)


def _looks_like_a_job(line: str) -> bool:
    fields = line.split(BAR)
    has_state = any(map(is_state, fields))
    kinds = [any(kind.fullmatch(field) for field in fields) for kind in (SOME_JOB_ID, SOME_TIME, SOME_DURATION)]
    return kinds[0] and kinds[1] and (has_state or kinds[2])


def _batches(path: str, params: ReadParams) -> Iterator[tuple[Block, Layout]]:
    """The lines in large blocks that end before a job, so that it stays together with its steps."""
    waiting: list[Block] = []
    layout, n_bytes, n_lines = None, 0, 0
    for block in read_blocks(path, params.limits):
        waiting.append(block)
        n_bytes, n_lines = n_bytes + len(block.data), n_lines + block.data.count(b"\n")
        if n_bytes >= CHUNK_BYTES or n_lines >= CHUNK_LINES:
            whole = join_blocks(waiting)
            layout = layout or _layout(path, whole, params)
            batch, rest = split_before_last_job(whole, layout)
            waiting, n_bytes, n_lines = [rest], len(rest.data), 0
            yield batch, layout
    if waiting:
        whole = join_blocks(waiting)
        yield whole, layout or _layout(path, whole, params)


def _layout(path: str, block: Block, params: ReadParams) -> Layout:
    lines = _filled_lines(block.data)
    if not lines:
        raise BadInput(path, "only blank lines", "output of sacct --parsable2", "export it again")
    return find_layout(path, lines[:LAYOUT_LINES], params.sacct_fields)


def _filled_lines(data: bytes) -> list[str]:
    lines = data[:HEAD_BYTES].decode("utf-8", "replace").splitlines()
    whole = lines[:-1] if len(data) > HEAD_BYTES else lines
    return [line for line in whole if line.strip()]


def _commonest_cluster(table: pd.DataFrame) -> str:
    return str(table["Cluster"].mode().iloc[0]) if "Cluster" in table and len(table) else ""


def _jobs(table: pd.DataFrame) -> pd.DataFrame:
    """The jobs without their steps, but with the largest MaxRSS of these; without bundles of waiting tasks."""
    is_step = run_ids(table).str.contains(STEP_MARK, regex=False)
    is_bundle = pd.Series(False, index=table.index)
    if {"JobID", "State"} <= set(table):
        is_bundle = table["JobID"].str.contains(BUNDLE_MARK, regex=False) & (table["State"] == "PENDING")
    jobs = table[~is_step & ~is_bundle]
    if "MaxRSS" not in table or not is_step.any():
        return jobs
    peak, _ = read_numbers(table[is_step], "MaxRSS", memory_bytes)
    largest = peak.groupby(run_ids(table[is_step]).str.partition(STEP_MARK)[0]).max()
    return jobs.assign(**{STEP_PEAK: run_ids(jobs).map(largest)})
