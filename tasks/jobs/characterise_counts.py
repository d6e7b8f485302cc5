"""Historic medians and histograms of every job of a log, made where the rows are, in bounded memory."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from tasks.jobs.characterise_bins import NORMALISED, bin_sql
from tasks.jobs.characterise_cells import add_tails, cells_of, historic_medians_of
from tasks.jobs.characterise_held import Jobs, hold_runs, list_jobs
from tasks.jobs.characterise_periods import split_runs
from tasks.jobs.characterise_tails import bins_from, tails_of
from tasks.jobs.group_counts import CellNumbers, GroupCounts, Ints, count_cells, merge_cells
from tasks.jobs.pmf import Bins, Floats, bins_of
from tasks.jobs.shape_params import CharacteriseParams, Kind
from tasks.warehouse.connection import Connection

KINDS: tuple[Kind, ...] = ("ratio", "delta")
SQL = Path(__file__).parent
BATCH_CELLS = 1_000_000


def count_groups(connection: Connection, source: str, params: CharacteriseParams) -> GroupCounts:
    """Medians of D1, and histograms of both kinds and of every part.

    Leaves temp.finished (see split_runs) and temp.groups (group_number, group_key, n_runs, n_history, median_s) on
    the connection. Raises BadInput for a log with fewer than three times of submission, or no run for ranges from the
    data. Source: Zhu et al. 2023, section 4.2."""
    split_runs(connection, source, params.split)
    jobs = list_jobs(connection)
    medians_s, bins, counted = _count(connection, jobs, params)
    counts = partial(GroupCounts, jobs.keys, medians_s, jobs.n_history, jobs.n_runs, bins)
    numbers = CellNumbers(bins["ratio"].n_bins, bins["delta"].n_bins)
    nothing = np.zeros(0, dtype=np.int64)
    put_groups(connection, counts(nothing, {}, nothing))
    if np.isnan(medians_s).any():
        counted.append(count_cells(_cells_before(connection, numbers, bins, params.normalisation.min_before)))
    cells, n_in_cell = merge_cells(counted)
    return counts(*numbers.read(cells), n_in_cell)


def put_groups(connection: Connection, counts: GroupCounts) -> None:
    """Leave temp.groups on another connection, as count_groups left it on its own."""
    table = pa.table(
        {
            "group_number": pa.array(range(counts.n_groups), pa.int32()),
            "group_key": pa.array(counts.keys, pa.string()),
            "n_runs": counts.n_runs,
            "n_history": counts.n_history,
            "median_s": pa.array(counts.medians_s, from_pandas=True),
        }
    )
    put_table(connection, "groups", table)


def put_table(connection: Connection, name: str, rows: pa.Table) -> None:
    """Leave rows on the connection as temp.<name>."""
    connection.register("rows_to_put", rows)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM rows_to_put")
    connection.unregister("rows_to_put")


def _count(
    connection: Connection, jobs: Jobs, params: CharacteriseParams
) -> tuple[Floats, dict[Kind, Bins], list[tuple[Ints, Ints]]]:
    """Medians of D1, (n_groups,); bins; and cells with their counts. Ranges from the data need the runs twice."""
    medians_s = np.full(len(jobs.keys), np.nan)
    counted: list[tuple[Ints, Ints]] = []
    is_derived = params.bins.ranges == "data"
    enough = params.shapes.min_support if (jobs.n_history >= params.shapes.min_support).any() else 1
    tails = tails_of(np.where(jobs.n_history >= enough, jobs.n_history, 0), params.bins, KINDS)
    bins = {} if is_derived else {kind: bins_of(kind, params.bins) for kind in KINDS}
    for held in hold_runs(connection, jobs, params.batch_runs):
        medians_s[held.jobs] = historic_medians_of(held)
        if is_derived:
            add_tails(tails, held, medians_s[held.jobs], min_history=enough)
        else:
            counted += cells_of(held, medians_s[held.jobs], bins)
    if is_derived:
        bins = bins_from(tails, params.bins)
        for held in hold_runs(connection, jobs, params.batch_runs):
            counted += cells_of(held, medians_s[held.jobs], bins)
    return medians_s, bins, counted


def _cells_before(
    connection: Connection, numbers: CellNumbers, bins: dict[Kind, Bins], min_before: int
) -> Iterator[Ints]:
    """The cell of each run, in batches. A query with parameters would not stream, so values are in its text."""
    cell = numbers.sql("group_number", "part", *(bin_sql(kind, bins[kind]) for kind in KINDS))
    sql = (SQL / "characterise_cells_before.sql").read_text().format(**NORMALISED, cell=cell, min_before=min_before)
    for batch in connection.sql(sql).to_arrow_reader(BATCH_CELLS):
        yield batch.column(0).to_numpy()
