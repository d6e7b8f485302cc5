"""The runtimes of many jobs in memory, those of one job and part of the log side by side, batch by batch of jobs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.jobs.group_counts import Ints
from tasks.jobs.pmf import Floats
from tasks.warehouse.connection import Connection

SQL = Path(__file__).parent
HASH = "hash(group_key)"
BY_HASH, BY_KEY = f"{HASH} = key_hash", "group_key = job_key"
N_LOG_PARTS = 3  # D1, D2, D3
AT_ONCE = 2**17  # runs: what is made of so many stays in the processor's cache
BITS_OF_SHORT = 32


@dataclass(frozen=True)
class Jobs:
    """keys: (n_jobs,) sorted; n_in_part: (n_jobs, 3) finished runs in D1, D2 and D3; is_same_job: SQL that finds the
    job of a run in temp.jobs."""

    keys: NDArray[np.object_]
    n_in_part: Ints
    is_same_job: str

    @property
    def n_history(self) -> Ints:
        """Runs in D1: (n_jobs,)."""
        return self.n_in_part[:, 0]

    @property
    def n_runs(self) -> Ints:
        """Runs in the whole log: (n_jobs,)."""
        return np.asarray(self.n_in_part.sum(axis=1))


@dataclass(frozen=True)
class HeldRuns:
    """first: number of the first job of the batch; starts: (3 * n_jobs + 1,) where the stretch of each job and part
    begins, the last being where all end; runtime_s: (n_runs,) by stretch, in no order within one."""

    first: int
    starts: Ints
    runtime_s: Floats

    @property
    def jobs(self) -> slice:
        """Numbers of the jobs."""
        return slice(self.first, self.first + len(self.starts) // N_LOG_PARTS)

    def pieces(self) -> Iterator[tuple[Ints, Ints, Floats]]:
        """At most AT_ONCE runs at a time: the stretches that they are in, how many of them in each, and runtimes."""
        for low in range(0, len(self.runtime_s), AT_ONCE):
            high = min(low + AT_ONCE, len(self.runtime_s))
            first, last = np.searchsorted(self.starts, low, "right") - 1, np.searchsorted(self.starts, high, "left")
            sizes = np.diff(self.starts[first : last + 1].clip(low, high))
            yield np.arange(first, last), sizes, self.runtime_s[low:high]


def list_jobs(connection: Connection) -> Jobs:
    """The jobs of temp.finished, left as temp.jobs (group_number, key_hash, job_key, …) on the connection."""
    connection.execute((SQL / "characterise_jobs.sql").read_text().format(hash=HASH))
    sql = "SELECT job_key, n_first, n_second, n_third FROM temp.jobs ORDER BY group_number"
    keys, *n_in_part = (np.ma.getdata(column) for column in connection.execute(sql).fetchnumpy().values())
    ((n_hashes,),) = connection.execute("SELECT count(DISTINCT key_hash) FROM temp.jobs").fetchall()
    return Jobs(keys, np.stack(n_in_part, axis=1), BY_HASH if n_hashes == len(keys) else BY_KEY)


def hold_runs(connection: Connection, jobs: Jobs, batch_runs: int) -> Iterator[HeldRuns]:
    """All runs of all jobs, about batch_runs at a time, 8 bytes of memory each; a job is in one batch as a whole.

    temp.finished and temp.jobs must be there."""
    sql = (SQL / "characterise_held.sql").read_text()
    for first, last in pairwise(batch_bounds(jobs.n_runs, batch_runs)):
        sizes = jobs.n_in_part[first:last].ravel()
        starts = np.concatenate([[0], np.cumsum(sizes)])
        runtime_s, free = np.empty(starts[-1]), starts[:-1].copy()
        asked = sql.format(first=first, last=last, is_same_job=jobs.is_same_job)
        for batch in connection.sql(asked).to_arrow_reader(AT_ONCE):
            put_by_stretch(runtime_s, free, batch.column(0).to_numpy(), batch.column(1).to_numpy())
        yield HeldRuns(first, starts, runtime_s)


def batch_bounds(n_runs: Ints, batch_runs: int) -> list[int]:
    """Where each batch of jobs begins, and the end of the last: of about equally many runs, at most batch_runs and the
    rest of one job. n_runs: (n_jobs,), at least 1 each."""
    ends = np.cumsum(n_runs)
    n_batches = -(-int(ends[-1]) // batch_runs)
    batch = (ends - n_runs) * n_batches // ends[-1]
    return [*np.flatnonzero(np.diff(batch, prepend=-1)).tolist(), len(n_runs)]


def put_by_stretch(held: Floats, free: Ints, stretches: NDArray[Any], values: Floats) -> None:
    """Put each value where its stretch has the next free place; held and free: changed.

    stretches, values: (n,). Sorting one number of stretch and place is what numpy does fastest."""
    if not len(values):
        return
    n_bits = (len(values) - 1).bit_length()
    is_short = (len(free) - 1).bit_length() + n_bits <= BITS_OF_SHORT
    packed: NDArray[Any] = stretches.astype(np.uint32 if is_short else np.uint64)
    packed <<= n_bits
    packed |= np.arange(len(values), dtype=packed.dtype)
    packed.sort()
    order = packed & ((1 << n_bits) - 1)
    packed >>= n_bits
    starts = np.flatnonzero(np.concatenate([[True], packed[1:] != packed[:-1]]))
    found, sizes = packed[starts], np.diff(starts, append=len(values))
    held[np.repeat(free[found] - starts, sizes) + np.arange(len(values))] = values[order]
    free[found] += sizes
