"""Seconds since 1970 as times."""

from typing import Any

import numpy as np

MICROSECONDS = 1e6
LAST_S = 253_402_300_799  # the end of year 9999: later times stand there, to be refused as lying in the future


def from_epoch_s(seconds: Any) -> Any:
    """Times (datetime64[us], UTC) of seconds since 1970; what is missing is NaT.

    seconds: float array. Times after the year 9999, and as far before 1970, are cut there."""
    seconds = np.asarray(seconds, dtype="float64")
    is_known = ~np.isnan(seconds)
    whole = np.rint(np.clip(np.where(is_known, seconds, 0), -LAST_S, LAST_S) * MICROSECONDS).astype("int64")
    return np.where(is_known, whole.view("datetime64[us]"), np.datetime64("NaT", "us"))
