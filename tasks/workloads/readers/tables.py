"""Columns of somebody's table: which hold the time, which labels, which numbers, and which are refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.errors import BadInput, headless, quoted
from tasks.workloads.columns import KEY_COLUMNS
from tasks.workloads.telemetry import FloatArray

MISSING = ["", "-", "n/a", "na", "nan", "none", "null"]  # in lower case
TIMES = ("timestamp", "time", "ts", "datetime", "date", "unix_time", "unixtime", "epoch", "time_s")
TEXT_SHARE = 0.5  # of the values that are there: a column with more that are no numbers holds text


@dataclass(frozen=True)
class Numbers:
    """A column as numbers.

    values: (n,), NaN where missing or bad; is_bad: (n,), true where something stands that is no finite number."""

    values: FloatArray
    is_bad: FloatArray


def choose_keys(path: str, names: Sequence[str], renamed: Mapping[str, str]) -> dict[str, str]:
    """Our key columns (KEY_COLUMNS) and their names in the file.

    renamed: ours to theirs; counters may be renamed as well. Without `at_s` and `timestamp` the first column called
    time, ts, … is the timestamp. Raises BadInput for a renamed column that is not there."""
    for ours, theirs in renamed.items():
        if theirs not in names:
            problem = f"no column '{theirs}' to read '{ours}' from"
            raise BadInput(path, problem, f"one of {quoted(names)}", headless(names) or "mend --map")
    taken = {theirs for ours, theirs in renamed.items() if ours not in KEY_COLUMNS}
    keys = {key: renamed.get(key, key) for key in KEY_COLUMNS if key in renamed or (key in names and key not in taken)}
    if "at_s" not in keys and "timestamp" not in keys:
        by_name = {name.strip().lower(): name for name in reversed(names) if name not in taken}
        found = next((by_name[name] for name in TIMES if name in by_name), None)
        if found is not None:
            keys["timestamp"] = found
    return keys


def as_numbers(column: pa.ChunkedArray | pa.Array) -> Numbers:
    """A column of any type as numbers. Infinite ones are bad: they would poison every mean."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if _is_text(column.type):
        column = _without_missing(column)
        values = _numbers_in_text(column)
    elif _is_number(column.type):
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    else:
        values = np.full(len(column), np.nan)
    is_there = pc.is_valid(column).to_numpy(zero_copy_only=False)
    if not _is_text(column.type):
        is_there = is_there & ~(np.isnan(values) & _is_number(column.type))
    is_bad = is_there & ~np.isfinite(values)
    return Numbers(np.where(np.isfinite(values), values, np.nan), is_bad)


def fault_of(numbers: Numbers) -> str:
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


def _without_missing(column: pa.Array) -> pa.Array:
    trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
    if pc.all(pc.is_valid(trimmed)).as_py() and not len(trimmed):
        return trimmed
    is_missing = pc.is_in(pc.utf8_lower(trimmed), pa.array(MISSING))
    return pc.if_else(is_missing, None, trimmed)


def _numbers_in_text(column: pa.Array) -> FloatArray:
    try:
        numbers = column.cast(pa.float64())
    except pa.ArrowInvalid:
        return np.array([_number(text) for text in column.to_pylist()], dtype=float)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=float)


def _number(text: str | None) -> float:
    try:
        return float(text) if text is not None else float("nan")
    except ValueError:
        return float("nan")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
