"""A number out of the text of a log, or why there is none."""

import math
import re
from decimal import Decimal

# any sign, nan and inf are let through here, so that they can be refused with their name
NUMBER = r"[-+]?(?:(?i:nan|inf(?:inity)?)|[0-9][0-9.,]*)"
PLAIN = re.compile(r"\+?[0-9]+(?:\.[0-9]+)?")  # no tool prints exponents in its text
GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
LARGEST = 2**63 - 1  # what no counter of a tool can reach, and what they print for an unset minimum


def as_number(text: str, *, times: int = 1, has_groups: bool = False) -> float | str:
    """The value of a text times a prefix, or the reason why it has none.

    has_groups: 65,536 is a number (qperf); elsewhere a comma may as well be a decimal point and is refused."""
    if has_groups and GROUPED.fullmatch(text):
        text = text.replace(",", "")
    if PLAIN.fullmatch(text):
        return checked(float(Decimal(text) * times))  # decimal: 34.3 times 1,000 is 34,300
    if "," in text:
        return "has a comma that may be a decimal point; expected a dot for decimals, as LC_ALL=C gives"
    if text.startswith("-") and PLAIN.fullmatch(text[1:]):
        return "is negative"
    if text.lower().lstrip("+-").startswith(("nan", "inf")):
        return "is no finite number"
    return "is no number"


def checked(value: object) -> float | str:
    """A finite number from nothing to what a counter can hold, or the reason why it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "is no number"
    if isinstance(value, float) and not math.isfinite(value):
        return "is no finite number"
    if value < 0:
        return "is negative"
    if value >= LARGEST:
        return "is more than any counter holds"
    return float(value)
