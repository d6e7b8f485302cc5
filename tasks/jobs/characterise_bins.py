"""The bins of normalised runtimes in SQL: the same bin for every value as Bins.index gives it."""

from tasks.jobs.pmf import Bins
from tasks.jobs.shape_params import Kind

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


def _double(number: float) -> str:
    return f"'{float(number)!r}'::DOUBLE"  # from a text, which DuckDB reads to the bit
