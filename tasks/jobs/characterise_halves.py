"""Two random halves of the runs of every job, as histograms with several numbers of bins, without their rows."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tasks.jobs.characterise_bins import NORMALISED, bin_sql
from tasks.jobs.characterise_counts import put_table
from tasks.jobs.group_counts import Ints, count_cells
from tasks.jobs.pmf import Bins, Counts
from tasks.warehouse.connection import Connection

BATCH_CELLS = 1_000_000
MOST_CELLS = 2**62


def halve_groups(
    connection: Connection, bins: Bins, groups: Ints, compared_n_bins: tuple[int, ...], rng: np.random.Generator
) -> dict[int, tuple[Counts, Counts]]:
    """Histograms of the halves of the runs in D1 of some jobs, by number of bins: both (n, n_bins).

    groups: (n,) numbers of jobs in temp.groups, ascending. Dealing runs out at random makes the histogram of a half
    multivariate hypergeometric; so it is drawn from the counts. The halves are the same for all numbers of bins,
    unless there are so many that their product does not fit into one number: then for each."""
    together = float(len(groups) + 1) * np.prod([float(n) for n in compared_n_bins]) < MOST_CELLS
    found: dict[int, tuple[Counts, Counts]] = {}
    for n_bins in [compared_n_bins] if together else [(n,) for n in compared_n_bins]:
        found |= _halved(connection, bins, groups, n_bins, rng)
    return found


def _halved(
    connection: Connection, bins: Bins, groups: Ints, compared: tuple[int, ...], rng: np.random.Generator
) -> dict[int, tuple[Counts, Counts]]:
    cells, n_in_cell = count_cells(_cells(connection, bins, groups, compared))
    places: dict[int, Any] = {}
    for n_bins in reversed(compared):
        cells, places[n_bins] = np.divmod(cells, n_bins)
    ends = np.searchsorted(cells, np.arange(len(groups) + 1))  # what is left of a cell is the place of its job
    first = np.zeros_like(n_in_cell)
    for start, end in pairwise(ends):
        counts = n_in_cell[start:end]
        n = int(counts.sum())
        first[start:end] = rng.multivariate_hypergeometric(counts, n - n // 2)
    halves = {}
    for n_bins in compared:
        at, n = cells * n_bins + places[n_bins], len(groups) * n_bins
        both = (np.bincount(at, half, minlength=n).astype(np.int64) for half in (first, n_in_cell - first))
        one, other = (counts.reshape(len(groups), n_bins) for counts in both)
        halves[n_bins] = one, other
    return halves


def _cells(connection: Connection, bins: Bins, groups: Ints, compared: tuple[int, ...]) -> Any:
    """One number a run: the place of its job in `groups`, and its bin for each number of bins."""
    cell = "place"
    for n_bins in compared:
        cell = f"({cell} * {n_bins} + {bin_sql('value', bins.model_copy(update={'n_bins': n_bins}))})"
    places = pa.array(range(len(groups)), pa.int64())
    put_table(connection, "chosen", pa.table({"group_number": pa.array(groups, pa.int32()), "place": places}))
    sql = f"""WITH normalised AS (
        SELECT place, {NORMALISED[bins.kind]} AS value
        FROM temp.finished JOIN temp.groups USING (group_key) JOIN temp.chosen USING (group_number)
        WHERE part = 0
    )
    SELECT {cell} AS cell FROM normalised WHERE value IS NOT NULL"""
    for batch in connection.sql(sql).to_arrow_reader(BATCH_CELLS):
        yield batch.column(0).to_numpy()
