"""Times as files write them, in UTC: the one rule of all readers for what could be meant in several ways.

The rule stands in tasks/jobs/README.md, under Times. What cannot be decided is no time, and the row is refused."""

from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

UTC = "UTC"
FIRST_S = 1e8  # smaller numbers are no Unix time: 1e8 is March 1973
UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))  # from this size on: nanoseconds, microseconds, milliseconds
LAST_S = 253_402_300_799.0  # the year 9999: later times are cut there, to be refused as lying in the future
YEARS = (1900, 2099)  # of dates written as numbers
CALENDARS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}  # by the number of digits
NUMBER = r"^[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?$"
DATED = r"^[0-9]{4}(?:[-/. ][0-9]{1,2}[-/. ][0-9]{1,2}(?![0-9])|[0-9]{4}T)"
ZONED = r"[0-9](?:\s*(?:[Zz]|UTC)|\s?[+-][0-9]{2}(?::?[0-9]{2})?)$"
MICROSECOND = pa.timestamp("us")
FIRST_ZONED, LAST_ZONED = pd.Timestamp("1900-01-01"), pd.Timestamp("9000-01-01")
NOT_A_TIME = np.datetime64("NaT", "us")
Times = NDArray[np.datetime64]
Flags = NDArray[np.bool_]


def utc_times(column: pa.Array, zone: str) -> tuple[Times, Flags]:
    """The times of a column of texts, numbers, timestamps or dates (datetime64[us], UTC), and which cannot be read.

    What is missing is NaT, and so is what cannot be read. zone: of times that name none, UTC if empty."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return _in_utc(column.cast(pa.timestamp("us", getattr(column.type, "tz", None)), safe=False).to_pandas(), zone)
    if pa.types.is_null(column.type):
        return np.full(len(column), NOT_A_TIME), np.zeros(len(column), dtype=bool)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        return _of_numbers(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), zone)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return np.full(len(column), NOT_A_TIME), pc.is_valid(column).to_numpy(zero_copy_only=False)
    for kind in (MICROSECOND, pa.timestamp("us", UTC)):
        try:
            return _in_utc(column.cast(kind).to_pandas(), zone)
        except pa.ArrowInvalid:
            continue
    return _of_texts(column.to_pandas().astype("str"), zone)


def time_of(text: str, zone: str = UTC) -> datetime | None:
    """One time in UTC, without a zone; None for what is no time."""
    found = utc_times(pa.array([text.strip()], pa.string()), zone)[0][0]
    return None if np.isnat(found) else found.astype("datetime64[us]").item()


def calendar_dates(numbers: NDArray[np.float64]) -> Times:
    """The dates, and dates with times, that numbers such as 20260131 write down; NaT for all others."""
    found = np.full(len(numbers), NOT_A_TIME)
    low, high = YEARS
    for n_digits, form in CALENDARS.items():
        least = 10.0 ** (n_digits - 4)
        with np.errstate(invalid="ignore"):
            is_one = (numbers >= low * least) & (numbers < (high + 1) * least) & (numbers == np.floor(numbers))
        if is_one.any():
            texts = pd.Series(numbers[is_one].astype("int64")).astype("str")
            found[is_one] = pd.to_datetime(texts, format=form, errors="coerce").to_numpy(dtype="datetime64[us]")
    return found


def in_seconds(numbers: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unix times in seconds, whatever unit their sizes tell."""
    divisors = np.select([sizes >= least for least, _ in UNITS], [per_second for _, per_second in UNITS], 1.0)
    return np.asarray(numbers / divisors, dtype=np.float64)


def _of_numbers(numbers: NDArray[np.float64], zone: str) -> tuple[Times, Flags]:
    dates, _ = _in_utc(pd.Series(calendar_dates(numbers)), zone)
    is_date = ~np.isnat(dates)
    is_bad = ~is_date & ((np.abs(numbers) < FIRST_S) | np.isinf(numbers))
    is_unix = ~is_date & ~is_bad & ~np.isnan(numbers)
    known = np.where(is_unix, numbers, 0.0)
    seconds = in_seconds(known, np.abs(known))
    whole = np.rint(np.clip(seconds, -LAST_S, LAST_S) * 1e6).astype("int64")
    return np.where(is_unix, whole.view("datetime64[us]"), dates), is_bad


def _of_texts(text: pd.Series, zone: str) -> tuple[Times, Flags]:
    """Texts of several kinds in one column: numbers, ISO with a zone, ISO without."""
    is_number, is_dated, is_zoned = (text.str.contains(kind, na=False) for kind in (NUMBER, DATED, ZONED))
    told: Any = pd.to_numeric(text.where(is_number), errors="coerce")
    numbers, _ = _of_numbers(told.to_numpy(dtype="float64", na_value=np.nan), zone)
    spelled = text.str.replace(r"\s*UTC$", "Z", regex=True)
    aware = pd.to_datetime(spelled.where(is_dated & is_zoned), format="ISO8601", utc=True, errors="coerce")
    naive = pd.to_datetime(spelled.where(is_dated & ~is_zoned), format="ISO8601", errors="coerce")
    found = numbers
    for times in (_in_utc(aware, zone)[0], _in_utc(naive.astype("datetime64[us]"), zone)[0]):
        found = np.where(np.isnat(found), times, found)
    return found, text.notna().to_numpy() & np.isnat(found)


def _in_utc(times: pd.Series, zone: str) -> tuple[Times, Flags]:
    """Without a zone of their own they are of `zone`; an hour that clocks skipped is no time."""
    is_given = times.notna().to_numpy()
    if times.dt.tz is None and zone and zone != UTC:
        is_far = (times < FIRST_ZONED) | (times > LAST_ZONED)  # refused later; no zone has rules for them
        near = times.mask(is_far).dt.tz_localize(zone, ambiguous=np.ones(len(times), dtype=bool), nonexistent="NaT")
        times = near.dt.tz_convert(UTC).dt.tz_localize(None).mask(is_far, times)
    if times.dt.tz is not None:
        times = times.dt.tz_convert(UTC).dt.tz_localize(None)
    values = times.astype("datetime64[us]").to_numpy()
    return values, is_given & np.isnat(values)
