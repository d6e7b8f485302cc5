"""Table 2 of the shapes of a log: exact quantiles of all runs of their members, in SQL where the rows are."""

import numpy as np
import pandas as pd
import pyarrow as pa

from tasks.jobs.characterise_bins import NORMALISED, bin_sql
from tasks.jobs.characterise_counts import put_table
from tasks.jobs.pmf import Bins
from tasks.jobs.shapes import (
    NO_LABEL,
    TABLE_COLUMNS,
    Labels,
)
from tasks.warehouse.connection import Connection

DIGITS = 12  # of a deviation: the order in which threads add up moves the last three of the sixteen
TABLE = """SELECT label, count(*) AS n_runs, 100 * avg(is_outlier::INTEGER) AS outlier_percent,
    quantile_cont(value, [0.25, 0.75, 0.95]) AS quantiles, stddev_samp(value) AS std FROM (
        SELECT label, {value} AS value, {bin} = {last} AS is_outlier
        FROM temp.finished JOIN temp.groups USING (group_key) JOIN temp.labels USING (group_number)
        WHERE part = 0
    ) WHERE value IS NOT NULL AND label = $label GROUP BY label"""


def describe_shapes(connection: Connection, bins: Bins, labels: Labels, k: int) -> pd.DataFrame:
    """The table of rank_by_runs over the runs in D1, one row a shape, in the order of the labels.

    labels: (n_groups,), 0 to k - 1, or -1, of the jobs of temp.groups, which must be there as temp.finished must. One
    shape is looked at after the other: about 20 bytes of memory for each run of the largest. std to 12 digits.
    Source: Table 2."""
    members = np.flatnonzero(labels != NO_LABEL)
    table = pa.table({"group_number": pa.array(members, pa.int32()), "label": pa.array(labels[members], pa.int32())})
    put_table(connection, "labels", table)
    value = NORMALISED[bins.kind]
    sql = TABLE.format(value=value, bin=bin_sql(f"({value})", bins), last=bins.n_bins - 1)
    rows = []
    for shape in range(k):
        nothing = [(shape, 0, np.nan, (np.nan,) * 3, None)]
        ((_, n_runs, outliers, (p25, p75, p95), std),) = connection.execute(sql, {"label": shape}).fetchall() or nothing
        std = np.nan if std is None else float(f"{std:.{DIGITS}g}")
        rows.append([int((labels == shape).sum()), n_runs, outliers, p75 - p25, p95, std])
    return pd.DataFrame(rows, columns=TABLE_COLUMNS).astype({"n_groups": np.int64, "n_runs": np.int64})
