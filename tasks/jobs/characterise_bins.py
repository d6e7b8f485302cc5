"""The bins of normalised runtimes in SQL: the same bin for every value as Bins.index gives it."""

import math

from tasks.jobs.pmf import Bins, bins_of, derived_bins
from tasks.jobs.shape_params import BinParams, Kind
from tasks.warehouse.connection import Connection

NORMALISED: dict[Kind, str] = {"ratio": "runtime_s / nullif(median_s, 0)", "delta": "runtime_s - median_s"}


def bin_sql(value: str, bins: Bins) -> str:
    """The bin h(x) of the SQL expression `value`, a DOUBLE; missing for a missing value.

    That of Bins.index for every value: the same operations in the same order on the same doubles."""
    low, high, n_inside = _double(bins.low), _double(bins.high), bins.n_inside
    is_ratio = bins.kind == "ratio"
    first, last = ("<=", ">=") if is_ratio else ("<", ">")
    inside = f"({value} - {low}) * {_double(n_inside)} / ({high} - {low})"
    return (
        f"CASE WHEN {value} {last} {high} THEN {bins.n_bins - 1} WHEN {value} {first} {low} THEN 0 "
        f"WHEN {value} IS NOT NULL THEN least(trunc({inside})::INTEGER + 1, {n_inside}) END"  # least overlooks a NULL
    )


def find_bins(connection: Connection, kind: Kind, params: BinParams, *, min_support: int) -> Bins:
    """The bins that the parameters ask for; ranges from the data are derived_bins of the runs of D1.

    Only jobs with min_support runs there count: a job that ran once is its own median. temp.finished and temp.groups
    must be there. Raises BadInput if no run has a median. Source: footnote 3."""
    if params.ranges == "paper":
        return bins_of(kind, params)
    runs = f"""FROM (SELECT {NORMALISED[kind]} AS value FROM temp.finished JOIN temp.groups USING (group_key)
        WHERE part = 0 AND n_history >= $min_support) WHERE value IS NOT NULL"""
    asked = {"min_support": min_support}
    ((n,),) = connection.execute(f"SELECT count(*) {runs}", asked).fetchall()
    if not n:
        return derived_bins(kind, [], params)  # refuses
    position = (1 - params.tail_share) * (n - 1)
    # sorted, which DuckDB can do on disk: a quantile would hold all values
    ranked = f"SELECT value {runs} ORDER BY value LIMIT 2 OFFSET $rank"
    rows = connection.execute(ranked, {**asked, "rank": math.floor(position)}).fetchall()
    low, high = float(rows[0][0]), float(rows[-1][0])
    return derived_bins(kind, [low + (high - low) * (position - math.floor(position))], params)


def _double(number: float) -> str:
    return f"'{float(number)!r}'::DOUBLE"  # from a text, which DuckDB reads to the bit
