"""Columns of tables, of whatever type, as columns of jobs.runs; values that are no such thing are faults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tasks.errors import BadInput
from tasks.jobs.columns import ALL_COLUMNS, LIST_COLUMNS, NUMBER_COLUMNS, TEXT_COLUMNS, TIME_COLUMNS
from tasks.jobs.params import Measured, ReadParams, dimension_of
from tasks.jobs.readers.missing_words import MISSING_WORDS
from tasks.jobs.readers.own_lists import check_list_type, to_lists
from tasks.jobs.readers.own_times import in_microseconds
from tasks.jobs.statuses import SHOWN_CHARS, is_exit_code, status_of, status_of_exit_code, unknown_status
from tasks.quantities import SPELLINGS, factor_of, unit_in_name
from tasks.times import utc_times

FLAGS = {"true": True, "t": True, "yes": True, "1": True, "false": False, "f": False, "no": False, "0": False}


@dataclass(frozen=True)
class Converted:
    """A column in our type, and which of its values could not be read (those are missing in it).

    reasons: why, of the bad ones, where each has a reason of its own."""

    column: pd.Series
    is_bad: Any
    reasons: list[str] | None = None


def check_type(path: str, ours: str, theirs: str, kind: pa.DataType) -> None:
    """Raise BadInput if a column of this type cannot hold what the column of ours means."""
    if ours in LIST_COLUMNS:
        check_list_type(path, ours, theirs, kind)
        return
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_text = _is_text(kind) or pa.types.is_null(kind)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if ours in TEXT_COLUMNS:
        is_fit, expected = is_text or is_number, "text"
    elif ours in TIME_COLUMNS:
        is_time = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
        is_fit, expected = is_text or is_number or is_time, "a timestamp, ISO text or epoch seconds"
    elif ours in NUMBER_COLUMNS:
        is_fit, expected = is_text or is_number or pa.types.is_duration(kind), "numbers"
    else:
        is_fit, expected = is_text or is_number or pa.types.is_boolean(kind), "true or false"
    if not is_fit:
        raise BadInput(path, f"column '{theirs}' ({ours}) is of type '{kind}'", expected, "convert it")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def unit_of(path: str, ours: Measured, params: ReadParams) -> str:
    """The unit of a column of a table: as the user says, else as the name says that the user gave, else our own.

    Raises BadInput for a name that ends in what may be several units."""
    theirs = params.columns.get(ours, ours)
    dimension = dimension_of(ours)
    if ours in params.units or theirs == ours:
        return params.units.get(ours, dimension)
    try:
        unit = unit_in_name(theirs, dimension)
    except ValueError as error:
        known = ", ".join(SPELLINGS[dimension])
        raise BadInput(
            path, f"the unit of '{theirs}' ({ours}) is not clear: {error}", known, f"--unit {ours}=UNIT"
        ) from error
    return unit or dimension


def to_runs(table: pa.Table, params: ReadParams, units: Mapping[str, str]) -> tuple[pd.DataFrame, list[str]]:
    """The table in our types, and for each row what could not be read (empty: nothing).

    table: columns named as in jobs.runs. units: of columns that are not in seconds or bytes."""
    converted = {
        name: _statuses(table[name], params) if name == "status" else _convert(name, table[name], params.time_zone)
        for name in ALL_COLUMNS
        if name in table.column_names
    }
    faults = np.full(table.num_rows, "", dtype=object)
    for name in reversed(converted):
        found = converted[name]
        faults[found.is_bad] = (
            found.reasons or f"{name}{_example(name, table[name], found.is_bad)} is not {_meaning(name)}"
        )
        if name in units and not pa.types.is_duration(table[name].type):
            converted[name] = Converted(found.column * (factor_of(units[name], dimension_of(name)) or 1), found.is_bad)
    return pd.DataFrame({name: found.column for name, found in converted.items()}), faults.tolist()


def _example(name: str, column: pa.ChunkedArray, is_bad: Any) -> str:
    """The first value that could not be read, as an example for all."""
    rows = np.flatnonzero(is_bad if name not in TIME_COLUMNS else [])
    return f" '{str(column[int(rows[0])])[:SHOWN_CHARS]}'" if len(rows) else ""


def _meaning(name: str) -> str:
    if name in TIME_COLUMNS:
        return "a time; expected ISO text or epoch seconds"
    return "a number" if name in NUMBER_COLUMNS else "true or false"


def _convert(name: str, column: pa.ChunkedArray, zone: str) -> Converted:
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if name in LIST_COLUMNS:
        lists = pd.Series(pd.arrays.ArrowExtensionArray(to_lists(name, column, zone)))
        return Converted(lists, np.zeros(len(column), dtype=bool))
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if _is_text(column.type) or pa.types.is_null(column.type):
        column = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    if name in TEXT_COLUMNS:
        return _texts(column)
    if _is_text(column.type):
        column = pc.if_else(pc.is_in(column, pa.array(MISSING_WORDS, pa.large_string())), None, column)
    if name in TIME_COLUMNS:
        return _times(column, zone)
    return _numbers(column) if name in NUMBER_COLUMNS else _flags(column)


def _texts(column: pa.Array) -> Converted:
    if pa.types.is_floating(column.type):  # 17.0 is 17: a missing id makes a column of integers float
        whole = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), float(2**53)))
        integers = pc.if_else(whole, column, None).cast(pa.int64()).cast(pa.large_string())
        column = pc.if_else(whole, integers, pc.if_else(pc.is_nan(column), None, column).cast(pa.large_string()))
    text = pd.Series(
        pc.if_else(pc.equal(column.cast(pa.large_string()), ""), None, column.cast(pa.large_string())).to_pandas(),
        dtype="str",
    )
    return Converted(text, np.zeros(len(text), dtype=bool))


def _statuses(column: pa.ChunkedArray, params: ReadParams) -> Converted:
    """Statuses of the words, or of the exit codes if the column is called so."""
    has_codes = is_exit_code(params.columns.get("status", ""))
    text = _convert("run_id", column, "").column
    text = text.mask(text.isin(MISSING_WORDS))
    codes, words = pd.factorize(text)
    known = [status_of(word, params.statuses) or (status_of_exit_code(word) if has_codes else None) for word in words]
    status = pd.Series(pd.array([*known, None], dtype="str").take(codes), index=text.index)
    is_bad = (status.isna() & text.notna()).to_numpy()
    return Converted(status, is_bad, [unknown_status(words[code]) for code in codes[is_bad]])


def _numbers(column: pa.Array) -> Converted:
    if pa.types.is_duration(column.type):
        column = pc.divide(column.cast(pa.duration("us")).cast(pa.int64()).cast(pa.float64()), 1e6)
    try:
        values = column.cast(pa.float64(), safe=False)
    except pa.ArrowInvalid:
        values = pa.array(pd.to_numeric(column.to_pandas(), errors="coerce"), from_pandas=True, type=pa.float64())
    is_bad = pc.and_(pc.is_valid(column), pc.is_null(values))
    return Converted(values.to_pandas().astype("float64"), is_bad.to_numpy(zero_copy_only=False))


def _flags(column: pa.Array) -> Converted:
    if pa.types.is_boolean(column.type):
        return Converted(column.fill_null(False).to_pandas(), np.zeros(len(column), dtype=bool))
    text = column.to_pandas().map(lambda value: str(value).lower().removesuffix(".0"), na_action="ignore")
    values = text.map(FLAGS)
    return Converted(values.fillna(False).astype(bool), (text.notna() & values.isna()).to_numpy())


def _times(column: pa.Array, zone: str) -> Converted:
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        column = in_microseconds(column)
    values, is_bad = utc_times(column, zone)
    return Converted(pd.Series(values), is_bad)
