"""Which executions can be used: the checks that all readers share, over all rows at once."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.nodes.columns import ASPECTS, STATUSES

CENTURY_S = 100 * 365.25 * 86_400
EARLIEST = np.datetime64("1970-01-01", "us")
MICROSECONDS = 1e6
ID_CHARS = 1_000
Check = tuple[NDArray[np.bool_], str]
Reasons = NDArray[np.object_]
NEEDED = {
    "execution_id": "no execution id; expected one in each row",
    "node": "no node; expected the name of the machine",
    "benchmark": "no benchmark; expected its name",
}


def first_reasons(n_rows: int, checks: Sequence[Check]) -> Reasons:
    """For each row the reason of the first check that it fails, or an empty text. checks: mask (n_rows,) and reason."""
    reasons: Reasons = np.full(n_rows, "", dtype=object)
    for is_bad, reason in reversed(checks):
        if is_bad.any():
            reasons[is_bad] = reason
    return reasons


def time_checks(name: str, times: NDArray[np.datetime64], now: datetime, slack_s: float) -> list[Check]:
    """Times (datetime64[us], NaT: missing) that cannot be true."""
    latest = np.datetime64(now, "us") + np.timedelta64(int(slack_s * MICROSECONDS), "us")
    return [
        (times > latest, f"{name} lies in the future; expected a time that has passed, in UTC"),
        (times < EARLIEST, f"{name} is before 1970; expected a time, in UTC"),
    ]


def span_checks(
    started: NDArray[np.datetime64], ended: NDArray[np.datetime64], duration_s: NDArray[np.float64]
) -> list[Check]:
    """Durations (seconds, NaN: missing) that cannot be true."""
    return [
        (duration_s < 0, "duration_s is negative; expected seconds from start to end"),
        (ended < started, "ended_at is before started_at; expected start, then end"),
        (duration_s > CENTURY_S, "duration_s is more than 100 years; expected seconds"),
    ]


def vet(rows: Mapping[str, NDArray[Any]], now: datetime, slack_s: float) -> Reasons:
    """Why each execution cannot be used; empty where it can.

    rows: execution_id, node, benchmark (objects, None: missing), started_at, ended_at (datetime64[us]), duration_s, and
    where they are given status and aspect."""
    started, ended, duration_s = rows["started_at"], rows["ended_at"], rows["duration_s"]
    checks: list[Check] = [(_is_missing(rows[name]), reason) for name, reason in NEEDED.items()]
    for name, allowed in (("status", STATUSES), ("aspect", ASPECTS)):
        if name in rows:
            known = np.isin(rows[name].astype(str), (*allowed, "None"))
            checks.append((~known, f"{name} is not one of {', '.join(allowed)}"))
    checks += time_checks("started_at", started, now, slack_s) + time_checks("ended_at", ended, now, slack_s)
    return first_reasons(len(started), [*checks, *span_checks(started, ended, duration_s)])


def completed_times(
    started: NDArray[np.datetime64], ended: NDArray[np.datetime64], duration_s: NDArray[np.float64]
) -> tuple[NDArray[np.datetime64], NDArray[np.float64]]:
    """End and duration, each from the other where it is missing."""
    with np.errstate(invalid="ignore"):
        is_span = ~np.isnat(ended - started) & (ended >= started)
        span_s = np.where(is_span, (ended - started) / np.timedelta64(1, "s"), np.nan)
        whole = np.where(np.isfinite(duration_s) & (np.abs(duration_s) <= CENTURY_S), duration_s, np.nan)
        microseconds = np.rint(np.nan_to_num(whole) * MICROSECONDS).astype("int64").astype("timedelta64[us]")
    from_duration = np.where(np.isnan(whole), np.datetime64("NaT", "us"), started + microseconds)
    return (
        np.where(np.isnat(ended), from_duration, ended).astype("datetime64[us]"),
        np.where(np.isnan(duration_s), span_s, duration_s),
    )


def _is_missing(texts: NDArray[Any]) -> NDArray[np.bool_]:
    return np.array([not text or len(text) > ID_CHARS for text in texts.tolist()], dtype=bool)
