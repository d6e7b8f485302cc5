"""Times in tables of samples: Unix time in any unit, ISO text, or seconds since some start."""

from datetime import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.workloads.readers.tables import as_numbers
from tasks.workloads.telemetry import FloatArray

EPOCH_FROM_S = 1e8  # smaller numbers are seconds since some start: 1e8 is March 1973
UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))  # from this size on: nanoseconds, microseconds, milliseconds
NANOSECONDS = 1e9
LAST_S = 253_402_300_799.0  # the year 9999


def unix_seconds(column: pa.ChunkedArray, zone: str) -> FloatArray:
    """A column of times in seconds since 1970, or since some start where it counts from there; NaN: no time.

    zone: of text and timestamps that name none."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _seconds_of(pd.Series(column.cast(pa.timestamp("us", getattr(kind, "tz", None))).to_pandas()), zone)
    numbers = as_numbers(column)
    if not numbers.is_bad.any():
        return in_seconds(numbers.values)
    parsed = pd.to_datetime(pd.Series(column.to_pandas()), errors="coerce", format="ISO8601", utc=_has_zone(column))
    from_text = _seconds_of(parsed, zone)
    return np.where(numbers.is_bad, from_text, in_seconds(numbers.values))


def in_seconds(values: FloatArray) -> FloatArray:
    """Unix times in seconds whatever their unit, told by the size of the median."""
    known = values[~np.isnan(values)]
    size = float(np.median(np.abs(known))) if len(known) else 0.0
    divisor = next((per_second for least, per_second in UNITS if size >= least), 1.0)
    return np.asarray(values / divisor)


def start_and_offsets(seconds: FloatArray) -> tuple[datetime | None, FloatArray]:
    """The first time as a UTC time (None where it counts from some start), and seconds since then."""
    first = float(np.nanmin(seconds))
    if not EPOCH_FROM_S <= first <= LAST_S:
        return None, seconds if first >= 0 else seconds - first
    return datetime(1970, 1, 1) + pd.Timedelta(seconds=first).to_pytimedelta(), np.asarray(seconds - first)


def _has_zone(column: pa.ChunkedArray) -> bool:
    texts = [text for text in column.to_pylist() if text]
    return bool(texts) and pd.Series(texts[:1]).str.contains(r"(?:[Zz]|[+-]\d\d:?\d\d|UTC)$").iloc[0]


def _seconds_of(times: pd.Series, zone: str) -> FloatArray:
    if times.dtype == object:
        times = pd.to_datetime(times, errors="coerce", utc=True)
    if times.dt.tz is None:
        times = times.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
    plain = times.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(dtype="datetime64[ns]")
    whole: NDArray[np.int64] = plain.astype("int64")
    return np.where(np.isnat(plain), np.nan, whole / NANOSECONDS)
