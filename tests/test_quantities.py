"""Quantities as people read them."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.quantities import digits, duration, number, ratio, share, times


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (0, "0 s"),
        (0.0002, "0.2 ms"),
        (0.0421, "42.1 ms"),
        (1.0, "1 s"),
        (1.5, "1.5 s"),
        (60, "1 min"),
        (90, "90 s"),
        (150, "2.5 min"),
        (3600, "1 h"),
        (5400, "90 min"),
        (7200, "2 h"),
        (86_400, "1 d"),
        (90_000, "25 h"),
        (8_434_496, "97.6 d"),
        (1e12, "11,574,074 d"),
    ],
)
def test_a_duration_has_the_unit_that_people_would_use(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0.0 %"), (0.0004, "< 0.1 %"), (0.0478, "4.8 %"), (0.9996, "> 99.9 %"), (1, "100.0 %")]
)
def test_a_share_is_never_rounded_to_nothing_or_all(value, text):
    assert share(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123, "0.12"),
        (2, "2"),
        (12.34, "12.3"),
        (99.96, "100"),
        (40.04, "40"),
        (-0.5, "-0.5"),
        (1234.5, "1,234"),
        (-1234.5, "-1,234"),
        (math.inf, "∞"),
        (0.0, "0"),
        (-0.0, "0"),
        (0.00005, "0.00005"),
        (-0.000123, "-0.00012"),
        (0.0000029, "0.0000029"),
        (3e-7, "< 0.000001"),
        (-3e-7, "> -0.000001"),
    ],
)
def test_a_number_keeps_two_or_three_digits(value, text):
    assert number(value) == text


@pytest.mark.parametrize("value", [-0.001, -0.0, 0.0])
def test_nothing_has_no_sign_and_what_is_below_nothing_keeps_its_own(value):
    assert (ratio(value), share(value / 10)) == ("0.00", "0.0 %")
    assert (ratio(-0.006), share(-0.25)) == ("-0.01", "-25.0 %")


@pytest.mark.parametrize(
    ("value", "text"), [(0.00005, "+0.00005"), (12345.0, "+12,300"), (-1234567.0, "-1,230,000"), (-0.0, "0"), (1, "+1")]
)
def test_digits_are_written_out(value, text):
    assert digits(value, sign="+") == text
    assert digits(value) == text.removeprefix("+")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_quantity_has_an_exponent_or_a_signed_nothing(value):
    for text in (number(value), ratio(value), share(value), duration(value)):
        assert "e" not in text
        assert not re.fullmatch(r"-[0.,]+( \S+)?", text)


def test_what_is_missing_is_a_dash_everywhere():
    assert {duration(None), number(None), ratio(None), share(None), share(math.nan)} == {"–"}


def test_a_multiple_says_so():
    assert times(12.3) == "12.3 ×"
