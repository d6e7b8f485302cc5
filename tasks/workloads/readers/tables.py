"""Tables of samples: rows of CSV, columns of numbers, times, and values of one time put side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from tasks import times
from tasks.errors import BadInput, headless, quoted
from tasks.intake.files import (
    all_refusals,
    csv_fields,
    read_blocks,
    read_lines,
    refusals,
)
from tasks.intake.limits import ReadLimits
from tasks.times import FIRST_S, LAST_S
from tasks.workloads.columns import KEY_COLUMNS
from tasks.workloads.sampled import Sampled
from tasks.workloads.telemetry import Counter, FloatArray

MISSING = ["", "-", "n/a", "na", "nan", "none", "null"]  # in lower case
TIMES = ("timestamp", "time", "ts", "datetime", "date", "unix_time", "unixtime", "epoch", "time_s")
TEXT_SHARE = 0.5  # of the values that are there: a column with more that are no numbers holds text
DELIMITERS = ",;\t|"
NANOSECONDS = 1e9
DATES_SHARE = 0.5  # of the numbers in a column of dates: every third of consecutive seconds may look like one
EXPECTED = "a header line, then numbers; an empty cell is a missing sample"


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
        texts = column.to_pylist()
        return np.array([None if text is None else _number(text) for text in texts], dtype=float)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=float)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


@dataclass(frozen=True)
class CsvRows:
    """The rows of a file, as text.

    names: of the header line, position by position; columns: in that order. places: (n,), line numbers from 1."""

    names: list[str]
    columns: list[pa.ChunkedArray]
    places: NDArray[np.int64]
    refused: pd.DataFrame
    lines: list[bytes]

    def raw(self, row: int) -> str:
        """The line of a row."""
        return self.lines[int(self.places[row]) - 1].decode("utf-8", "replace")


def read_csv(path: str, limits: ReadLimits) -> CsvRows:
    """The whole file: first line with text is the header; blank lines are no rows.

    Raises BadInput for a file without a header line or without rows, and for what read_blocks refuses."""
    blocks = list(read_blocks(path, limits))
    data, unread = b"".join(block.data for block in blocks), all_refusals([block.refused for block in blocks])
    lines = data.split(b"\n")
    at = next((row for row, line in enumerate(lines) if line.strip()), len(lines))
    if at >= len(lines) - 1:
        raise BadInput(path, "no row in it", "a header line and at least one sample", "export it again")
    names, delimiter = split_header(lines[at].decode())
    if all(_number(name) is not None for name in names):
        raise BadInput(path, "no header line: the first line holds numbers", "the names of the columns", "add one")
    table, bad = _parsed(path, lines[at + 1 :], len(names), delimiter)
    faults = {at + 1 + number: n_fields for number, n_fields in bad}
    unread_places = set(unread["place"].tolist())
    numbered = [place for place in range(at + 2, at + 2 + table.num_rows + len(faults)) if place not in faults]
    is_row = np.array([bool(lines[place - 1].strip()) and place not in unread_places for place in numbered], dtype=bool)
    refused = refusals(
        list(faults),
        [f"{n_fields} fields; the header has {len(names)}" for n_fields in faults.values()],
        [lines[place - 1].decode() for place in faults],
    )
    if not is_row.any() and not len(refused) and not len(unread):
        raise BadInput(path, "no row in it", "a header line and at least one sample", "export it again")
    places = np.array(numbered, dtype=np.int64)[is_row]
    columns = table.filter(pa.array(is_row)).columns
    return CsvRows(names, columns, places, all_refusals([unread, refused]), lines)


def split_header(line: str) -> tuple[list[str], str]:
    """The names in a header line, and the delimiter: the one that makes most of them."""
    try:
        splits = [(csv_fields(line, mark), mark) for mark in DELIMITERS]
    except ValueError:  # a field that is too long for a name
        splits = [(line.split(mark), mark) for mark in DELIMITERS]
    names, mark = max(splits, key=lambda split: len(split[0]))
    return [name.strip() for name in names], mark


def _parsed(path: str, lines: list[bytes], n_columns: int, delimiter: str) -> tuple[pa.Table, list[tuple[int, int]]]:
    """All columns as text, and the lines (from 1) that have another number of fields, with that number."""
    names = [str(position) for position in range(n_columns)]
    if n_columns == 1:
        return pa.table({"0": pa.array([line.strip().strip(b'"').decode() for line in lines[:-1]], pa.string())}), []
    bad: list[tuple[int, int]] = []

    def refuse(row: Any) -> str:
        bad.append((row.number, row.actual_columns))
        return "skip"

    body = b"\n".join(lines)
    try:
        table = pacsv.read_csv(
            BytesIO(body),
            read_options=pacsv.ReadOptions(column_names=names, use_threads=False, block_size=len(body) + 1),
            parse_options=pacsv.ParseOptions(
                delimiter=delimiter, invalid_row_handler=refuse, ignore_empty_lines=False, quote_char='"'
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        said = str(error).splitlines()[0][:200]
        raise BadInput(path, f"no CSV ({quoted(said)})", "one record a line", "check quotes and delimiters") from error
    return table, bad


def unix_seconds(column: pa.ChunkedArray, zone: str) -> FloatArray:
    """A column of times in seconds since 1970, or since some start where it counts from there; NaN: no time.

    zone: of text and timestamps that name none."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _seconds_of(pd.Series(column.cast(pa.timestamp("us", getattr(kind, "tz", None))).to_pandas()), zone)
    numbers = as_numbers(column)
    if not numbers.is_bad.any():
        return _in_seconds(numbers.values, zone)
    texts = pd.Series(column.to_pandas()).astype("str").str.strip().str.replace(r"\s*UTC$", "Z", regex=True)
    dated = texts.where(texts.str.contains(times.DATED, na=False))
    parsed = pd.to_datetime(dated, errors="coerce", format="ISO8601", utc=_has_zone(column))
    from_text = _seconds_of(parsed, zone)
    return np.where(numbers.is_bad, from_text, _in_seconds(numbers.values, zone))


def _in_seconds(values: FloatArray, zone: str) -> FloatArray:
    """Times written as numbers in seconds: dates where most of them are some, else Unix time or since some start."""
    known = values[~np.isnan(values)]
    dates = times.calendar_dates(values)
    if len(known) and np.isfinite(known).all() and (~np.isnat(dates)).sum() > DATES_SHARE * len(known):
        return _seconds_of(pd.Series(dates), zone)
    size = float(np.median(np.abs(known))) if len(known) else 0.0
    seconds = times.in_seconds(values, np.full(len(values), size))
    return np.where(np.abs(seconds) <= LAST_S, seconds, np.nan)


def start_and_offsets(seconds: FloatArray) -> tuple[datetime | None, FloatArray]:
    """The first time as a UTC time (None where it counts from some start), and seconds since then."""
    first = float(np.nanmin(seconds))
    if not FIRST_S <= first <= LAST_S:
        return None, seconds if first >= 0 else seconds - first
    return datetime(1970, 1, 1) + pd.Timedelta(seconds=first).to_pytimedelta(), np.asarray(seconds - first)


def _has_zone(column: pa.ChunkedArray) -> bool:
    texts = [text for text in column.to_pylist() if text]
    return bool(texts) and pd.Series(texts[:1]).str.contains(r"(?:[Zz]|[+-]\d\d:?\d\d|UTC)$").iloc[0]


def _seconds_of(moments: pd.Series, zone: str) -> FloatArray:
    if moments.dtype == object:
        moments = pd.to_datetime(moments, errors="coerce", utc=True)
    if moments.dt.tz is None:
        moments = moments.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
    plain = moments.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(dtype="datetime64[ns]")
    whole: NDArray[np.int64] = plain.astype("int64")
    return np.where(np.isnat(plain), np.nan, whole / NANOSECONDS)


def side_by_side(
    counters: tuple[Counter, ...],
    at_s: FloatArray,
    places: NDArray[np.int64],
    cells: tuple[NDArray[np.int64], NDArray[np.int64], FloatArray],
    *,
    n_units: NDArray[np.int64] | None = None,
    **more: Any,
) -> Sampled:
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
    return Sampled(counters, times, values, places=places, sample_of=sample_of.astype(np.int64), **(defaults | more))


@dataclass(frozen=True)
class Series:
    """names: of the columns, k; values: (n, k), NaN: missing. Row i is line i + 2 of the file."""

    names: tuple[str, ...]
    values: FloatArray


def read_series(path: str, limits: ReadLimits) -> Series:
    """A CSV file as a series. An empty cell, and an empty line, is a missing sample and keeps its row.

    Empty lines after the last line with a value count as well, but not the line end that closes the file.
    Raises BadInput, with the line, for a cell that is no number and for a line with another number of fields: a
    sample that were left out would move all change points after it."""
    lines: list[str] = []
    for block in read_lines(path, limits):
        if len(block.refused):
            first = block.refused.iloc[0]
            raise BadInput(f"{path}, line {first['place']}", str(first["reason"]), EXPECTED)
        lines += block.lines
    if not lines or not lines[0].strip():
        raise BadInput(path, "no header line", EXPECTED, "put the names of the columns into the first line")
    names, mark = split_header(lines[0])
    if all(_number(name) is not None for name in names):
        raise BadInput(path, "no header line: the first line holds numbers", EXPECTED, "add one")
    if len(lines) < 2:
        raise BadInput(path, "no sample in it", EXPECTED)
    values = np.full((len(lines) - 1, len(names)), np.nan)
    for row, line in enumerate(lines[1:]):
        if line.strip():
            values[row] = _numbers(path, row + 2, line.split(mark), len(names))
    return Series(tuple(names), values)


def _numbers(path: str, place: int, cells: list[str], n_columns: int) -> list[float]:
    if len(cells) != n_columns:
        raise BadInput(f"{path}, line {place}", f"{len(cells)} fields; the header has {n_columns}", EXPECTED)
    return [_cell(path, place, cell.strip().strip('"')) for cell in cells]


def _cell(path: str, place: int, cell: str) -> float:
    if cell.lower() in MISSING:
        return float("nan")
    number = _number(cell)
    if number is None or not np.isfinite(number):
        raise BadInput(f"{path}, line {place}", f"{cell[:40]!r} is no finite number", EXPECTED, "mend the line")
    return number
