"""Seconds since 1970 as times."""

import numpy as np
import pytest

from tasks.jobs.epochs import from_epoch_s

EXPECTED = {
    0.0: "1970-01-01T00:00:00.000000",
    749458803.0: "1993-10-01T07:00:03.000000",  # the start of the NASA log
    1.0000004: "1970-01-01T00:00:01.000000",
    1.0000006: "1970-01-01T00:00:01.000001",
    -1.5: "1969-12-31T23:59:58.500000",
    1e300: "9999-12-31T23:59:59.000000",
    float("inf"): "9999-12-31T23:59:59.000000",
    float("nan"): "NaT",
}


@pytest.mark.parametrize(("seconds", "expected"), EXPECTED.items())
def test_seconds_are_rounded_to_microseconds_and_cut_at_the_end_of_the_calendar(seconds: float, expected: str) -> None:
    assert str(from_epoch_s([seconds])[0]) == expected


def test_the_type_is_the_one_of_the_warehouse() -> None:
    assert from_epoch_s([]).dtype == np.dtype("datetime64[us]")
