"""Cells of tables, of whatever type, as texts, numbers, flags and times; what stands there and is none is bad.

Times are in UTC, by the one rule of all readers for what could be meant in several ways: it stands in
tasks/jobs/README.md, under Times. What cannot be decided is no time, and the row is refused."""

import math
import warnings
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tasks.errors import BadSetting
from tasks.intake.aliases import (
    amount_of,
    date_order,
    distinct_texts,
    has_decimal_commas,
    is_number,
    is_text,
    iso_dates,
    trimmed,
)
from tasks.intake.files import number_of

UTC = "UTC"
FIRST_S = 1e8  # smaller numbers are no Unix time: 1e8 is March 1973
UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))  # from this size on: nanoseconds, microseconds, milliseconds
LAST_S = 253_402_300_799.0  # the year 9999: later times are cut there, to be refused as lying in the future
YEARS = (1900, 2099)  # of dates written as numbers
CALENDARS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}  # by the number of digits
NUMBER = r"^[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?$"
DATED = r"^[0-9]{4}(?:[-/. ][0-9]{1,2}[-/. ][0-9]{1,2}(?![0-9])|[0-9]{4}T)"
ZONED = r"[0-9](?:\s*(?:[Zz]|UTC)|\s?[+-][0-9]{2}(?::?[0-9]{2})?)$"
# Fri, 01 Mar 2024 02:00:00 GMT · Fri Mar  1 02:00:00 2024 · 1-Mar-2024 2:00 PM · Mar 1, 2024 02:00:00 +0100
NAMED = (
    r"^(?:[A-Za-z]{3,9},?\s+)?(?:[0-9]{1,2}[\s-]+[A-Za-z]{3,9}\.?[\s-]+[0-9]{4}|[A-Za-z]{3,9}\.?\s+[0-9]{1,2},?\s)"
    r"[0-9:.,\s]*(?:[AaPp][Mm])?[0-9\s]*(?:GMT|UTC|Z|[+-][0-9]{2}:?[0-9]{2})?(?:\s[0-9]{4})?$"
)
NAMED_ZONE = r"(?:GMT|UTC|Z|\s[+-][0-9]{2}:?[0-9]{2})(?:\s[0-9]{4})?$"
YEAR = r"[0-9]{4}"
HALF = r"[0-9]\s*[AaPp]\.?[Mm]\.?$"  # of a day
WRITTEN = {  # and how it is read
    r"(?<=:[0-9]{2} [0-9]{4}) [ELX]$": "",  # of LSF: estimated, at the limit, over it
    r"(:[0-9]{2}),([0-9]{1,9})(?![0-9])": r"\1.\2",  # 12:00:00,123 of Python's logging
    r"^/Date\((-?[0-9]+)(?:[+-][0-9]{4})?\)/$": r"\1",  # milliseconds since 1970 of .NET
    r"^([0-9]{2}-[A-Z]{3}-)([0-9]{2} [0-9]{2})\.([0-9]{2})\.([0-9]{2})": r"\g<1>20\2:\3:\4",  # of Oracle
}
MICROSECOND = pa.timestamp("us")
FIRST_ZONED, LAST_ZONED = pd.Timestamp("1900-01-01"), pd.Timestamp("9000-01-01")
NOT_A_TIME = np.datetime64("NaT", "us")
WALL_CLOCK = "%Y-%m-%dT%H:%M:%S"
WALL_CLOCK_CHARS = len("2026-11-21T01:02:03")
EPOCH = r"[0-9]{9,11}"  # seconds since 1970, as SLURM_TIME_FORMAT=%s prints them
WITH_OFFSET = r".*T.*(?:Z|[+-]\d\d:?\d\d)"
MICROSECONDS = 1e6
Times = NDArray[np.datetime64]
Flags = NDArray[np.bool_]


def utc_times(column: pa.Array, zone: str) -> tuple[Times, Flags]:
    """The times of a column of texts, numbers, timestamps or dates (datetime64[us], UTC), and which cannot be read.

    What is missing is NaT, and so is what cannot be read. zone: of times that name none, UTC if empty."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return _in_utc(column.cast(pa.timestamp("us", getattr(column.type, "tz", None)), safe=False).to_pandas(), zone)
    if pa.types.is_null(column.type):
        return np.full(len(column), NOT_A_TIME), np.zeros(len(column), dtype=bool)
    if is_number(column.type):
        return _of_numbers(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), zone)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return np.full(len(column), NOT_A_TIME), pc.is_valid(column).to_numpy(zero_copy_only=False)
    for kind in (MICROSECOND, pa.timestamp("us", UTC)):
        try:
            return _in_utc(column.cast(kind).to_pandas(), zone)
        except pa.ArrowInvalid:
            continue
    return _times_of_texts(column.to_pandas().astype("str"), zone)


def time_of(text: str, zone: str = UTC) -> datetime | None:
    """One time in UTC, without a zone; None for what is no time."""
    moment = utc_times(pa.array([text.strip()], pa.string()), zone)[0][0]
    return None if np.isnat(moment) else moment.astype("datetime64[us]").item()


def calendar_dates(numbers: NDArray[np.float64]) -> Times:
    """The dates, and dates with times, that numbers such as 20260131 write down; NaT for all others."""
    dates = np.full(len(numbers), NOT_A_TIME)
    low, high = YEARS
    for n_digits, form in CALENDARS.items():
        least = 10.0 ** (n_digits - 4)
        with np.errstate(invalid="ignore"):
            is_date = (numbers >= low * least) & (numbers < (high + 1) * least) & (numbers == np.floor(numbers))
        if is_date.any():
            texts = pd.Series(numbers[is_date].astype("int64")).astype("str")
            dates[is_date] = pd.to_datetime(texts, format=form, errors="coerce").to_numpy(dtype="datetime64[us]")
    return dates


def in_seconds(numbers: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unix times in seconds, whatever unit their sizes tell."""
    divisors = np.select([sizes >= least for least, _ in UNITS], [per_second for _, per_second in UNITS], 1.0)
    return np.asarray(numbers / divisors, dtype=np.float64)


def from_epoch_s(seconds: Any) -> Any:
    """Times (datetime64[us], UTC) of seconds since 1970; what is missing is NaT.

    seconds: float array. Times after the year 9999, and as far before 1970, are cut there."""
    seconds = np.asarray(seconds, dtype="float64")
    is_known = ~np.isnan(seconds)
    whole = np.rint(np.clip(np.where(is_known, seconds, 0), -LAST_S, LAST_S) * MICROSECONDS).astype("int64")
    return np.where(is_known, whole.view("datetime64[us]"), np.datetime64("NaT", "us"))


def _of_numbers(numbers: NDArray[np.float64], zone: str) -> tuple[Times, Flags]:
    dates, _ = _in_utc(pd.Series(calendar_dates(numbers)), zone)
    is_date = ~np.isnat(dates)
    is_bad = ~is_date & ((np.abs(numbers) < FIRST_S) | np.isinf(numbers))
    is_unix = ~is_date & ~is_bad & ~np.isnan(numbers)
    known = np.where(is_unix, numbers, 0.0)
    return np.where(is_unix, from_epoch_s(in_seconds(known, np.abs(known))), dates), is_bad


def _times_of_texts(text: pd.Series, zone: str) -> tuple[Times, Flags]:
    """Texts of several kinds in one column: numbers, ISO and names of months, with a zone and without."""
    for written, plainly in WRITTEN.items():
        text = text.str.replace(written, plainly, regex=True)
    is_number, is_dated, is_zoned = (text.str.contains(kind, na=False) for kind in (NUMBER, DATED, ZONED))
    unix: Any = pd.to_numeric(text.where(is_number), errors="coerce")
    numbers, _ = _of_numbers(unix.to_numpy(dtype="float64", na_value=np.nan), zone)
    spelled = text.str.replace(r"\s*UTC$", "Z", regex=True)
    aware = pd.to_datetime(spelled.where(is_dated & is_zoned), format="ISO8601", utc=True, errors="coerce")
    naive = pd.to_datetime(spelled.where(is_dated & ~is_zoned), format="ISO8601", errors="coerce")
    utc, read = numbers, [aware, naive.astype("datetime64[us]")]
    is_named = text.str.contains(NAMED, na=False) & text.str.contains(YEAR, na=False)
    is_named |= is_dated & text.str.contains(HALF, na=False)
    if is_named.any():
        has_zone = text.str.contains(NAMED_ZONE, na=False)
        for which, is_utc in ((is_named & has_zone, True), (is_named & ~has_zone, False)):
            with warnings.catch_warnings(action="ignore"):  # the first may be of no format that pandas can tell
                alike = pd.to_datetime(text.where(which), utc=is_utc, errors="coerce")  # those written as the first
            others = text.where(which & alike.isna())
            read += [alike, pd.to_datetime(others, format="mixed", utc=is_utc, errors="coerce")]
    for times in (_in_utc(parsed, zone)[0] for parsed in read):
        utc = np.where(np.isnat(utc), times, utc)
    return utc, text.notna().to_numpy() & np.isnat(utc)


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


@dataclass(frozen=True)
class TimeReadings:
    """What some texts can mean as times: UTC, without a zone, in microseconds; NaT where there is none.

    first, second: the two readings of a wall-clock time that occurs twice (clocks were put back), else equal.
    problem: why a text is no time; has only the rows where that is so."""

    first: pd.Series
    second: pd.Series
    problem: pd.Series


def check_zone(name: str) -> None:
    """Raises BadSetting if there is no time zone of this name."""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        raise BadSetting(
            f"read.time_zone: no time zone is called {name!r}; expected a name such as Europe/Berlin or UTC"
        ) from error


def needs_zone(text: pd.Series) -> bool:
    """Whether any of the texts is a wall-clock time that does not name its zone."""
    return bool(_wall_clock(text).notna().any())


def read_times(text: pd.Series, zone: str) -> TimeReadings:
    """Wall-clock times of `zone`, ISO times with an offset and epoch seconds, all as UTC.

    A wall-clock time that its zone skipped (clocks were put forward) is a problem, not a guess: no machine of
    that zone prints it, so the zone is probably wrong."""
    wall = _wall_clock(text)
    first, second = _to_utc(wall, zone)
    skipped = wall.notna() & first.isna()
    rest = text.where(wall.isna())
    if rest.notna().any():
        others = _with_own_zone(rest)
        first, second = first.fillna(others), second.fillna(others)
    no_time = pd.Series("is not a time (YYYY-MM-DDTHH:MM:SS)", index=text.index, dtype="object")
    problem = no_time.mask(skipped, f"does not exist in {zone}, where clocks were put forward; wrong time zone?")
    return TimeReadings(first, second, problem[text.notna() & first.isna()])


def settle(
    submitted: TimeReadings, started: TimeReadings, ended: TimeReadings, elapsed_s: pd.Series
) -> tuple[pd.Series, pd.Series, pd.Series]:
    """Choose between the two readings of times in the hour that occurs twice.

    Of all combinations the one is taken that keeps submission <= start <= end, then the one whose end − start
    is nearest to `elapsed_s`, then the one with the shortest wait, then the earliest."""
    readings = (submitted, started, ended)
    best = [reading.first for reading in readings]
    is_open = pd.concat([reading.first != reading.second for reading in readings], axis=1)
    twice = (is_open & pd.concat([time.notna() for time in best], axis=1)).any(axis=1)
    if not twice.any():
        return best[0], best[1], best[2]
    span_s = elapsed_s[twice].to_numpy()
    choices = [[reading.first[twice].to_numpy(), reading.second[twice].to_numpy()] for reading in readings]
    times = np.array(list(product(*choices)))  # (8 combinations, submission, start and end, n_times)
    costs = np.array([_cost(of_one, span_s) for of_one in times])  # (8, 3 costs, n_times)
    cheapest = np.lexsort(costs.transpose(1, 0, 2)[::-1], axis=0)[0]
    chosen = times[cheapest, :, np.arange(len(cheapest))].T
    submission, start, end = (
        time.mask(twice, pd.Series(new, index=time.index[twice])) for time, new in zip(best, chosen, strict=True)
    )
    return submission, start, end


def _wall_clock(text: pd.Series) -> pd.Series:
    is_candidate = text.str.len() == WALL_CLOCK_CHARS
    wall = pd.to_datetime(text.where(is_candidate), format=WALL_CLOCK, errors="coerce").astype("datetime64[us]")
    return wall.where(wall.between(FIRST_ZONED, LAST_ZONED))  # at the ends of the calendar its UTC has no year


def _to_utc(wall: pd.Series, zone: str) -> tuple[pd.Series, pd.Series]:
    if not wall.notna().any():
        return wall, wall
    once = _localised(wall, zone, "NaT")
    is_open = wall.notna() & once.isna()
    if not is_open.any():
        return once, once
    n_open = int(is_open.sum())
    summer = _localised(wall[is_open], zone, np.ones(n_open, dtype=bool))
    winter = _localised(wall[is_open], zone, np.zeros(n_open, dtype=bool))
    return once.fillna(summer.where(summer <= winter, winter)), once.fillna(winter.where(summer <= winter, summer))


def _localised(wall: pd.Series, zone: str, ambiguous: object) -> pd.Series:
    local = wall.dt.tz_localize(zone, ambiguous=ambiguous, nonexistent="NaT")
    utc: pd.Series = local.dt.tz_convert("UTC").dt.tz_localize(None)
    return utc


def _with_own_zone(text: pd.Series) -> pd.Series:
    epoch = pd.to_numeric(text.where(text.str.fullmatch(EPOCH).fillna(False)), errors="coerce")
    iso = text.where(text.str.fullmatch(WITH_OFFSET).fillna(False))
    times = pd.to_datetime(iso, format="ISO8601", utc=True, errors="coerce").dt.tz_localize(None)
    return times.astype("datetime64[us]").fillna(pd.to_datetime(epoch, unit="s").astype("datetime64[us]"))


def _cost(times: np.ndarray, elapsed_s: np.ndarray) -> list[np.ndarray]:
    """Order violations, distance from the elapsed time (s) and wait (s); what is missing costs nothing."""
    submitted, started, ended = times
    with np.errstate(invalid="ignore"):
        wait_s, run_s = _seconds(started - submitted), _seconds(ended - started)
        n_wrong = (wait_s < 0).astype(float) + (run_s < 0)
        return [n_wrong, np.nan_to_num(np.abs(run_s - elapsed_s)), np.nan_to_num(wait_s)]


def _seconds(span: np.ndarray) -> np.ndarray:
    return np.where(np.isnat(span), np.nan, span / np.timedelta64(1, "s"))


FLAG_WORDS = dict.fromkeys(("true", "t", "yes", "1", "1.0"), True) | dict.fromkeys(
    ("false", "f", "no", "0", "0.0"), False
)


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
    return trimmed(column) if is_text(column.type) else column


def texts(column: pa.ChunkedArray | pa.Array) -> Cells:
    """Texts, objects; 3.0 is 3. Lists and the like are bad."""
    array = plain(column)
    if pa.types.is_nested(array.type) or pa.types.is_binary(array.type):
        return Cells(np.full(len(array), None, dtype=object), pc.is_valid(array).to_numpy(zero_copy_only=False))
    if pa.types.is_floating(array.type):
        whole = [
            None if value is None or value != value else str(int(value) if value.is_integer() else value)
            for value in array.to_pylist()
        ]
        return Cells(np.array(whole, dtype=object), np.zeros(len(array), dtype=bool))
    values = array.cast(pa.string()).to_numpy(zero_copy_only=False)
    return Cells(values.astype(object), np.zeros(len(array), dtype=bool))


def numbers(column: pa.ChunkedArray | pa.Array) -> Cells:
    """Numbers. Infinite ones are bad: they would poison every mean. 1,5 is 1.5 where the whole column is so written."""
    array = plain(column)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    if is_text(array.type):
        values = _numbers_of_texts(array)
    elif is_number(array.type):
        values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        array = pc.if_else(pa.array(np.isnan(values)), None, array)
    else:
        values = np.full(len(array), np.nan)
    is_bad = pc.is_valid(array).to_numpy(zero_copy_only=False) & ~np.isfinite(values)
    return Cells(np.where(np.isfinite(values), values, np.nan), is_bad)


def measured(column: pa.ChunkedArray | pa.Array) -> tuple[Cells, str]:
    """The numbers of a column and their unit, as `amount_of` has them but bytes for bits, where each cell has it behind
    the number, as screens export them; empty without one."""
    cells = numbers(column)
    if not cells.is_bad.any() or not is_text(column.type):
        return cells, ""
    amounts = [
        (math.nan, None) if not text else amount_of(text) or (math.nan, "") for text in trimmed(column).to_pylist()
    ]
    units = {unit for _, unit in amounts if unit is not None}
    if len(units) != 1 or "" in units:
        return cells, ""
    unit, values = units.pop(), np.array([value for value, _ in amounts])
    values, unit = (values / 8, "B/s") if unit == "b/s" else (values, unit)
    return Cells(values, np.zeros(len(values), dtype=bool)), unit


def _numbers_of_texts(column: pa.Array) -> NDArray[np.float64]:
    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)
    except pa.ArrowInvalid:
        pass
    if has_decimal_commas(distinct_texts(column)):
        column = pc.replace_substring(pc.replace_substring(column, ".", ""), ",", ".")
    parsed = pd.Series(column.to_pylist(), dtype=object).map(number_of)
    return np.asarray(parsed.astype(float).to_numpy())


def flags(column: pa.ChunkedArray | pa.Array) -> Cells:
    """True, False or None, objects."""
    array = plain(column)
    if pa.types.is_boolean(array.type):
        return Cells(array.to_numpy(zero_copy_only=False).astype(object), np.zeros(len(array), dtype=bool))
    given = texts(array).values  # noqa: PD011
    values = np.array([None if text is None else FLAG_WORDS.get(text.lower()) for text in given], dtype=object)
    return Cells(values, np.array([text is not None for text in given], dtype=bool) & are_none(values))


def times(column: pa.ChunkedArray | pa.Array, zone: str) -> Cells:
    """UTC times (datetime64[us]) of a column of any type; `utc_times` says what is read as what.

    zone: of times that name none."""
    array = plain(column)
    values, is_bad = utc_times(array, zone)
    if is_bad.any() and is_text(array.type) and (order := date_order("the table", {"time": distinct_texts(array)})):
        values, is_bad = utc_times(iso_dates(array, order), zone)
    return Cells(values, is_bad)


def flag_of(text: str) -> bool | None:
    """True or false, None for anything else."""
    return FLAG_WORDS.get(text.strip().lower())


def are_none(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which objects are missing."""
    return np.asarray(pd.isna(values), dtype=bool)
