"""Historic medians and histograms of every job of a log, made where the rows are, in bounded memory."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tasks.jobs.characterise_bins import NORMALISED, bin_sql, find_bins
from tasks.jobs.characterise_params import CharacteriseParams
from tasks.jobs.characterise_periods import split_runs
from tasks.jobs.group_counts import CellNumbers, GroupCounts, Ints, count_cells
from tasks.jobs.shape_params import Kind
from tasks.warehouse.connection import Connection

KINDS: tuple[Kind, ...] = ("ratio", "delta")
SQL = Path(__file__).parent
BATCH_CELLS = 1_000_000
GROUPS = """CREATE OR REPLACE TEMP TABLE groups AS
    SELECT (row_number() OVER (ORDER BY group_key) - 1)::INTEGER AS group_number, * FROM temp.medians"""


def count_groups(connection: Connection, source: str, params: CharacteriseParams) -> GroupCounts:
    """Medians of D1, and histograms of both kinds and of every part.

    Leaves temp.finished (see split_runs) and temp.groups (group_number, group_key, n_runs, n_history, median_s) on
    the connection. Raises BadInput for a log with fewer than three times of submission, or no run for ranges from the
    data. Source: Zhu et al. 2023, section 4.2."""
    bounds = split_runs(connection, source, params.split)
    groups = _medians(connection, math.ceil(bounds.n_history / params.batch_runs))
    enough = params.shapes.min_support if (groups["n_history"] >= params.shapes.min_support).any() else 1
    bins = {kind: find_bins(connection, kind, params.bins, min_support=enough) for kind in KINDS}
    numbers = CellNumbers(bins["ratio"].n_bins, bins["delta"].n_bins)
    cell = numbers.sql("group_number", "part", *(bin_sql(kind, bins[kind]) for kind in KINDS))
    files = ["characterise_cells.sql"]
    if np.isnan(groups["median_s"]).any():
        files.append("characterise_cells_before.sql")
    texts = {"cell": cell, "min_before": params.normalisation.min_before}
    cells, n_in_cell = count_cells(_cells(connection, files, texts))
    rows, cell_bins = numbers.read(cells)
    return GroupCounts(
        groups["group_key"], groups["median_s"], groups["n_history"], groups["n_runs"], bins, rows, cell_bins, n_in_cell
    )


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


def _medians(connection: Connection, n_batches: int) -> dict[str, NDArray[Any]]:
    """Fill temp.groups batch by batch, so that the runtimes of one batch only are held; its columns, in order."""
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE medians
        (group_key TEXT, n_runs BIGINT, n_history BIGINT, median_s DOUBLE)"""
    )
    sql = (SQL / "characterise_medians.sql").read_text()
    for batch in range(max(1, n_batches)):
        is_in_batch = f"hash(group_key) % {n_batches} = {batch}" if n_batches > 1 else "TRUE"
        connection.execute(sql.format(is_in_batch=is_in_batch))
    connection.execute(GROUPS)
    connection.execute("DROP TABLE temp.medians")
    found = connection.execute("SELECT * FROM temp.groups ORDER BY group_number").fetchnumpy()
    columns = {name: np.ma.asarray(values) for name, values in found.items()}
    return {name: np.ma.filled(values, np.nan if name == "median_s" else None) for name, values in columns.items()}


def _cells(connection: Connection, files: list[str], texts: dict[str, Any]) -> Iterator[Ints]:
    """The cell of each run, in batches. A query with parameters would not stream, so values are in its text."""
    for file in files:
        sql = (SQL / file).read_text().format(**NORMALISED, **texts)
        for batch in connection.sql(sql).to_arrow_reader(BATCH_CELLS):
            yield batch.column(0).to_numpy()
