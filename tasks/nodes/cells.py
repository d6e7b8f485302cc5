"""Cells of tables of any type as times, flags and texts; what cannot be read is bad, what is empty is missing."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tasks.workloads.readers.tables import MISSING

UTC = "UTC"
MICROSECOND = pa.timestamp("us")
FLAGS = {"true": True, "t": True, "yes": True, "1": True, "false": False, "f": False, "no": False, "0": False}
EPOCH = r"^[+-]?[0-9]+(?:\.[0-9]*)?$"
ZONED = r"(?:[Zz]|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)$"
EPOCH_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))  # from this size on: nanoseconds, microseconds, milliseconds
LAST_S = 253_402_300_799.0  # the year 9999; later times are cut there, to be refused as lying in the future
FIRST_ZONED, LAST_ZONED = pd.Timestamp("1900-01-01"), pd.Timestamp("9000-01-01")
NOT_A_TIME = np.datetime64("NaT", "us")


@dataclass(frozen=True)
class Cells:
    """A column in our type, None, NaN or NaT where missing or bad; is_bad: (n,), what stands there cannot be read."""

    values: NDArray[Any]
    is_bad: NDArray[np.bool_]


def plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one piece, its text trimmed, words for missing values (-, NA, null, …) as missing."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not _is_text(column.type):
        return column
    trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
    return pc.if_else(pc.is_in(pc.utf8_lower(trimmed), pa.array(MISSING)), None, trimmed)


def texts(column: pa.ChunkedArray | pa.Array) -> Cells:
    """Texts, objects; 3.0 is 3. Lists and the like are bad."""
    told = plain(column)
    if pa.types.is_nested(told.type) or pa.types.is_binary(told.type):
        return Cells(np.full(len(told), None, dtype=object), pc.is_valid(told).to_numpy(zero_copy_only=False))
    if pa.types.is_floating(told.type):
        values = [_whole(value) for value in told.to_pylist()]
        return Cells(np.array(values, dtype=object), np.zeros(len(told), dtype=bool))
    values = told.cast(pa.string()).to_numpy(zero_copy_only=False)
    return Cells(values.astype(object), np.zeros(len(told), dtype=bool))


def flags(column: pa.ChunkedArray | pa.Array) -> Cells:
    """True, False or None, objects."""
    told = plain(column)
    if pa.types.is_boolean(told.type):
        return Cells(told.to_numpy(zero_copy_only=False).astype(object), np.zeros(len(told), dtype=bool))
    given = texts(told).values  # noqa: PD011
    values = np.array([None if one is None else FLAGS.get(one.lower()) for one in given], dtype=object)
    return Cells(values, np.array([one is not None for one in given], dtype=bool) & are_none(values))


def are_none(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which objects are missing."""
    return np.asarray(pd.isna(values), dtype=bool)


def flag_of(text: str) -> bool | None:
    """True or false, None for anything else."""
    return FLAGS.get(text.strip().lower())


def times(column: pa.ChunkedArray | pa.Array, zone: str) -> Cells:
    """UTC times (datetime64[us]): timestamps, dates, ISO text or Unix time in any unit.

    zone: of times that name none; an hour that clocks showed twice is the first, one that they skipped is bad."""
    told = plain(column)
    if pa.types.is_timestamp(told.type) or pa.types.is_date(told.type):
        return _in_utc(told.cast(pa.timestamp("us", getattr(told.type, "tz", None)), safe=False).to_pandas(), zone)
    if _is_text(told.type):
        return _times_in_text(told, zone)
    if pa.types.is_null(told.type):
        return Cells(np.full(len(told), NOT_A_TIME), np.zeros(len(told), dtype=bool))
    if not (pa.types.is_integer(told.type) or pa.types.is_floating(told.type) or pa.types.is_decimal(told.type)):
        return Cells(np.full(len(told), NOT_A_TIME), pc.is_valid(told).to_numpy(zero_copy_only=False))
    return _from_epoch(told.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def time_of(text: str, zone: str = UTC) -> datetime | None:
    """One time in UTC, without a zone; None for what is no time."""
    found = times(pa.array([text], pa.string()), zone).values[0]  # noqa: PD011
    return None if np.isnat(found) else found.astype("datetime64[us]").item()


def _times_in_text(told: pa.Array, zone: str) -> Cells:
    for kind in (MICROSECOND, pa.timestamp("us", UTC)):
        try:
            return _in_utc(told.cast(kind).to_pandas(), zone)
        except pa.ArrowInvalid:
            continue
    text = told.to_pandas().astype("str").str.replace(r"\s*UTC$", "Z", regex=True)
    is_epoch, is_zoned = (text.str.contains(kind, na=False, regex=True) for kind in (EPOCH, ZONED))
    epoch = _from_epoch(pd.to_numeric(text.where(is_epoch), errors="coerce").to_numpy(dtype="float64", na_value=np.nan))
    zoned = pd.to_datetime(text.where(is_zoned & ~is_epoch), format="ISO8601", utc=True, errors="coerce")
    local = pd.to_datetime(text.where(~is_zoned & ~is_epoch), format="ISO8601", errors="coerce")
    parts = (epoch, _in_utc(zoned, zone), _in_utc(local.astype("datetime64[us]"), zone))
    values = np.full(len(text), NOT_A_TIME)
    for part in parts:
        values = np.where(np.isnat(values), part.values, values)
    return Cells(values, text.notna().to_numpy() & np.isnat(values))


def _in_utc(moments: pd.Series, zone: str) -> Cells:
    is_given = moments.notna().to_numpy()
    if moments.dt.tz is None and zone and zone != UTC:
        is_far = (moments < FIRST_ZONED) | (moments > LAST_ZONED)  # refused later; no zone has rules for them
        near = moments.mask(is_far).dt.tz_localize(zone, ambiguous=np.ones(len(moments), bool), nonexistent="NaT")
        moments = near.dt.tz_convert(UTC).dt.tz_localize(None).mask(is_far, moments)
    if moments.dt.tz is not None:
        moments = moments.dt.tz_convert(UTC).dt.tz_localize(None)
    values = moments.astype("datetime64[us]").to_numpy()
    return Cells(values, is_given & np.isnat(values))


def _from_epoch(numbers: NDArray[np.float64]) -> Cells:
    """Unix times in one unit, told by the size of the median."""
    known = numbers[np.isfinite(numbers)]
    size = float(np.median(np.abs(known))) if len(known) else 0.0
    seconds = numbers / next((per_second for least, per_second in EPOCH_UNITS if size >= least), 1.0)
    is_known = np.isfinite(seconds)
    whole = np.rint(np.clip(np.where(is_known, seconds, 0), -LAST_S, LAST_S) * 1e6).astype("int64")
    return Cells(np.where(is_known, whole.view("datetime64[us]"), NOT_A_TIME), np.isinf(numbers))


def _whole(value: float | None) -> str | None:
    if value is None or value != value:
        return None
    return str(int(value)) if float(value).is_integer() else str(value)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
