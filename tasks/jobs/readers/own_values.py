"""Columns of tables, of whatever type, as columns of jobs.runs; values that are no such thing are faults."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tasks.errors import BadInput
from tasks.jobs.columns import (
    ALL_COLUMNS,
    LIST_COLUMNS,
    NUMBER_COLUMNS,
    SHOWN_CHARS,
    TEXT_COLUMNS,
    TIME_COLUMNS,
    TIMESTAMP,
    is_exit_code,
    status_of,
    status_of_exit_code,
    unknown_status,
)
from tasks.jobs.params import Measured, ReadParams, dimension_of
from tasks.quantities import SPELLINGS, factor_of, unit_in_name
from tasks.times import LAST_S, utc_times

FLAGS = {"true": True, "t": True, "yes": True, "1": True, "false": False, "f": False, "no": False, "0": False}
KEYS = {"skus": ("sku",), "vertices": ("vertex",), "skyline": ("at_s", "tokens")}  # fields that have to be there
LARGEST = 2**31 - 1  # of a 32-bit number; larger ones are missing
MAX_TYPE_CHARS = 100  # of a type in a message
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6}  # nanoseconds do not reach so far

# what tables write where a value is missing
MISSING_WORDS = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "NaT", "\\N"]
FEATURE = "features."  # begins the names of columns that are kept as features
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?")  # no counter such as 007, no hash such as 12e45


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
    if ours.startswith(FEATURE):
        if not is_feature(ours, kind):
            raise BadInput(path, f"column '{theirs}' is of type '{kind}'", "text, numbers or times", "leave it out")
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


def is_feature(ours: str, kind: pa.DataType) -> bool:
    """Whether a column can be kept as the feature that it is called; true for columns that are no features."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return not (ours.startswith(FEATURE) and (pa.types.is_nested(kind) or is_binary))


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
    rows = pd.DataFrame({name: found.column for name, found in converted.items()})
    kept = {name.removeprefix(FEATURE): table[name] for name in table.column_names if name.startswith(FEATURE)}
    return rows.assign(features=_features(kept)) if kept else rows, faults.tolist()


def _features(columns: Mapping[str, pa.ChunkedArray]) -> pd.Series:
    """A JSON object for each row, of the columns that have a value there; missing where none has."""
    values = [_feature(column) for column in columns.values()]
    told = [
        {name: value for name, value in zip(columns, row, strict=True) if value is not None}
        for row in zip(*values, strict=True)
    ]
    return pd.Series([json.dumps(one, ensure_ascii=False) if one else None for one in told], dtype="str")


def _feature(column: pa.ChunkedArray) -> list[object]:
    """Numbers, also those written as text, and true or false as they are; all else as text, times in ISO 8601."""
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return list(column.to_pylist())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return [
            value if value is not None and isfinite(value) else None for value in column.cast(pa.float64()).to_pylist()
        ]
    if pa.types.is_duration(kind):
        return list(pc.divide(column.cast(pa.duration("us")).cast(pa.int64()).cast(pa.float64()), 1e6).to_pylist())
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        column = column.cast(pa.string())
    codes, texts = pd.factorize(column.cast(pa.large_string()).to_pandas())
    parsed = [_number_or_text(str(text).strip()) for text in texts]
    return [parsed[code] if code >= 0 else None for code in codes]


def _number_or_text(text: str) -> object:
    if text in MISSING_WORDS:
        return None
    return json.loads(text) if NUMBER.fullmatch(text) else text


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


def check_list_type(path: str, ours: str, theirs: str, kind: pa.DataType) -> None:
    """Raise BadInput unless a column is a list of structs whose fields can hold what ours mean.

    Fields that are not ours are ignored; of ours those in KEYS are needed."""
    expected = _shown(ALL_COLUMNS[ours][0].value_type)
    inner = kind.value_type if _is_list(kind) else None
    if pa.types.is_null(kind) or (inner is not None and pa.types.is_null(inner)):
        return
    if inner is None or not pa.types.is_struct(inner):
        raise BadInput(path, f"column '{theirs}' ({ours}) is of type '{_cut(kind)}'", expected, "convert it")
    names = [field.name for field in inner]
    for key in KEYS[ours]:
        if key not in names:
            raise BadInput(path, f"the entries of '{theirs}' ({ours}) have no field '{key}'", expected, "convert it")
    for wanted in ALL_COLUMNS[ours][0].value_type:
        if names.count(wanted.name) > 1:
            raise BadInput(path, f"field '{wanted.name}' stands twice in '{theirs}'", expected, "convert it")
        if wanted.name in names and not _fits(inner.field(wanted.name).type, wanted.type):
            found = _cut(inner.field(wanted.name).type)
            raise BadInput(path, f"field '{wanted.name}' of '{theirs}' is of type '{found}'", expected, "convert it")


def to_lists(ours: str, column: pa.Array, zone: str) -> pa.ListArray:
    """The lists in our type: fields in our order, absent ones missing, NaN missing, times in UTC.

    column: of a type that check_list_type lets pass. zone: of times that name none, UTC if empty."""
    wanted = ALL_COLUMNS[ours][0]
    if pa.types.is_null(column.type) or pa.types.is_null(column.type.value_type):
        return pa.nulls(len(column), wanted)
    if not pa.types.is_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    entries = pc.list_flatten(column)
    entry_type = wanted.value_type
    fields = [_field(entries, field, zone) for field in entry_type]
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    return pa.ListArray.from_arrays(
        offsets, pa.StructArray.from_arrays(fields, fields=list(entry_type)), type=wanted, mask=pc.is_null(column)
    )


def _field(entries: pa.StructArray, wanted: pa.Field, zone: str) -> pa.Array:
    if entries.type.get_field_index(wanted.name) < 0:
        return pa.nulls(len(entries), wanted.type)
    values = pc.struct_field(entries, wanted.name)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_floating(wanted.type):
        values = values.cast(wanted.type, safe=False)
        return pc.if_else(pc.is_nan(values), None, values)
    if pa.types.is_timestamp(wanted.type) and pa.types.is_timestamp(values.type):
        return _list_times(values, zone)
    if pa.types.is_integer(wanted.type) and pa.types.is_integer(values.type):
        values = pc.if_else(pc.less_equal(pc.abs(values.cast(pa.float64(), safe=False)), LARGEST), values, None)
    return values.cast(wanted.type, safe=False)


def _fits(kind: pa.DataType, wanted: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(kind):
        return True
    if pa.types.is_string(wanted):
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
    if pa.types.is_timestamp(wanted):
        return bool(pa.types.is_timestamp(kind))
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(kind))
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _shown(entry: pa.StructType) -> str:
    return f"a list of structs ({', '.join(f'{field.name} {field.type}' for field in entry)})"


def _cut(kind: pa.DataType) -> str:
    text = str(kind).replace("\n", " ")
    return text if len(text) <= MAX_TYPE_CHARS else f"{text[:MAX_TYPE_CHARS]}…"


def in_microseconds(times: pa.Array) -> pa.TimestampArray:
    """Dates and times of any unit in microseconds, their zone kept.

    As with epoch seconds, those after the year 9999, and as far before 1970, are cut there, to be refused later."""
    if pa.types.is_date(times.type):
        times = times.cast(pa.timestamp("s" if pa.types.is_date32(times.type) else "ms"))
    if times.type.unit in PER_SECOND:
        far = pa.scalar(LAST_S * PER_SECOND[times.type.unit], pa.int64())
        whole = times.cast(pa.int64())
        cut = pc.max_element_wise(pc.min_element_wise(whole, far), pc.negate(far))
        times = pc.if_else(pc.is_valid(whole), cut, None).cast(times.type)
    return times.cast(pa.timestamp("us", times.type.tz), safe=False)


def _list_times(times: pa.TimestampArray, zone: str) -> pa.TimestampArray:
    """In UTC, without a zone; the hour that occurs twice is the first, as in the other columns."""
    times = in_microseconds(times)
    if times.type.tz is None and zone and zone != "UTC":
        times = pc.assume_timezone(times, zone, ambiguous="earliest", nonexistent="latest")
    return times.cast(pa.timestamp("us", "UTC")).cast(TIMESTAMP) if times.type.tz else times
