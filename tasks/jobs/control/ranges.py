"""Between which values a feature can lie at all: what a change asks for must be possible."""

import re
import sys

INFINITY, SMALLEST = float("inf"), sys.float_info.min
Range = tuple[float, float]
RANGES: tuple[tuple[str, Range, str], ...] = (  # the first that fits counts
    (r"offered_.+", (0, 1), "0 (not offered) or 1"),
    (r"(vertex_share_.+_mean|outlier_share_before)", (0, 1), "a share from 0 to 1"),
    (r"(load_mean|sku_load_mean_.+)", (0, 2), "a load from 0 to 2, where 1 is all that there is"),
    (r"(load_sd|sku_load_sd_.+)", (0, 1), "a deviation of the load from 0 to 1"),
    (r"hour_of_day", (0, 24), "an hour from 0 to 24"),
    (r"day_of_week", (0, 6), "a day from 0 to 6"),
    (r"requested_.+", (SMALLEST, INFINITY), "more than 0"),
    (r".+_sd", (0, INFINITY), "0 or more"),
    (r"((recent_)?shape_.+|.*log_.+)", (-INFINITY, INFINITY), "a number"),
    (r".+", (0, INFINITY), "0 or more"),
)


def range_of(feature: str) -> tuple[float, float, str]:
    """The lowest and the highest value that the feature can have, both possible, and the range in words."""
    for pattern, (low, high), words in RANGES:
        if re.fullmatch(pattern, feature):
            return low, high, words
    raise ValueError("feature: empty; expected a name")


def is_possible(feature: str, value: float) -> bool:
    """Whether the feature can have this value; offered_<sku> is one of two."""
    low, high, _ = range_of(feature)
    return low <= value <= high and not (feature.startswith("offered_") and value not in (0, 1))
