"""Tables of samples: rows of CSV, columns of numbers, times, and values of one time put side by side."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.errors import BadInput, headless, quoted
from tasks.intake.aliases import date_order, distinct_texts, is_text, iso_dates, named
from tasks.intake.cells import FIRST_S, LAST_S, MICROSECONDS, Cells, calendar_dates, in_seconds, utc_times
from tasks.intake.cells import numbers as to_numbers
from tasks.workloads.prepared import KEY_COLUMNS, FileRun
from tasks.workloads.telemetry import TIMES, Counter, FloatArray

ALIASES = {  # of key columns; those of labels count where they hold text
    "timestamp": TIMES,
    "run_id": ("run", "session"),
    "workload": ("job", "jobname", "application", "app", "benchmark"),
    "machine": ("host", "hostname", "node", "nodename", "server", "instance"),
}  # fmt: skip
METRICS = ("metric", "metricname", "counter", "countername", "measure", "field", "sensor")
VALUES = ("value", "val", "reading", "wert")
TEXT_SHARE = 0.5  # of the values that are there: a column with more that are no numbers holds text
DATES_SHARE = 0.5  # of the numbers in a column of dates: every third of consecutive seconds may look like one


def choose_keys(
    path: str, names: Sequence[str], renamed: Mapping[str, str], text_columns: Collection[str] = ()
) -> dict[str, str]:
    """Our key columns (KEY_COLUMNS) and their names in the file.

    renamed: ours to theirs; counters may be renamed as well. text_columns: those that hold text: they may be labels
    that are called otherwise. Raises BadInput for a renamed column that is not there."""
    for ours, theirs in renamed.items():
        if theirs not in names:
            problem = f"no column '{theirs}' to read '{ours}' from"
            raise BadInput(path, problem, f"one of {quoted(names)}", headless(names) or "mend --map")
    taken = {theirs for ours, theirs in renamed.items() if ours not in KEY_COLUMNS}
    keys = {key: renamed.get(key, key) for key in KEY_COLUMNS if key in renamed or (key in names and key not in taken)}
    for ours, aliases in ALIASES.items():
        is_time = ours == "timestamp"
        if ours in keys or (is_time and "at_s" in keys):
            continue
        free = [name for name in names if name not in taken and (is_time or name in text_columns)]
        if match := next(named(free, aliases, set(keys.values())), None):
            keys[ours] = match[0]
    return keys


def fault_of(numbers: Cells) -> str:
    """Why a column is no counter; empty if it is one."""
    n_there = int((~np.isnan(numbers.values) | numbers.is_bad).sum())
    if not n_there:
        return "no value in it"
    return "holds text" if numbers.is_bad.sum() > TEXT_SHARE * n_there else ""


def texts(column: pa.ChunkedArray | pa.Array) -> list[str | None]:
    """A column of labels as texts; 3.0 is 3; empty is None."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return [_label(value) for value in column.to_pylist()]


def _label(value: object) -> str | None:
    if value is None or value != value:
        return None
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    return text or None


def unix_seconds(column: pa.ChunkedArray | Sequence[str], zone: str) -> FloatArray:
    """A column of times in seconds since 1970, or since some start where it counts from there; NaN: no time.

    zone: of text and timestamps that name none."""
    if not isinstance(column, pa.ChunkedArray):
        column = pa.chunked_array([pa.array(column, pa.string())])
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _seconds(utc_times(column.combine_chunks(), zone)[0])
    numbers = to_numbers(column)
    if not numbers.is_bad.any():
        return _in_seconds(numbers.values, zone)
    if is_text(kind) and (order := date_order("the table", {"time": distinct_texts(column)})):
        column = pa.chunked_array([iso_dates(column, order)])
    from_text = _seconds(utc_times(column.combine_chunks(), zone)[0])
    return np.where(numbers.is_bad, from_text, _in_seconds(numbers.values, zone))


def _in_seconds(values: FloatArray, zone: str) -> FloatArray:
    """Times written as numbers in seconds: dates where most of them are some, else Unix time or since some start."""
    known = values[~np.isnan(values)]
    dates = calendar_dates(values)
    if len(known) and np.isfinite(known).all() and (~np.isnat(dates)).sum() > DATES_SHARE * len(known):
        return _seconds(utc_times(pa.array(dates), zone)[0])
    size = float(np.median(np.abs(known))) if len(known) else 0.0
    seconds = in_seconds(values, np.full(len(values), size))
    return np.where(np.abs(seconds) <= LAST_S, seconds, np.nan)


def start_and_offsets(seconds: FloatArray) -> tuple[datetime | None, FloatArray]:
    """The first time as a UTC time (None where it counts from some start), and seconds since then."""
    first = float(np.nanmin(seconds))
    if not FIRST_S <= first <= LAST_S:
        return None, seconds if first >= 0 else seconds - first
    return datetime(1970, 1, 1) + pd.Timedelta(seconds=first).to_pytimedelta(), np.asarray(seconds - first)


def _seconds(times: NDArray[np.datetime64]) -> FloatArray:
    return np.where(np.isnat(times), np.nan, times.astype("datetime64[us]").astype("int64") / MICROSECONDS)


def side_by_side(
    counters: tuple[Counter, ...],
    at_s: FloatArray,
    places: NDArray[np.int64],
    cells: tuple[NDArray[np.int64], NDArray[np.int64], FloatArray],
    *,
    n_units: NDArray[np.int64] | None = None,
    **more: Any,
) -> FileRun:
    """A run from rows, each of which holds one or more values of one time.

    at_s, places: (n_rows,), time and number of each row. cells: row, counter and value of each value (n_values,).
    Values of one time and counter are added up; where fewer than n_units (n_counters,) of them stand, or one of them
    is NaN, the sum is missing. Values that must not be added up must not stand twice."""
    times, sample_of = np.unique(at_s, return_inverse=True)
    rows, columns, given = cells
    shape = (len(times), len(counters))
    values, n_given = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    np.add.at(values, (sample_of[rows], columns), given)
    np.add.at(n_given, (sample_of[rows], columns), 1)
    needed = np.ones(len(counters), dtype=np.int64) if n_units is None else n_units
    values[n_given < needed] = np.nan
    defaults: dict[str, Any] = {
        "is_total": np.zeros(len(counters), dtype=bool),
        "running_pct": np.full(len(counters), np.nan),
    }
    return FileRun(counters, times, values, places=places, sample_of=sample_of.astype(np.int64), **(defaults | more))
