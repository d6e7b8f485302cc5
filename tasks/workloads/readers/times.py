"""Times in tables of samples, as tasks.times has it; small numbers are seconds since some start."""

from datetime import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks import times
from tasks.times import (
    FIRST_S,
    LAST_S,
)
from tasks.workloads.readers.tables import as_numbers
from tasks.workloads.telemetry import FloatArray

NANOSECONDS = 1e9
DATES_SHARE = 0.5  # of the numbers in a column of dates: every third of consecutive seconds may look like one


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
