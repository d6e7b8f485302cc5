"""Times of logs that print the wall clock: to UTC, through both hours of a daylight-saving change."""

from dataclasses import dataclass
from itertools import product
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from tasks.errors import BadSetting

WALL_CLOCK = "%Y-%m-%dT%H:%M:%S"
WALL_CLOCK_CHARS = len("2026-11-21T01:02:03")
YEARS = (pd.Timestamp("1900-01-01"), pd.Timestamp("9000-01-01"))
EPOCH = r"[0-9]{9,11}"  # seconds since 1970, as SLURM_TIME_FORMAT=%s prints them
WITH_OFFSET = r".*T.*(?:Z|[+-]\d\d:?\d\d)"


@dataclass(frozen=True)
class Readings:
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


def read_times(text: pd.Series, zone: str) -> Readings:
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
    return Readings(first, second, problem[text.notna() & first.isna()])


def settle(
    submitted: Readings, started: Readings, ended: Readings, elapsed_s: pd.Series
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
    chosen = [time[twice].to_numpy(copy=True) for time in best]
    cost = _cost(chosen, elapsed_s[twice].to_numpy())
    for picks in list(product((0, 1), repeat=3))[1:]:
        times = [
            (reading.second if pick else reading.first)[twice].to_numpy()
            for reading, pick in zip(readings, picks, strict=True)
        ]
        other = _cost(times, elapsed_s[twice].to_numpy())
        is_better = _lexically_less(other, cost)
        chosen = [np.where(is_better, new, old) for new, old in zip(times, chosen, strict=True)]
        cost = [np.where(is_better, new, old) for new, old in zip(other, cost, strict=True)]
    settled = [
        time.mask(twice, pd.Series(new, index=time.index[twice])) for time, new in zip(best, chosen, strict=True)
    ]
    return settled[0], settled[1], settled[2]


def _wall_clock(text: pd.Series) -> pd.Series:
    is_candidate = text.str.len() == WALL_CLOCK_CHARS
    wall = pd.to_datetime(text.where(is_candidate), format=WALL_CLOCK, errors="coerce").astype("datetime64[us]")
    return wall.where(wall.between(*YEARS))  # at the ends of the calendar its UTC has no year


def _to_utc(wall: pd.Series, zone: str) -> tuple[pd.Series, pd.Series]:
    if not wall.notna().any():
        return wall, wall
    once = _localised(wall, zone, "NaT")
    is_open = wall.notna() & once.isna()
    if not is_open.any():
        return once, once
    n_open = int(is_open.sum())
    one = _localised(wall[is_open], zone, np.ones(n_open, dtype=bool))
    other = _localised(wall[is_open], zone, np.zeros(n_open, dtype=bool))
    return once.fillna(one.where(one <= other, other)), once.fillna(other.where(one <= other, one))


def _localised(wall: pd.Series, zone: str, ambiguous: object) -> pd.Series:
    local = wall.dt.tz_localize(zone, ambiguous=ambiguous, nonexistent="NaT")
    utc: pd.Series = local.dt.tz_convert("UTC").dt.tz_localize(None)
    return utc


def _with_own_zone(text: pd.Series) -> pd.Series:
    epoch = pd.to_numeric(text.where(text.str.fullmatch(EPOCH).fillna(False)), errors="coerce")
    iso = text.where(text.str.fullmatch(WITH_OFFSET).fillna(False))
    times = pd.to_datetime(iso, format="ISO8601", utc=True, errors="coerce").dt.tz_localize(None)
    return times.astype("datetime64[us]").fillna(pd.to_datetime(epoch, unit="s").astype("datetime64[us]"))


def _cost(times: list[np.ndarray], elapsed_s: np.ndarray) -> list[np.ndarray]:
    """Order violations, distance from the elapsed time (s) and wait (s); what is missing costs nothing."""
    submitted, started, ended = times
    with np.errstate(invalid="ignore"):
        wait_s, run_s = _seconds(started - submitted), _seconds(ended - started)
        n_wrong = (wait_s < 0).astype(float) + (run_s < 0)
        return [n_wrong, np.nan_to_num(np.abs(run_s - elapsed_s)), np.nan_to_num(wait_s)]


def _seconds(span: np.ndarray) -> np.ndarray:
    return np.where(np.isnat(span), np.nan, span / np.timedelta64(1, "s"))


def _lexically_less(left: list[np.ndarray], right: list[np.ndarray]) -> np.ndarray:
    is_less, is_equal = np.zeros(len(left[0]), dtype=bool), np.ones(len(left[0]), dtype=bool)
    for a, b in zip(left, right, strict=True):
        is_less |= is_equal & (a < b)
        is_equal &= a == b
    return is_less
